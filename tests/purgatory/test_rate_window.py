"""The rate of the last minute, in virtual seconds."""

import pytest
from broker_sim_purgatory._rate_window import RateWindow


def test_rate_is_the_mean_since_the_start_while_that_is_less_than_a_minute():
    rate = RateWindow(start_ms=5_000)
    assert rate.per_second(5_000) == 0
    rate.mark(5_500, 3)
    assert rate.per_second(5_500) == 3  # never over less than a second
    rate.mark(6_900, 1)
    assert rate.per_second(7_000) == pytest.approx(2)


def test_rate_forgets_what_is_older_than_a_minute():
    rate = RateWindow(start_ms=0)
    rate.mark(100, 60)
    rate.mark(30_000, 120)
    assert rate.per_second(59_999) == pytest.approx(180 / 59.999)
    assert rate.per_second(60_000) == pytest.approx(2)
    assert rate.per_second(90_000) == 0
    assert rate.total == 180
