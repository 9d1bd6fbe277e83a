"""Clocks: time never goes back, and a delay never ends before its length has passed."""

import threading
import time
from contextlib import ExitStack, contextmanager
from unittest import mock

import freezegun
import pytest
import time_machine
from broker_sim_purgatory import SystemClock, VirtualClock


def test_virtual_time_stands_still_until_it_is_moved():
    clock = VirtualClock(start_ms=5, wall_start_ms=1_000)
    assert (clock.now_ms(), clock.wall_clock_ms()) == (5, 1_000)
    clock.advance(7)
    assert (clock.now_ms(), clock.wall_clock_ms()) == (12, 1_007)
    clock.advance_to(12)
    clock.advance_to(20)
    assert (clock.now_ms(), clock.wall_clock_ms()) == (20, 1_015)


def test_virtual_time_never_goes_back():
    clock = VirtualClock(start_ms=5)
    with pytest.raises(ValueError, match="never goes back"):
        clock.advance_to(4)
    with pytest.raises(ValueError, match="never goes back"):
        clock.advance(-1)
    assert clock.now_ms() == 5


def test_virtual_deadline_is_exact():
    assert VirtualClock(start_ms=5).deadline_ms(10) == 15


def test_nothing_waits_on_virtual_time():
    condition = threading.Condition()
    with condition:
        assert VirtualClock().wait_until(condition, 10**9) is False


def test_system_clock_is_monotonic_and_its_wall_clock_counts_from_1970():
    clock = SystemClock()
    readings = [clock.now_ms() for _ in range(1_000)]
    assert readings == sorted(readings)
    earliest_ns = time.monotonic_ns()
    now_ms = clock.now_ms()
    assert earliest_ns // 1_000_000 <= now_ms <= time.monotonic_ns() // 1_000_000
    assert abs(clock.wall_clock_ms() - time.time() * 1_000) < 60_000


def test_system_deadline_lies_a_full_delay_ahead_and_less_than_a_millisecond_more():
    clock = SystemClock()
    for delay_ms in (0, 1, 30_000) * 300:
        before_ns = time.monotonic_ns()
        deadline_ns = clock.deadline_ms(delay_ms) * 1_000_000
        after_ns = time.monotonic_ns()
        assert deadline_ns >= before_ns + delay_ms * 1_000_000
        assert deadline_ns < after_ns + delay_ms * 1_000_000 + 1_000_000


@pytest.mark.threads
def test_system_wait_lasts_until_the_deadline():
    clock = SystemClock()
    condition = threading.Condition()
    deadline_ms = clock.deadline_ms(20)
    with condition:
        assert clock.wait_until(condition, deadline_ms) is True
        assert clock.now_ms() >= deadline_ms
        assert clock.wait_until(condition, deadline_ms) is True  # past deadlines do not wait


def frozen_by_freezegun():
    return freezegun.freeze_time("2024-01-01")


def frozen_by_time_machine():
    return time_machine.travel("2024-01-01", tick=False)


@contextmanager
def frozen_by_mocks():
    names = ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch(f"time.{name}", return_value=0))
        yield


@pytest.mark.parametrize("frozen", [frozen_by_freezegun, frozen_by_time_machine, frozen_by_mocks])
def test_system_clock_goes_on_where_a_test_freezes_time(frozen):
    clock = SystemClock()
    before_ms, wall_before_ms = clock.now_ms(), clock.wall_clock_ms()
    with frozen():
        frozen_ms, frozen_deadline_ms, wall_ms = clock.now_ms(), clock.deadline_ms(0), clock.wall_clock_ms()
    after_ms, wall_after_ms = clock.now_ms(), clock.wall_clock_ms()
    assert before_ms <= frozen_ms <= frozen_deadline_ms <= after_ms + 1
    assert wall_before_ms - 1 <= wall_ms <= wall_after_ms + 1
