import gc
import weakref

import pytest
from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.cluster_under_test.polling import poll_until
from broker_sim_integration.comparison.intervals import covered_ms
from broker_sim_integration.comparison.machine import (
    PERIOD_MS,
    STALL_MS,
    ControlTimer,
    Stalls,
    collections_of_new_objects_only,
)
from hypothesis import given
from hypothesis import strategies as st


def waited(*waits):
    """A control timer that waited until the first moment of each pair and woke at the second."""
    found = Stalls()
    for due_ms, woke_ms in waits:
        found.wait_until(due_ms)
        found.woke(woke_ms)
    return found


def test_small_lateness_of_the_timer_is_no_stall():
    assert waited((100, 100 + STALL_MS - 0.1)).stalls(200) == []
    assert waited((100, 100 + STALL_MS)).stalls(200) == [(100, 100 + STALL_MS)]


def test_a_stall_that_has_not_ended_counts():
    found = waited((5, 5))
    found.wait_until(10)
    assert found.stalls(60) == [(10, 60)]
    assert found.stalls(10 + STALL_MS - 0.1) == []


def test_lateness_is_that_since_a_moment():
    found = waited((0, 1), (10, 13), (20, 22))
    assert found.lateness().maximum == 3
    assert (found.lateness(21).count, found.lateness(21).maximum) == (1, 2)
    assert found.lateness(30) is None


@given(st.lists(st.floats(0, 100), max_size=20), st.floats(0, 2_000), st.floats(0, 2_000))
def test_no_more_is_excused_than_the_time_that_passed(lateness, one, other):
    found, now = Stalls(), 0.0
    for late_ms in lateness:
        found.wait_until(now + PERIOD_MS)
        now += PERIOD_MS + late_ms
        found.woke(now)
    since, until = sorted((one, other))
    excused_ms = covered_ms(found.stalls(now), since, until)
    assert 0 <= excused_ms <= until - since + 1e-6
    assert excused_ms <= sum(lateness) + 1e-6


@pytest.mark.threads
def test_the_thread_waits_again_and_again_until_its_end():
    with ControlTimer() as control:
        poll_until(lambda: (found := control.lateness()) and found.count >= 3, "three waits")
    assert control.lateness().p50 >= 0
    ended_ms = now_ms()
    assert covered_ms(control.stalls(ended_ms + 1e6), ended_ms, ended_ms + 1e6) == 0


class Node:
    """May be in a cycle, which only a collection finds."""


def cycle():
    node = Node()
    node.itself = node
    return weakref.ref(node)


@pytest.fixture
def nothing_frozen():
    assert gc.get_freeze_count() == 0
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("nothing_frozen")
def test_old_objects_are_passed_over_and_new_garbage_is_still_found():
    old = Node()
    with collections_of_new_objects_only():
        assert not any(known is old for known in gc.get_objects())
        found = cycle()
        gc.collect()
        assert found() is None
    assert gc.get_freeze_count() == 0
    assert any(known is old for known in gc.get_objects())


@pytest.mark.usefixtures("nothing_frozen")
def test_garbage_goes_before_its_objects_are_passed_over():
    was_on = gc.isenabled()
    gc.disable()
    try:
        found = cycle()
        with collections_of_new_objects_only():
            assert found() is None
    finally:
        if was_on:
            gc.enable()


@pytest.mark.usefixtures("nothing_frozen")
def test_only_the_outermost_block_ends_it():
    with collections_of_new_objects_only():
        with collections_of_new_objects_only():
            assert gc.get_freeze_count() > 0
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("nothing_frozen")
def test_objects_that_the_caller_froze_stay_frozen():
    gc.freeze()
    with pytest.raises(ZeroDivisionError), collections_of_new_objects_only():
        raise ZeroDivisionError
    assert gc.get_freeze_count() > 0


@pytest.mark.usefixtures("nothing_frozen")
def test_the_block_ends_when_it_raises():
    with pytest.raises(ZeroDivisionError), collections_of_new_objects_only():
        raise ZeroDivisionError
    assert gc.get_freeze_count() == 0
