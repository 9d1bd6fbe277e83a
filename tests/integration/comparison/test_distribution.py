import random

import pytest
from broker_sim_integration.comparison.distribution import (
    LEAST_SAMPLES,
    P50_MS,
    P95_MS,
    Distribution,
    Machines,
    compare_samples,
)
from broker_sim_integration.observations import TimingClass
from hypothesis import given
from hypothesis import strategies as st

SAMPLES = st.lists(st.floats(0, 40), min_size=LEAST_SAMPLES, max_size=60)


UNKNOWN = Machines()


def compare(kafka, sim, *, machines=UNKNOWN, spread_ms=0.0):
    return compare_samples("name", TimingClass.AT_TIMEOUT, kafka, sim, spread_ms=spread_ms, machines=machines)


def test_percentiles_are_the_nearest_rank():
    found = Distribution.of(range(1, 101))
    assert (found.count, found.p50, found.p95, found.p99, found.maximum) == (100, 50, 95, 99, 100)


def test_a_single_sample_is_every_percentile():
    found = Distribution.of([7.5])
    assert (found.p50, found.p99, found.maximum) == (7.5, 7.5, 7.5)


@given(SAMPLES)
def test_a_side_agrees_with_itself(samples):
    assert compare(samples, samples).verdict == "agrees"


@given(SAMPLES, st.floats(P95_MS + 0.1, 1_000))
def test_whatever_is_later_by_more_than_both_limits_differs(samples, added_ms):
    found = compare(samples, [sample + added_ms for sample in samples])
    assert found.verdict == "differs"
    assert "p50" in found.reason
    assert "p95" in found.reason


@given(SAMPLES, st.floats(0, P50_MS - 0.1))
def test_whatever_is_later_by_less_than_both_limits_agrees(samples, added_ms):
    assert compare(samples, [sample + added_ms for sample in samples]).agrees


@given(SAMPLES, st.floats(0, 1_000))
def test_sooner_than_kafka_agrees(samples, added_ms):
    assert compare([sample + added_ms for sample in samples], samples).agrees


def test_late_at_the_95th_percentile_alone_differs():
    late = [1.0] * 90 + [1.1 + P95_MS] * 10
    assert compare([1.0] * 100, late).reason.startswith("p95 8.1 ms later")


def test_one_outlier_of_many_does_not_decide():
    assert compare([1.0] * LEAST_SAMPLES, [1.0] * (LEAST_SAMPLES - 1) + [150.0]).agrees


def test_few_samples_are_not_judged():
    found = compare([1.0] * LEAST_SAMPLES, [99.0] * (LEAST_SAMPLES - 1))
    assert (found.judged, found.agrees, found.verdict) == (False, True, "")


def busy(p50, p95):
    return Distribution(100, p50, p95, p95, p95)


@pytest.mark.parametrize(
    ("machines", "agrees"),
    [
        (Machines(busy(0.1, 0.2), busy(2.1, 5.2)), True),
        (Machines(busy(0.1, 0.2), busy(1.9, 5.2)), False),
        (Machines(busy(0.1, 0.2), busy(2.1, 1.9)), False),
        (Machines(busy(2.1, 5.2), busy(2.1, 5.2)), False),
        (Machines(busy(2.1, 5.2), busy(0.1, 0.2)), False),
        (Machines(None, busy(2.1, 5.2)), True),
        (Machines(None, None), False),
    ],
)
def test_what_the_machine_added_to_our_run_alone_is_allowed_too(machines, agrees):
    sim = [1.0 + P50_MS + 2] * 50 + [1.0 + P95_MS + 2] * 50
    assert compare([1.0] * 100, sim, machines=machines).agrees is agrees


@given(SAMPLES)
def test_waits_that_are_20_ms_later_differ_on_a_machine_that_is_busy_now_and_then(samples):
    machines = Machines(busy(0.1, 0.3), busy(3, 60))
    assert not compare(samples, [sample + 20 for sample in samples], machines=machines).agrees


@pytest.mark.parametrize("seed", range(20))
def test_the_chance_in_a_spread_is_allowed(seed):
    chance = random.Random(seed)
    kafka, sim = ([chance.uniform(0, 500) for _ in range(40)] for _ in range(2))
    assert compare(kafka, sim, spread_ms=500).agrees, seed


@pytest.mark.parametrize(("low", "high"), [(0, 120), (380, 500), (400, 900)])
@pytest.mark.parametrize("seed", range(5))
def test_another_mechanism_within_a_spread_differs(seed, low, high):
    chance = random.Random(seed)
    kafka = [chance.uniform(0, 500) for _ in range(100)]
    sim = [chance.uniform(low, high) for _ in range(100)]
    assert not compare(kafka, sim, spread_ms=500).agrees, seed
