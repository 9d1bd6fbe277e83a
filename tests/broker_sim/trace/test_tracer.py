"""The trace has every step of every delayed operation, in order."""

import gc
import sys

import pytest
from broker_sim_purgatory import DelayedOperation

from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.trace.tracer import WATCHED_AGE_MS

KEY = TopicPartition("orders", 0)


class Plain(DelayedOperation):
    """Has neither an API nor a client."""

    __slots__ = ()

    def try_complete(self):
        return self.force_complete()

    def on_complete(self):
        pass

    def on_expiration(self):
        pass


def events(lines):
    return [line["event"] for line in lines]


def test_completed_operation_has_three_lines_with_its_figures(traced):
    operation = traced.park(KEY)
    traced.advance(30)
    operation.completable = True
    traced.purgatory.check_and_complete(KEY)
    tried, parked, completed = traced.lines()
    assert events([tried, parked, completed]) == ["tried", "parked", "completed"]
    for line in (tried, parked):
        assert line["waited_ms"] is line["completed_by"] is line["error_code"] is None
    assert completed["ts_ms"] == tried["ts_ms"] + 30
    assert (completed["waited_ms"], completed["lateness_ms"]) == (30, None)
    assert (completed["completed_by"], completed["error_code"]) == ("key:orders-0", 0)
    assert [line["watched"] for line in (tried, parked, completed)] == [0, 0, 1]


def test_operation_that_need_not_wait_completes_immediately(traced):
    traced.purgatory.try_complete_else_watch(Plain(5), [KEY])
    lines = traced.lines()
    assert events(lines) == ["tried", "completed"]
    assert (lines[1]["completed_by"], lines[1]["waited_ms"]) == ("immediate", 0)


@pytest.mark.parametrize("late_ms", [0, 1, 4])
def test_expired_operation_has_its_lateness_and_its_error(traced, late_ms):
    traced.park(KEY, delay_ms=100)
    traced.advance(99)
    traced.advance(1 + late_ms)
    *_, expired = traced.lines()
    assert (expired["event"], expired["completed_by"]) == ("expired", "timer")
    assert (expired["waited_ms"], expired["lateness_ms"]) == (100 + late_ms, late_ms)
    assert expired["error_code"] == ErrorCode.REQUEST_TIMED_OUT


def test_operation_that_is_parked_at_shutdown_is_cancelled(traced):
    traced.park(KEY)
    traced.purgatory.shutdown()
    *_, last = traced.lines()
    assert (last["event"], last["completed_by"]) == ("cancelled", None)


def test_api_client_and_error_of_another_operation_are_null(traced):
    traced.purgatory.try_complete_else_watch(Plain(5), [KEY])
    *_, last = traced.lines()
    assert (last["api"], last["client_id"], last["error_code"]) == (None, None, None)


def test_sizes_are_those_of_the_purgatory(traced):
    for _ in range(3):
        traced.park(KEY, delay_ms=1000)
        traced.clock.advance(WATCHED_AGE_MS)
    parked = [line for line in traced.lines() if line["event"] == "parked"]
    # An operation is in the timer when it is reported as parked.
    assert [line["num_delayed"] for line in parked] == [1, 2, 3]
    assert [line["watched"] for line in parked] == [0, 1, 2]


def test_watched_is_counted_again_only_after_its_age(traced):
    for _ in range(2):
        traced.park(KEY, delay_ms=1000)
        traced.clock.advance(WATCHED_AGE_MS - 1)
    traced.clock.advance(1)
    traced.park(KEY, delay_ms=1000)
    tried = [line for line in traced.lines() if line["event"] == "tried"]
    assert [line["watched"] for line in tried] == [0, 0, 2]


def test_operation_that_concerns_only_the_untraced_topic_is_left_out(make_traced):
    traced = make_traced(untraced_topic="trace")
    own = TopicPartition("trace", 0)
    for keys in ((own,), (own, KEY), (KEY,)):
        operation = traced.park(*keys)
        operation.completable = True
        traced.purgatory.check_and_complete(keys[0])
    lines = traced.lines()
    assert events(lines) == ["tried", "parked", "completed"] * 2
    assert [line["keys"] for line in lines[::3]] == [["trace-0", "orders-0"], ["orders-0"]]


def test_operation_that_has_ended_is_not_kept_alive_by_its_trace(traced):
    operation = Plain(5)
    traced.purgatory.try_complete_else_watch(operation, [KEY])
    # Only this frame, and gc.get_referrers' own argument list, know it.
    assert [ref for ref in gc.get_referrers(operation) if ref is not sys._getframe()] == []
    assert len(traced.lines()) == 2
