"""A traced purgatory in virtual time, and operations for it."""

import gzip
import json

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, InlineExecutor, SystemTimer, VirtualClock

from broker_sim.errors import ErrorCode
from broker_sim.runtime.delayed_request import DelayedRequest
from broker_sim.trace import Trace

WALL_START_MS = 1_700_000_000_000


class Switched(DelayedRequest):
    """Completes once it is `completable`."""

    __slots__ = ("answer", "completable")

    api = "Produce"

    def __init__(self, delay_ms=100, client_id="client-1"):
        super().__init__(delay_ms, client_id)
        self.completable = False
        self.answer = ErrorCode.REQUEST_TIMED_OUT

    @property
    def error_code(self):
        return self.answer

    def try_complete(self):
        if self.completable:
            self.answer = ErrorCode.NONE
        return self.completable and self.force_complete()

    def on_complete(self):
        pass

    def on_expiration(self):
        pass


class Traced:
    """A traced purgatory in virtual time."""

    def __init__(self, path, *sinks, **options):
        self.path = path
        self.clock = VirtualClock(wall_start_ms=WALL_START_MS)
        self.trace = Trace(path, *sinks, run_id="run", **options)
        tracer = self.trace.observer("Produce", 7, self.clock)
        timer = SystemTimer("Produce", self.clock, InlineExecutor())
        self.purgatory = DelayedOperationPurgatory("Produce", timer, broker_id=7, reaper_enabled=False, observer=tracer)
        tracer.attach(self.purgatory)

    def park(self, *keys, **options):
        """Try an operation that has to wait, and return it."""
        operation = Switched(**options)
        self.purgatory.try_complete_else_watch(operation, keys)
        return operation

    def advance(self, by_ms):
        self.clock.advance(by_ms)
        self.purgatory.advance_clock(0)

    def lines(self):
        """End the trace and return its lines."""
        self.trace.close()
        opened = gzip.open if self.path.suffix == ".gz" else open
        with opened(self.path, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]


@pytest.fixture
def make_traced(tmp_path):
    """Make a traced purgatory; its trace and its timer end with the test."""
    made = []

    def make(*sinks, name="trace.jsonl", **options):
        made.append(Traced(tmp_path / name, *sinks, **options))
        return made[-1]

    yield make
    for traced in made:
        traced.trace.close()
        traced.purgatory.shutdown()


@pytest.fixture
def traced(make_traced):
    return make_traced()
