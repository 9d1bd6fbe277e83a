"""A trace: a thread turns the steps of all tracers into lines and writes them to the sinks."""

from __future__ import annotations

import threading
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.system import Thread
from broker_sim.trace.lines import PurgatoryLife, to_lines
from broker_sim.trace.parquet_sink import ParquetSink
from broker_sim.trace.sinks import sink_of
from broker_sim.trace.tracer import PurgatoryTracer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim_purgatory import Clock

    from broker_sim.trace.lines import Step
    from broker_sim.trace.sinks import TraceSink

SIDE = "sim"
WRITE_PERIOD_S = 0.1

log = get_logger(__name__)


class Trace:
    """Writes the lines of any number of purgatories to sinks; a path stands for a file.

    Lines are written ten times a second and at `close`. A path that ends in `.parquet` is a directory that gets a
    complete file of typed columns every five seconds. Steps may come from any thread. Operations that concern only
    `untraced_topic` are left out: in a trace that is written to a topic, the fetches of the trace's own readers would
    cause new lines without end. Raises OSError if a file cannot be opened, and MissingExtraError for Parquet without
    pyarrow.
    """

    def __init__(
        self, *sinks: str | Path | TraceSink, run_id: str, side: str = SIDE, untraced_topic: str | None = None
    ) -> None:
        self._run_id = run_id
        self._side = side
        self._untraced_topic = untraced_topic
        self._lives: Counter[tuple[str, int]] = Counter()
        self._steps: deque[Step] = deque()
        self._sinks: list[TraceSink] = [sink_of(Path(sink)) if isinstance(sink, str | Path) else sink for sink in sinks]
        self._closed = threading.Event()
        self._write_lock = threading.Lock()
        self._writer = Thread(target=self._run, name="trace-writer", daemon=True)
        self._writer.start()

    def observer(self, purgatory: str, broker_id: int, clock: Clock) -> PurgatoryTracer:
        """Return the tracer for one life of a broker's purgatory; `clock` is the clock of the purgatory's timer."""
        life = PurgatoryLife.of(
            run_id=self._run_id,
            side=self._side,
            broker_id=broker_id,
            purgatory=purgatory,
            number=self._lives[purgatory, broker_id],
            clock=clock,
        )
        self._lives[purgatory, broker_id] += 1
        return PurgatoryTracer(life, clock, self._steps, self._untraced_topic)

    def flush(self) -> None:
        """Write the steps so far to the sinks."""
        with self._write_lock:
            steps = [self._steps.popleft() for _ in range(len(self._steps))]
            lines = to_lines(steps)
            for sink in self._sinks.copy():
                self._write(sink, lines)

    def _write(self, sink: TraceSink, lines: Sequence[str]) -> None:
        try:
            if lines:
                sink.write(lines)
            if isinstance(sink, ParquetSink):
                sink.end_period()
        except (OSError, ValueError) as error:
            # For example a full disk, or a value that does not fit its Parquet column. The thread continues,
            # # otherwise the steps would pile up.
            _log_failure(error)
            self._sinks.remove(sink)
            with suppress(OSError, ValueError):
                sink.close()

    def _run(self) -> None:
        while not self._closed.wait(WRITE_PERIOD_S):
            self.flush()

    def close(self) -> None:
        """Write the remaining steps and close the sinks; idempotent."""
        self._closed.set()
        self._writer.join()
        self.flush()
        while self._sinks:
            try:
                self._sinks.pop().close()
            except (OSError, ValueError) as error:
                _log_failure(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _log_failure(error: OSError | ValueError) -> None:
    log.error("trace_sink_failed", reason=getattr(error, "strerror", None) or str(error))
