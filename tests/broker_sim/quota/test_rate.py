"""Tests of rates over windows of samples, with the throttle times of Kafka 4.3.1 for the same requests."""

import pytest

from broker_sim.quota.rate import Rate, Window

KAFKAS = Window(samples=11, sample_ms=1_000)
SMALL = Window(samples=3, sample_ms=1_000)


def rate_of(window, *records):
    rate = Rate(window)
    for at_ms, value in records:
        rate.record(value, at_ms)
    return rate


@pytest.mark.parametrize(
    ("records", "now_ms", "window_ms", "rate"),
    [
        ([], 0, 2_000, 0),
        ([(0, 10)], 0, 2_000, 5),
        ([(0, 10), (900, 20)], 900, 2_900, 30 / 2.9),
        ([(0, 10), (900, 20), (1_000, 30)], 1_000, 2_000, 30),
        # The window begins in the middle of the oldest sample, whose end still counts.
        ([(0, 10), (900, 20), (1_000, 30)], 3_000, 3_000, 20),
        ([(0, 10), (900, 20), (1_000, 30)], 3_900, 2_900, 30 / 2.9),
        ([(0, 10), (900, 20), (1_000, 30)], 4_000, 2_000, 0),
        ([(0, 10), (0, -10)], 0, 2_000, 0),
        # Four samples, one more than configured, are used in turn.
        ([(at_ms, 1) for at_ms in range(0, 10_000, 1_000)], 9_000, 2_000, 1.5),
    ],
)
def test_rate_over_the_window(records, now_ms, window_ms, rate):
    measured = rate_of(SMALL, *records)
    assert measured.measure(now_ms) == pytest.approx(rate)
    assert measured.window_size_ms(now_ms) == window_ms


def test_a_single_sample_has_a_window_of_at_least_a_millisecond():
    rate = rate_of(Window(1, 1_000), (500, 3))
    assert rate.measure(500) == 3_000
    assert rate.window_size_ms(500) == 1


def test_rate_at_the_bound_is_not_throttled():
    assert rate_of(KAFKAS, (0, 10_000)).throttle_time_ms(1_000, 0) == 0
    assert rate_of(KAFKAS, (0, 10_001)).throttle_time_ms(1_000, 0) == 1


def test_throttle_times_of_produce_requests_are_kafkas():
    """Kafka 4.3.1: 0, 0, 0, 2401, 5097, 8101 ms for the same six requests."""
    rate = Rate(KAFKAS)
    now_ms, throttled = 0, []
    for _ in range(6):
        rate.record(3_101, now_ms)
        throttled.append(rate.throttle_time_ms(1_000, now_ms))
        now_ms += throttled[-1]
    assert throttled == [0, 0, 0, 2_404, 5_101, 8_101]


def test_throttle_time_of_a_large_request_is_kafkas():
    """Kafka 4.3.1: 8220 ms at 500 bytes per second, and 26219 ms after the next one."""
    rate = rate_of(KAFKAS, (0, 9_110))
    assert rate.throttle_time_ms(500, 0) == 8_220
    rate.record(9_110, 8_220)
    assert rate.throttle_time_ms(500, 8_220) == 26_220
