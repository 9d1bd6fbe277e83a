"""Puts into the time line what a cluster and its clients tell: leaders, lost records, failed requests, logs."""

from __future__ import annotations

import logging
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from broker_sim.chaos.timeline import Moment
from broker_sim.metadata import changes_between
from broker_sim.runtime.virtual.core.processes import PROCESS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.chaos.chaos import Chaos
    from broker_sim.chaos.timeline import Timeline
    from broker_sim.cluster.async_cluster import AsyncCluster
    from broker_sim.runtime.virtual import VirtualEventLoop

CLUSTER: Final = "cluster"
REQUESTS_KEPT: Final = 100_000
_CLIENTS: Final = ("aiokafka", "kafka")
_OTHERS: Final = ("broker_sim", "asyncio")
"""Loggers whose records do not become part of the time line."""
_SHOWN: Final = ("Setting newly assigned", "Revoking previously assigned")
_PARTITION: Final = re.compile(r"TopicPartition\(topic='([^']+)', partition=(\d+)\)")


@contextmanager
def observed(chaos: Chaos, loop: VirtualEventLoop) -> Iterator[None]:
    """Observe the cluster and the clients' logs, for as long as this lasts."""
    chaos.watch(Leaders(chaos.kafka, chaos.timeline).look)
    chaos.watch(_Losses(chaos.kafka, chaos.timeline).look)
    chaos.kafka.keep_requests(REQUESTS_KEPT)
    disabled = logging.root.manager.disable
    logging.disable(logging.NOTSET)
    try:
        with (
            _logged(_CLIENTS, logging.INFO, _ClientLogs(chaos)),
            _logged(_OTHERS, logging.CRITICAL, logging.NullHandler()),
        ):
            yield
    finally:
        logging.disable(disabled)
        _note_failed_requests(chaos, loop)


@contextmanager
def _logged(names: Sequence[str], level: int, handler: logging.Handler) -> Iterator[None]:
    """Let the handler alone have what these loggers log, and those below them, from that level on."""
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


class Leaders:
    """Notes changes of leaders and in-sync replicas."""

    def __init__(self, kafka: AsyncCluster, timeline: Timeline) -> None:
        self._controller = kafka.nodes.controller
        self._timeline = timeline
        self._image = self._controller.image

    def look(self) -> None:
        """Note what has changed since the last look."""
        before, image = self._image, self._controller.image
        if image is before:
            return
        self._image = image
        for tp, _, state in changes_between(before, image).partitions:
            old = before.partition(tp)
            if old is not None and (old.leader, old.isr) != (state.leader, state.isr):
                text = f"{tp.topic}-{tp.partition}: leader {state.leader}, ISR {list(state.isr)}"
                self._timeline.note(CLUSTER, text)


class _Losses:
    """Notes which records power losses have taken, when the broker starts again."""

    def __init__(self, kafka: AsyncCluster, timeline: Timeline) -> None:
        self._nodes = kafka.nodes.nodes
        self._timeline = timeline
        self._reported = dict.fromkeys(self._nodes, 0)

    def look(self) -> None:
        """Note what is lost since the last look."""
        for broker_id, node in self._nodes.items():
            losses = node.lost[self._reported[broker_id] :]
            if losses:
                self._reported[broker_id] += len(losses)
                ranges = (f"{one.topic_partition} {one.first_offset}-{one.end_offset - 1}" for one in losses)
                text = f"broker {broker_id} has lost with its power: {', '.join(ranges)}"
                self._timeline.note(CLUSTER, text)


class _ClientLogs(logging.Handler):
    """Notes what clients log: warnings, and which partitions they are assigned."""

    def __init__(self, chaos: Chaos) -> None:
        super().__init__(logging.INFO)
        self._chaos = chaos

    def emit(self, record: logging.LogRecord) -> None:
        process, text = PROCESS.get(), record.getMessage()
        if process is not None and (record.levelno >= logging.WARNING or text.startswith(_SHOWN)):
            self._chaos.note(process.name, _PARTITION.sub(r"\1-\2", text))


def _note_failed_requests(chaos: Chaos, loop: VirtualEventLoop) -> None:
    began_ms = loop.clock.wall_clock_ms() - loop.clock.now_ms()
    for request in chaos.kafka.requests():
        if request.errors and request.elapsed_ms is not None:
            at_s = (request.received_ms + request.elapsed_ms - began_ms) / 1000
            errors = ", ".join(error.name for error in request.errors)
            text = f"{request.api} to broker {request.broker}: {errors}"
            chaos.timeline.moments.append(Moment(at_s, request.client_id or "client", text))
