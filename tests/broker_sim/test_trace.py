"""The trace has every step of every delayed operation, in order, as one JSON line each."""

import errno
import gc
import gzip
import json
import os
import sys

import pytest

from broker_sim.delayed_request import DelayedRequest, first_error
from broker_sim.errors import ErrorCode
from broker_sim.topic_partition import TopicPartition
from broker_sim.trace import FIELDS, WATCHED_AGE_MS, Trace
from purgatory import (
    DelayedOperation,
    DelayedOperationPurgatory,
    InlineExecutor,
    SystemTimer,
    VirtualClock,
)

WALL_START_MS = 1_700_000_000_000
KEY = TopicPartition("orders", 0)
TEXT_KEY = 'sch"ön\n'


class Switched(DelayedRequest):
    """Completes when it is told to."""

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


class Plain(DelayedOperation):
    """Knows neither API nor client."""

    __slots__ = ()

    def try_complete(self):
        return self.force_complete()

    def on_complete(self):
        pass

    def on_expiration(self):
        pass


class Traced:
    """A traced purgatory in virtual time."""

    def __init__(self, path, *sinks):
        self.path = path
        self.clock = VirtualClock(wall_start_ms=WALL_START_MS)
        self.trace = Trace(path, *sinks, run_id="run", clock=self.clock)
        tracer = self.trace.observer("Produce", 7)
        timer = SystemTimer("Produce", self.clock, InlineExecutor())
        self.purgatory = DelayedOperationPurgatory(
            "Produce", timer, broker_id=7, reaper_enabled=False, observer=tracer
        )
        tracer.attach(self.purgatory)

    def advance(self, by_ms):
        self.clock.advance(by_ms)
        self.purgatory.advance_clock(0)

    def lines(self):
        """End the trace and return its lines."""
        self.trace.close()
        opened = gzip.open if self.path.suffix == ".gz" else open
        with opened(self.path, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]


@pytest.fixture(params=["trace.jsonl", "trace.jsonl.gz"])
def traced(tmp_path, request):
    made = Traced(tmp_path / request.param)
    yield made
    made.trace.close()
    made.purgatory.shutdown()


def test_a_completed_operation_leaves_three_lines_with_all_fields(traced):
    operation = Switched()
    traced.purgatory.try_complete_else_watch(operation, [KEY])
    traced.advance(30)
    operation.completable = True
    traced.purgatory.check_and_complete(KEY)
    tried, parked, completed = traced.lines()
    common = {
        "run_id": "run",
        "side": "sim",
        "broker": 7,
        "purgatory": "Produce",
        "operation_id": 1,
        "keys": ["orders-0"],
        "api": "Produce",
        "client_id": "client-1",
        "delay_ms": 100,
        "lateness_ms": None,
    }
    waiting = {"waited_ms": None, "completed_by": None, "error_code": None, "ts_ms": WALL_START_MS}
    assert tried == {**common, **waiting, "event": "tried", "watched": 0, "num_delayed": 0}
    assert parked == {**common, **waiting, "event": "parked", "watched": 0, "num_delayed": 1}
    assert completed == {
        **common,
        "ts_ms": WALL_START_MS + 30,
        "event": "completed",
        "waited_ms": 30,
        "completed_by": "key:orders-0",
        "error_code": 0,
        "watched": 1,
        "num_delayed": 0,
    }
    assert tuple(tried) == FIELDS


def test_an_operation_that_need_not_wait_is_completed_immediately(traced):
    operation = Switched()
    operation.completable = True
    traced.purgatory.try_complete_else_watch(operation, [KEY])
    lines = traced.lines()
    assert [line["event"] for line in lines] == ["tried", "completed"]
    assert lines[1]["completed_by"] == "immediate"
    assert lines[1]["waited_ms"] == 0


def test_an_expired_operation_tells_how_late_it_was_and_its_error(traced):
    traced.purgatory.try_complete_else_watch(Switched(100), [KEY])
    traced.advance(99)
    traced.advance(4)
    *_, expired = traced.lines()
    assert expired["event"] == "expired"
    assert expired["completed_by"] == "timer"
    assert (expired["waited_ms"], expired["lateness_ms"]) == (103, 3)
    assert expired["error_code"] == ErrorCode.REQUEST_TIMED_OUT


def test_what_is_dropped_at_shutdown_is_cancelled(traced):
    traced.purgatory.try_complete_else_watch(Switched(), [KEY])
    traced.purgatory.shutdown()
    *_, last = traced.lines()
    assert (last["event"], last["completed_by"]) == ("cancelled", None)


def test_what_an_operation_does_not_know_is_null(traced):
    traced.purgatory.try_complete_else_watch(Plain(5), [KEY])
    *_, last = traced.lines()
    assert (last["api"], last["client_id"], last["error_code"]) == (None, None, None)


def test_any_text_survives(traced):
    traced.purgatory.try_complete_else_watch(Switched(client_id=TEXT_KEY), [TEXT_KEY, KEY])
    traced.purgatory.check_and_complete(TEXT_KEY)
    *_, last = traced.lines()
    assert last["client_id"] == TEXT_KEY
    assert last["keys"] == [TEXT_KEY, "orders-0"]


def test_keys_that_are_equal_but_not_of_one_type_keep_their_texts(traced):
    traced.purgatory.try_complete_else_watch(Switched(), [("orders", 0)])
    traced.purgatory.try_complete_else_watch(Switched(), [KEY])
    keys = [line["keys"] for line in traced.lines() if line["event"] == "parked"]
    assert keys == [["('orders', 0)"], ["orders-0"]]


def test_sizes_are_those_of_the_purgatory(traced):
    for _ in range(3):
        traced.purgatory.try_complete_else_watch(Switched(1000), [KEY])
        traced.clock.advance(WATCHED_AGE_MS)
    parked = [line for line in traced.lines() if line["event"] == "parked"]
    assert [line["num_delayed"] for line in parked] == [1, 2, 3]
    assert [line["watched"] for line in parked] == [0, 1, 2]


def test_flush_brings_all_lines_into_the_file(tmp_path):
    traced = Traced(tmp_path / "trace.jsonl")
    traced.purgatory.try_complete_else_watch(Switched(), [KEY])
    traced.trace.flush()
    assert len(traced.path.read_text().splitlines()) == 2
    traced.trace.close()
    traced.trace.close()
    assert len(traced.path.read_text().splitlines()) == 2


def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path):
    with pytest.raises(FileNotFoundError):
        Trace(tmp_path / "missing" / "trace.jsonl", run_id="run")


class FullDisk:
    """A sink that cannot be written."""

    def write(self, lines):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self):
        self.write([])


def test_a_sink_that_fails_later_is_given_up_and_the_others_go_on(tmp_path):
    traced = Traced(tmp_path / "trace.jsonl", FullDisk())
    for _ in range(2):
        traced.purgatory.try_complete_else_watch(Switched(), [KEY])
        traced.trace.flush()
    assert len(traced.lines()) == 4


def test_an_operation_that_has_ended_is_not_kept_by_its_trace(tmp_path):
    traced = Traced(tmp_path / "trace.jsonl")
    operation = Switched()
    operation.completable = True
    traced.purgatory.try_complete_else_watch(operation, [KEY])
    # Only this frame, and gc.get_referrers' own argument list, know it.
    assert [ref for ref in gc.get_referrers(operation) if ref is not sys._getframe()] == []
    assert len(traced.lines()) == 2


def test_the_first_error_of_many_is_the_one_that_is_told():
    codes = [ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT]
    assert first_error(codes) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert first_error([]) is ErrorCode.NONE
    assert first_error([ErrorCode.NONE]) is ErrorCode.NONE
