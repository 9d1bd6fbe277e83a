"""The life of every delayed operation as JSON lines, in the form of structlog's JSON renderer.

Kafka has no counterpart. A line has all of `FIELDS`; what does not apply is null.

A step in an operation's life costs the event loop one reading of the clock and one tuple. A thread
makes lines of them, by a template: structlog's own way from an event to a line takes several times
as long, and the thread's time is taken from the brokers'.
"""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter, deque
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self, cast

from broker_sim.topic_partition import TopicPartition
from purgatory import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

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
"""How old the figure ``watched`` may be: to count it means to visit every watched key."""
GZIP_LEVEL = 1
CACHED_TEXTS = 10_000
IDS_PER_LIFE = 10**12
"""A restarted broker numbers its operations from 1 again; in the trace each life has its own ids."""

_Step = tuple["PurgatoryTracer", int, str, "DelayedOperation", "int | None", "str | None", int, int]
"""Tracer, now_ms, event, operation, lateness_ms, completed_by, watched, num_delayed."""


class PurgatoryTracer:
    """The `PurgatoryObserver` of one purgatory; made by `Trace.observer`."""

    __slots__ = ("_add", "_now_ms", "_purgatory", "_watched", "_watched_until_ms", "first_id",
                 "labels")  # fmt: skip

    def __init__(self, labels: str, first_id: int, clock: Clock, steps: deque[_Step]) -> None:
        self.labels = labels
        self.first_id = first_id
        self._add = steps.append
        self._now_ms = clock.now_ms
        self._purgatory: DelayedOperationPurgatory[DelayedOperation] | None = None
        self._watched = 0
        self._watched_until_ms = clock.now_ms()

    def attach(self, purgatory: DelayedOperationPurgatory[DelayedOperation]) -> None:
        """Take the figures ``watched`` and ``num_delayed`` from the purgatory; until then both are 0."""
        self._purgatory = purgatory

    def _step(
        self,
        event: str,
        operation: DelayedOperation,
        completed_by: str | None = None,
        lateness_ms: int | None = None,
    ) -> None:
        now_ms = self._now_ms()
        num_delayed = 0
        purgatory = self._purgatory
        if purgatory is not None:
            num_delayed = purgatory.num_delayed()
            if now_ms >= self._watched_until_ms:
                self._watched = purgatory.watched()
                self._watched_until_ms = now_ms + WATCHED_AGE_MS
        self._add(
            (self, now_ms, event, operation, lateness_ms, completed_by, self._watched, num_delayed)
        )

    def tried(self, operation: DelayedOperation, keys: Sequence[object]) -> None:  # noqa: ARG002 - it has them
        """Take note that the operation is tried for the first time."""
        self._step("tried", operation)

    def parked(self, operation: DelayedOperation, keys: Sequence[object]) -> None:  # noqa: ARG002
        """Take note that it has to wait."""
        self._step("parked", operation)

    def completed(self, operation: DelayedOperation, by: str) -> None:
        """Take note that it was completed before its time."""
        self._step("completed", operation, by)

    def expired(self, operation: DelayedOperation, lateness_ms: int) -> None:
        """Take note that its time was over."""
        self._step("expired", operation, "timer", lateness_ms)

    def cancelled(self, operation: DelayedOperation) -> None:
        """Take note that it was dropped."""
        self._step("cancelled", operation)


class TraceSink(Protocol):
    """Where lines go; called by one thread at a time."""

    def write(self, lines: Sequence[str]) -> None:
        """Take lines, without their ends."""

    def close(self) -> None:
        """Write what is left; nothing comes any more."""


class _FileSink:
    """A file of lines; ``*.gz`` is compressed. Raises OSError when it cannot be written."""

    def __init__(self, path: Path) -> None:
        self._file = _open(path)

    def write(self, lines: Sequence[str]) -> None:
        self._file.write("".join(f"{line}\n" for line in lines).encode())
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class Trace:
    """Writes the lines of any number of purgatories into sinks; a path stands for a file.

    Lines are written ten times a second and at `close`. Steps may come from any thread. Operations
    that concern nothing but ``untraced_topic`` are left out: a trace that goes into a topic must
    not tell of the fetches of its readers, for ever. Raises OSError when a file cannot be written.
    """

    def __init__(
        self,
        *sinks: str | Path | TraceSink,
        run_id: str,
        side: str = SIDE,
        clock: Clock | None = None,
        untraced_topic: str | None = None,
    ) -> None:
        self._clock = SystemClock() if clock is None else clock
        # Read once: both clocks are cut to whole milliseconds, so the difference of two later
        # readings may be one less, and an operation would end before it began.
        self._wall_clock_offset_ms = self._clock.wall_clock_ms() - self._clock.now_ms()
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

    def observer(self, purgatory: str, broker_id: int) -> PurgatoryTracer:
        """Return what traces the purgatory of that name on that broker, for one life of it."""
        life = self._lives[purgatory, broker_id]
        self._lives[purgatory, broker_id] += 1
        labels = f'{self._labels},"broker":{broker_id},"purgatory":{json.dumps(purgatory)}'
        return PurgatoryTracer(labels, life * IDS_PER_LIFE, self._clock, self._steps)

    def flush(self) -> None:
        """Write what has happened so far; returns when the sinks have it."""
        with self._write_lock:
            steps = [self._steps.popleft() for _ in range(len(self._steps))]
            if self._untraced_topic is not None:
                steps = [step for step in steps if not self._is_untraced(step[3])]
            if steps:
                lines = _lines(steps, self._wall_clock_offset_ms)
                for sink in self._sinks:
                    sink.write(lines)

    def _is_untraced(self, operation: DelayedOperation) -> bool:
        return all(
            isinstance(key, TopicPartition) and key.topic == self._untraced_topic
            for key in operation.watch_keys
        )

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
    lines = []
    for tracer, now_ms, event, operation, lateness_ms, by, watched, num_delayed in steps:
        ended = event not in {"tried", "parked"}
        error_code = getattr(operation, "error_code", None) if ended else None
        waited_ms = max(now_ms - operation.created_ms, 0) if ended else None
        lines.append(
            f'{{"ts_ms":{now_ms + wall_clock_offset_ms},{tracer.labels},'
            f'"operation_id":{tracer.first_id + operation.operation_id},"event":"{event}",'
            f'"keys":[{",".join(map(_key_text, operation.watch_keys))}],'
            f'"api":{_text(getattr(operation, "api", None))},'
            f'"client_id":{_text(getattr(operation, "client_id", None))},'
            f'"delay_ms":{operation.delay_ms},'
            f'"waited_ms":{"null" if waited_ms is None else waited_ms},'
            f'"lateness_ms":{"null" if lateness_ms is None else lateness_ms},'
            f'"completed_by":{_text(by)},'
            f'"error_code":{"null" if error_code is None else int(error_code)},'
            f'"watched":{watched},"num_delayed":{num_delayed}}}'
        )
    return lines


@lru_cache(CACHED_TEXTS)
def _text(value: str | None) -> str:
    return json.dumps(value)


@lru_cache(CACHED_TEXTS, typed=True)
def _key_text(key: object) -> str:
    return json.dumps(str(key))
