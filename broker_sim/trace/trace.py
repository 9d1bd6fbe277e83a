"""The life of every delayed operation as JSON lines, in the form of structlog's JSON renderer.

Kafka has no counterpart. A line has all of `FIELDS`; what does not apply is null.

A step in an operation's life costs the event loop one tuple of numbers and of texts that are there
already. A thread makes lines of them, by a template: structlog's own way from an event to a line
takes several times as long, and the thread's time is taken from the brokers'. The operation itself
is not kept for the thread: it holds its request and its answer, and what is kept alive for a moment
longer than it would be is what costs most (docs/benchmarks.md).
"""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter, deque
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self, cast

from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import TracebackType

    from broker_sim.errors import ErrorCode
    from purgatory import Clock, DelayedOperation, DelayedOperationPurgatory

__all__ = ["FIELDS", "PurgatoryTracer", "Trace", "TraceSink"]

FIELDS = (
    "ts_ms",
    "run_id",
    "side",
    "broker",
    "purgatory",
    "operation_id",
    "event",
    "keys",
    "api",
    "client_id",
    "delay_ms",
    "waited_ms",
    "lateness_ms",
    "completed_by",
    "error_code",
    "watched",
    "num_delayed",
)
"""What every line has, in this order."""

SIDE = "sim"
WRITE_PERIOD_S = 0.1
WATCHED_AGE_MS = 20
"""How old the figure `watched` may be: to count it means to visit every watched key."""
GZIP_LEVEL = 1
CACHED_TEXTS = 10_000
UNENDED = '"waited_ms":null,"lateness_ms":null,"completed_by":null,"error_code":null'
IDS_PER_LIFE = 10**12
"""A restarted broker numbers its operations from 1 again; in the trace each life has its own ids."""

log = get_logger(__name__)

_Step = tuple["PurgatoryTracer", int, str, int, str, "int | None", "int | None", "str | None",
              "ErrorCode | None", int, int]  # fmt: skip
"""Tracer, now_ms, event, operation_id, facts, waited_ms, lateness_ms, completed_by, error_code,
watched, num_delayed."""


class PurgatoryTracer:
    """The `PurgatoryObserver` of one purgatory; made by `Trace.observer`."""

    __slots__ = ("_add", "_facts", "_now_ms", "_num_delayed", "_untraced_topic", "_watched",
                 "_watched_now", "_watched_until_ms", "first_id", "labels")  # fmt: skip

    def __init__(
        self,
        labels: str,
        first_id: int,
        clock: Clock,
        steps: deque[_Step],
        untraced_topic: str | None,
    ) -> None:
        self.labels = labels
        self.first_id = first_id
        self._add = steps.append
        self._now_ms = clock.now_ms
        self._untraced_topic = untraced_topic
        self._facts: dict[int, str] = {}
        """What does not change about each operation that has not ended, as part of a line."""
        self._num_delayed: Callable[[], int] = int
        self._watched_now: Callable[[], int] = int
        self._watched = 0
        self._watched_until_ms = clock.now_ms()

    def attach(self, purgatory: DelayedOperationPurgatory[DelayedOperation]) -> None:
        """Take the figures `watched` and `num_delayed` from the purgatory; until then both are 0."""
        self._num_delayed = purgatory.timer.size
        self._watched_now = purgatory.watched

    def tried(self, operation: DelayedOperation, keys: Sequence[object]) -> None:
        """Take note that the operation is tried for the first time."""
        topic = self._untraced_topic
        if topic is not None and _concerns_only(topic, keys):
            return
        text = _key_text(keys[0]) if len(keys) == 1 else ",".join(map(_key_text, keys))
        facts = _facts(
            text,
            getattr(operation, "api", None),
            getattr(operation, "client_id", None),
            operation.delay_ms,
        )
        self._facts[operation.operation_id] = facts
        now_ms = self._now_ms()
        if now_ms >= self._watched_until_ms:
            self._count_watched(now_ms)
        self._add((self, now_ms, "tried", operation.operation_id, facts, None, None, None, None,
                   self._watched, self._num_delayed()))  # fmt: skip

    def parked(self, operation: DelayedOperation, keys: Sequence[object]) -> None:  # noqa: ARG002
        """Take note that it has to wait."""
        facts = self._facts.get(operation.operation_id)
        if facts is None:
            return
        now_ms = self._now_ms()
        if now_ms >= self._watched_until_ms:
            self._count_watched(now_ms)
        self._add((self, now_ms, "parked", operation.operation_id, facts, None, None, None, None,
                   self._watched, self._num_delayed()))  # fmt: skip

    def completed(self, operation: DelayedOperation, by: str) -> None:
        """Take note that it was completed before its time."""
        self._end("completed", operation, None, by)

    def expired(self, operation: DelayedOperation, lateness_ms: int) -> None:
        """Take note that its time was over."""
        self._end("expired", operation, lateness_ms, "timer")

    def cancelled(self, operation: DelayedOperation) -> None:
        """Take note that it was dropped."""
        self._end("cancelled", operation, None, None)

    def _end(
        self, event: str, operation: DelayedOperation, lateness_ms: int | None, by: str | None
    ) -> None:
        facts = self._facts.pop(operation.operation_id, None)
        if facts is None:
            return
        now_ms = self._now_ms()
        if now_ms >= self._watched_until_ms:
            self._count_watched(now_ms)
        self._add((self, now_ms, event, operation.operation_id, facts,
                   max(now_ms - operation.created_ms, 0), lateness_ms, by,
                   getattr(operation, "error_code", None),
                   self._watched, self._num_delayed()))  # fmt: skip

    def _count_watched(self, now_ms: int) -> None:
        self._watched = self._watched_now()
        self._watched_until_ms = now_ms + WATCHED_AGE_MS


class TraceSink(Protocol):
    """Where lines go; called by one thread at a time."""

    def write(self, lines: Sequence[str]) -> None:
        """Take lines, without their ends."""

    def close(self) -> None:
        """Write what is left; nothing comes any more."""


class _FileSink:
    """A file of lines; `*.gz` is compressed. Raises OSError when it cannot be written."""

    def __init__(self, path: Path) -> None:
        self._file = _open(path)

    def write(self, lines: Sequence[str]) -> None:
        self._file.write(("\n".join(lines) + "\n").encode())
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class Trace:
    """Writes the lines of any number of purgatories into sinks; a path stands for a file.

    Lines are written ten times a second and at `close`. Steps may come from any thread. Operations
    that concern nothing but `untraced_topic` are left out: a trace that goes into a topic must
    not tell of the fetches of its readers, for ever. Raises OSError when a file cannot be written.
    """

    def __init__(
        self,
        *sinks: str | Path | TraceSink,
        run_id: str,
        side: str = SIDE,
        untraced_topic: str | None = None,
    ) -> None:
        self._wall_clock_offset_ms: int | None = None
        self._untraced_topic = untraced_topic
        self._lives: Counter[tuple[str, int]] = Counter()
        self._labels = f'"run_id":{json.dumps(run_id)},"side":{json.dumps(side)}'
        self._steps: deque[_Step] = deque()
        self._sinks: list[TraceSink] = [
            _FileSink(Path(sink)) if isinstance(sink, str | Path) else sink for sink in sinks
        ]
        self._closed = threading.Event()
        self._write_lock = threading.Lock()
        self._writer = threading.Thread(target=self._run, name="trace-writer", daemon=True)
        self._writer.start()

    def observer(self, purgatory: str, broker_id: int, clock: Clock) -> PurgatoryTracer:
        """Return what traces the purgatory of that name on that broker, for one life of it.

        All purgatories of a trace have the same clock: that of their cluster.
        """
        if self._wall_clock_offset_ms is None:
            # Read once: both readings are rounded down to whole milliseconds, so the difference of
            # two later ones may be one less, and an operation would end before it began.
            self._wall_clock_offset_ms = clock.wall_clock_ms() - clock.now_ms()
        life = self._lives[purgatory, broker_id]
        self._lives[purgatory, broker_id] += 1
        labels = f'{self._labels},"broker":{broker_id},"purgatory":{json.dumps(purgatory)}'
        return PurgatoryTracer(
            labels, life * IDS_PER_LIFE, clock, self._steps, self._untraced_topic
        )

    def flush(self) -> None:
        """Write what has happened so far; returns when the sinks have it."""
        with self._write_lock:
            steps = [self._steps.popleft() for _ in range(len(self._steps))]
            if steps:
                lines = _lines(steps, self._wall_clock_offset_ms or 0)
                for sink in self._sinks.copy():
                    self._write(sink, lines)

    def _write(self, sink: TraceSink, lines: Sequence[str]) -> None:
        try:
            sink.write(lines)
        except OSError as error:
            # A full disk, say. The thread has to go on: without it steps would pile up for ever.
            log.error("trace ends, it cannot be written", reason=error.strerror or str(error))  # noqa: TRY400
            self._sinks.remove(sink)
            with suppress(OSError):
                sink.close()

    def _run(self) -> None:
        while not self._closed.wait(WRITE_PERIOD_S):
            self.flush()

    def close(self) -> None:
        """Write the rest and close the sinks; does nothing the second time."""
        self._closed.set()
        self._writer.join()
        self.flush()
        while self._sinks:
            self._sinks.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast("BinaryIO", gzip.open(path, "wb", GZIP_LEVEL))
    return path.open("wb")


def _lines(steps: Iterable[_Step], wall_clock_offset_ms: int) -> list[str]:
    return [
        f'{{"ts_ms":{now_ms + wall_clock_offset_ms},{tracer.labels},'
        f'"operation_id":{tracer.first_id + operation_id},"event":"{event}",{facts},'
        f'{UNENDED if waited_ms is None else _ended(waited_ms, lateness_ms, by, error_code)},'
        f'"watched":{watched},"num_delayed":{num_delayed}}}'
        for (tracer, now_ms, event, operation_id, facts, waited_ms, lateness_ms, by, error_code,
             watched, num_delayed) in steps
    ]  # fmt: skip


def _ended(
    waited_ms: int, lateness_ms: int | None, by: str | None, error_code: ErrorCode | None
) -> str:
    return (
        f'"waited_ms":{waited_ms},"lateness_ms":{"null" if lateness_ms is None else lateness_ms},'
        f'"completed_by":{_text(by)},"error_code":{"null" if error_code is None else int(error_code)}'
    )


def _concerns_only(topic: str, keys: Sequence[object]) -> bool:
    return all(isinstance(key, TopicPartition) and key.topic == topic for key in keys)


@lru_cache(CACHED_TEXTS)
def _facts(keys: str, api: str | None, client_id: str | None, delay_ms: int) -> str:
    """Return the fields of an operation that are the same in all its lines, from keys to delay_ms."""
    return (
        f'"keys":[{keys}],"api":{_text(api)},"client_id":{_text(client_id)},"delay_ms":{delay_ms}'
    )


@lru_cache(CACHED_TEXTS)
def _text(value: str | None) -> str:
    return json.dumps(value)


@lru_cache(CACHED_TEXTS, typed=True)
def _key_text(key: object) -> str:
    return json.dumps(str(key))
