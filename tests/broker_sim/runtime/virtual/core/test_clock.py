from __future__ import annotations

import math
import threading

import pytest

from broker_sim.runtime.virtual import LoopClock
from broker_sim.runtime.virtual.core.clock import delay_to_ns


@pytest.mark.parametrize(
    ("delay_s", "expected_ns"),
    [
        (-1, 0),
        (0, 0),
        (3.6e-16, 1_000),
        (1e-6, 1_000),
        (1.4e-6, 2_000),
        (0.1, 100_000_000),
        (4.1 - 4.0, 100_000_000),
        (1.1 + 2.2, 3_300_000_000),
        (30, 30_000_000_000),
        (math.inf, 10**18),
    ],
)
def test_delay_is_rounded_up_to_whole_microseconds_and_at_least_one(delay_s, expected_ns):
    assert delay_to_ns(delay_s) == expected_ns


def test_delay_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="NaN"):
        delay_to_ns(math.nan)


def test_clock_rounds_readings_down_and_deadlines_up():
    clock = LoopClock(wall_start_ms=1_000)
    assert (clock.now_ms(), clock.wall_clock_ms()) == (0, 1_000)
    clock.move_to_ns(5_000_000)
    assert (clock.now_ms(), clock.deadline_ms(10)) == (5, 15)
    clock.move_to_ns(5_000_001)
    assert (clock.now_ms(), clock.deadline_ms(10)) == (5, 16)
    assert clock.seconds_until(6) == 0.000999999
    assert clock.wall_clock_ms() == 1_005
    assert clock.wall_clock_ns() == 1_005_000_001


def test_time_never_goes_back():
    clock = LoopClock()
    clock.move_to_ns(1_000)
    with pytest.raises(AssertionError, match="never goes back"):
        clock.move_to_ns(999)


def test_nobody_waits_on_the_clock():
    assert LoopClock().wait_until(threading.Condition(), 10) is False
