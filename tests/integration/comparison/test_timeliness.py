import pytest
from broker_sim_integration.comparison.distribution import LEAST_SAMPLES
from broker_sim_integration.comparison.timeliness import (
    KAFKA_LATE_MS,
    LATE_MS,
    OUTLIER_MS,
    ROUNDING_MS,
    distributed_steps,
    early_ms,
    is_true_of_kafka,
    late_ms,
    limit_ms,
)
from broker_sim_integration.observations import Observation, at_once, at_timeout, on_event, untimed
from hypothesis import given
from hypothesis import strategies as st

SPREAD = on_event(300, earliest_ms=280, spread_ms=500, reason="a follower's fetch")


@pytest.mark.parametrize(
    ("timing", "first_ms", "last_ms"),
    [
        (at_once(), 0, LATE_MS),
        (at_timeout(500), 500, 500 + LATE_MS),
        (on_event(300), 300, 300 + LATE_MS),
        (on_event(300, earliest_ms=280), 280, 300 + LATE_MS),
        (SPREAD, 280, 800 + LATE_MS),
        (untimed("it polls"), 0, 1e9),
    ],
)
def test_a_response_is_in_time_from_its_earliest_moment_to_its_limit(timing, first_ms, last_ms):
    for elapsed_ms, in_time in (
        (first_ms - 0.1, first_ms == 0),
        (first_ms, True),
        (last_ms, True),
        (last_ms + 0.1, last_ms == 1e9),
    ):
        seen = Observation("s", elapsed_ms=elapsed_ms, timing=timing)
        assert (early_ms(seen) or late_ms(seen, LATE_MS)) is not in_time


def test_only_kafka_may_round_a_millisecond_away():
    for elapsed_ms, early in ((498.0, True), (499.5, False)):
        seen = Observation("s", elapsed_ms=elapsed_ms, timing=at_timeout(500))
        assert early_ms(seen) == 500 - elapsed_ms
        assert bool(early_ms(seen, ROUNDING_MS)) is early
        assert is_true_of_kafka([seen]) is not early


@given(st.floats(0, 1000), st.floats(0, 1000))
def test_no_more_than_the_stall_is_excused(lateness_ms, stalled_ms):
    seen = Observation("s", elapsed_ms=500 + lateness_ms, timing=at_timeout(500), stalled_ms=stalled_ms)
    assert late_ms(seen, LATE_MS) == pytest.approx(max(0, lateness_ms - stalled_ms - LATE_MS))


@given(st.floats(0, 1000), st.floats(0, 400))
def test_a_stall_does_not_excuse_an_early_response(stalled_ms, elapsed_ms):
    seen = Observation("s", elapsed_ms=elapsed_ms, timing=at_timeout(500), stalled_ms=stalled_ms)
    assert early_ms(seen)
    assert not late_ms(seen, LATE_MS)


@pytest.mark.parametrize(("attempts", "limit"), [(LEAST_SAMPLES - 1, LATE_MS), (LEAST_SAMPLES, OUTLIER_MS)])
def test_one_of_many_attempts_has_a_wider_limit(attempts, limit):
    seen = [Observation("s", timing=at_once(), attempt=turn) for turn in range(1, attempts + 1)]
    assert limit_ms(seen[0], distributed_steps(seen)) == limit


def test_kafka_shows_whether_the_timing_is_true():
    def seen(elapsed_ms):
        return [Observation("s", elapsed_ms=elapsed_ms, timing=at_timeout(500))]

    assert is_true_of_kafka(seen(500 + KAFKA_LATE_MS))
    assert not is_true_of_kafka(seen(500.1 + KAFKA_LATE_MS))
    assert not is_true_of_kafka(seen(498))


def test_untimed_attempts_are_no_distribution():
    assert distributed_steps([Observation("s", timing=untimed("a reason"))] * LEAST_SAMPLES) == frozenset()
