"""Adds the events of a cluster and its clients to the time line: leaders, lost records, failed requests, logs."""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from broker_sim.chaos.timeline import Moment
from broker_sim.chaos.worker import error_text
from broker_sim.metadata import changes_between
from broker_sim.runtime.virtual.core.processes import PROCESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.chaos.chaos import Chaos
    from broker_sim.chaos.timeline import Timeline
    from broker_sim.chaos.worker import Worker
    from broker_sim.cluster.async_cluster import AsyncCluster
    from broker_sim.handlers.request_log import RequestStatus
    from broker_sim.runtime.virtual import VirtualEventLoop

CLUSTER: Final = "cluster"
TEST: Final = "test"
"""Name in the time line for lines that no worker has logged: those of the test and its own clients."""
REQUESTS_KEPT: Final = 100_000
_CLIENTS: Final = ("aiokafka", "kafka")
_OTHERS: Final = ("broker_sim", "asyncio")
"""Loggers whose records are left out of the time line."""
_SHOWN: Final = ("Setting newly assigned", "Revoking previously assigned")
_PARTITION: Final = re.compile(r"TopicPartition\(topic='([^']+)', partition=(\d+)\)")


@contextmanager
def observed(chaos: Chaos, loop: VirtualEventLoop) -> Iterator[None]:
    """Observe the cluster and the clients' logs in the `with` block."""
    chaos.watch(Leaders(chaos.kafka, chaos.timeline).look)
    chaos.watch(_Losses(chaos.kafka, chaos.timeline).look)
    chaos.kafka.keep_requests(REQUESTS_KEPT)
    disabled = logging.root.manager.disable
    logging.disable(logging.NOTSET)
    try:
        with (
            _logged(_CLIENTS, logging.INFO, _Logs(chaos.timeline, is_client=True)),
            application_logs(chaos.timeline, alone=True),
            _logged(_OTHERS, logging.CRITICAL, logging.NullHandler()),
        ):
            yield
    finally:
        logging.disable(disabled)
        note_failed_requests(chaos.kafka, chaos.timeline, loop, chaos.workers)


@contextmanager
def _logged(names: Sequence[str], level: int, handler: logging.Handler) -> Iterator[None]:
    """Send records of these loggers and their children, from that level on, to the handler only."""
    loggers = [logging.getLogger(name) for name in names]
    before = [(logger, logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.setLevel(level)
        logger.propagate = False
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, level_before, propagates in before:
            logger.removeHandler(handler)
            logger.setLevel(level_before)
            logger.propagate = propagates


@contextmanager
def application_logs(timeline: Timeline, *, alone: bool = False) -> Iterator[None]:
    """Add the records of all other loggers to the time line, at the levels that the application has set.

    With `alone`, records of loggers that do not propagate, such as FastStream's, go to the time line only.
    """
    handler, call_handlers = _Logs(timeline), logging.Logger.callHandlers

    def heard(logger: logging.Logger, record: logging.LogRecord) -> None:
        is_kept = _keeps_from_root(logger)
        if is_kept:
            handler.handle(record)
        if not (is_kept and alone):
            call_handlers(logger, record)

    logging.root.addHandler(handler)
    logging.Logger.callHandlers = heard  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        logging.Logger.callHandlers = call_handlers  # type: ignore[method-assign]
        logging.root.removeHandler(handler)


def _keeps_from_root(logger: logging.Logger) -> bool:
    """Whether the root logger does not get the records of this logger, and no other part of the time line has them."""
    if logger.name.partition(".")[0] in {*_CLIENTS, *_OTHERS}:
        return False
    above: logging.Logger | None = logger
    while above is not None and above.propagate:
        above = above.parent
    return above is not None and above is not logging.root


class Leaders:
    """Notes changes of leaders and in-sync replicas."""

    def __init__(self, kafka: AsyncCluster, timeline: Timeline) -> None:
        self._controller = kafka.nodes.controller
        self._timeline = timeline
        self._image = self._controller.image

    def look(self) -> None:
        """Note the changes since the last call."""
        before, image = self._image, self._controller.image
        if image is before:
            return
        self._image = image
        partitions: dict[str, list[str]] = {}
        for tp, _, state in changes_between(before, image).partitions:
            old = before.partition(tp)
            if old is not None and (old.leader, old.isr) != (state.leader, state.isr):
                change = f"leader {state.leader}, ISR {list(state.isr)}"
                partitions.setdefault(change, []).append(f"{tp.topic}-{tp.partition}")
        if partitions:
            text = "; ".join(f"{', '.join(names)}: {change}" for change, names in partitions.items())
            self._timeline.note(CLUSTER, text)


class _Losses:
    """Notes the records lost in a power failure, when the broker is restarted."""

    def __init__(self, kafka: AsyncCluster, timeline: Timeline) -> None:
        self._nodes = kafka.nodes.nodes
        self._timeline = timeline
        self._reported = dict.fromkeys(self._nodes, 0)

    def look(self) -> None:
        """Note the losses since the last call."""
        for broker_id, node in self._nodes.items():
            losses = node.lost[self._reported[broker_id] :]
            if losses:
                self._reported[broker_id] += len(losses)
                ranges = (f"{one.topic_partition} {one.first_offset}-{one.end_offset - 1}" for one in losses)
                text = f"broker {broker_id} lost in the power failure: {', '.join(ranges)}"
                self._timeline.note(CLUSTER, text)


class _Logs(logging.Handler):
    """Notes log records with the logging worker; of clients only warnings and assignments."""

    def __init__(self, timeline: Timeline, *, is_client: bool = False) -> None:
        super().__init__()
        self._timeline = timeline
        self._is_client = is_client

    def emit(self, record: logging.LogRecord) -> None:
        process, text = PROCESS.get(), record.getMessage()
        if self._is_client and record.levelno < logging.WARNING and not text.startswith(_SHOWN):
            return
        error = _error_of(record) if record.levelno >= logging.ERROR else None
        self._timeline.note(
            process.name if process else TEST, _PARTITION.sub(r"\1-\2", text), error_text(error) if error else ""
        )


def _error_of(record: logging.LogRecord) -> BaseException | None:
    """Return the logged exception: the current one, or an argument of the message."""
    if record.exc_info and record.exc_info[1] is not None:
        return record.exc_info[1]
    arguments = record.args if isinstance(record.args, tuple) else ()
    return next((each for each in arguments if isinstance(each, BaseException)), None)


def note_failed_requests(
    kafka: AsyncCluster, timeline: Timeline, loop: VirtualEventLoop, workers: Sequence[Worker] = ()
) -> None:
    """Note the requests answered with an error, with the worker that sent them, or the id of another client."""
    began_ms = loop.clock.wall_clock_ms() - loop.clock.now_ms()
    names = {worker.name for worker in workers}
    for request in kafka.requests():
        if request.errors and request.elapsed_ms is not None:
            at_s = (request.received_ms + request.elapsed_ms - began_ms) / 1000
            host = loop.network.host_of_client.get((request.client_host, request.client_port))
            who = host if host in names else request.client_id or "client"
            timeline.moments.append(Moment(at_s, who, failed_request_text(request)))


def failed_request_text(request: RequestStatus) -> str:
    """Return the text of a request that was answered with errors."""
    return f"{request.api} to broker {request.broker}: {', '.join(error.name for error in request.errors)}"
