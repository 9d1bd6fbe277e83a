"""Levels over time, exactly: small frames, and random lifecycles against a list of all milliseconds."""

import random
from collections import Counter

import pytest

pytestmark = pytest.mark.spark

SERIES = ("run_id", "side", "broker", "purgatory", "key")


@pytest.fixture(scope="module")
def occupancies(events_frame):
    """Return a function from events to (buckets, summary) as lists of rows."""
    from broker_sim_integration.pipeline.jobs.lifecycle import lifecycles
    from broker_sim_integration.pipeline.jobs.occupancy import occupancy, occupancy_summary

    def compute(rows, bucket_ms):
        lives = lifecycles(events_frame(rows)).cache()
        buckets = occupancy(lives, bucket_ms).cache()
        summary = occupancy_summary(buckets, lives, bucket_ms).collect()
        found = buckets.orderBy(*SERIES, "bucket_start_ms").collect()
        buckets.unpersist()
        lives.unpersist()
        return found, summary

    return compute


@pytest.fixture(scope="module")
def run_of(occupancies, life):
    """Return a function from the name of a run to its (buckets, summary); one job computes all runs.

    A run knows nothing of the others, but keys are ranked over all runs: of a purgatory that no other run has.
    """
    runs = {
        "documentation": [*life(1, 10, 14, keys=["k"]), *life(2, 12, 14, keys=["k"]), *life(3, 18, 20, keys=["k"])],
        "opens high": [*life(1, 10, 17), *life(2, 10, 18)],
        "one millisecond": [*life(1, 10, 12), *life(2, 12, 14)],
        "keys": life(1, 10, 20, keys=["a", "b", "a"]),
        "heat": [
            *life(1, 10, 15, keys=["cold"], purgatory="Ranked"),
            *life(2, 10, 90, keys=["hot"], purgatory="Ranked"),
        ],
        "no end": [*life(1, 11), *life(2, 40, 52, purgatory="Fetch")],
    }
    rows = [event | {"run_id": name} for name, events in runs.items() for event in events]
    found = occupancies(rows, 5)
    return lambda name: [[row for row in table if row.run_id == name] for table in found]


def test_the_table_of_the_documentation(run_of):
    buckets, summary = run_of("documentation")
    whole = [row for row in buckets if row.key is None]
    assert [(r.bucket_start_ms, r.opening, r.closing, r.peak, r.mean, r.area_ms) for r in whole] == [
        (10, 0, 0, 2, 1.2, 6),
        (15, 0, 1, 1, 0.4, 2),
        (20, 1, 0, 0, 0.0, 0),
    ]
    (total,) = [row for row in summary if row.key is None]
    assert (total.peak, total.parked_ms, total.mean, total.heat) == (2, 8, 0.8, None)


def test_a_bucket_that_opens_high_has_at_least_that_peak(run_of):
    buckets, _ = run_of("opens high")
    (later,) = [row for row in buckets if row.key is None and row.bucket_start_ms == 15]
    assert (later.opening, later.closing, later.peak, later.area_ms) == (2, 0, 2, 5)


def test_changes_within_one_millisecond_are_one_change(run_of):
    buckets, _ = run_of("one millisecond")
    assert max(row.peak for row in buckets) == 1


def test_an_operation_counts_under_each_of_its_keys_and_once_for_the_purgatory(run_of):
    _, summary = run_of("keys")
    assert {row.key: (row.peak, row.parked_ms) for row in summary} == {None: (1, 10), "a": (1, 10), "b": (1, 10)}


def test_keys_are_ranked_by_their_parked_milliseconds(run_of):
    _, summary = run_of("heat")
    assert {row.key: row.heat for row in summary} == {None: None, "hot": 1, "cold": 2}


def test_operation_without_an_end_is_parked_to_the_end_of_its_run(run_of):
    _, summary = run_of("no end")
    (total,) = [row for row in summary if row.purgatory == "Produce" and row.key is None]
    assert (total.peak, total.parked_ms, total.mean) == (1, 41, 1.0)


def _by_hand(operations):
    """Return peak and parked milliseconds per series by counting every single millisecond."""
    end = max(ended for _, _, ended in operations)
    levels = {}
    for keys, parked, ended in operations:
        for key in {None, *keys}:
            for ms in range(parked, ended):
                levels.setdefault(key, Counter())[ms] += 1
            levels.setdefault(key, Counter())
    assert end
    return {key: (max(level.values(), default=0), sum(level.values())) for key, level in levels.items()}


@pytest.mark.soak(part="spark")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_lifecycles_agree_with_counting_every_millisecond(occupancies, life, seed):
    rng = random.Random(seed)
    operations = []
    for _ in range(60):
        parked = rng.randint(1000, 1400)
        ended = parked + rng.choice([0, 1, 5, 30, 200])
        operations.append((rng.sample(["a", "b", "c"], rng.randint(1, 3)), parked, ended))
    rows = [
        row for number, (keys, parked, ended) in enumerate(operations) for row in life(number, parked, ended, keys=keys)
    ]
    bucket_ms = rng.choice([7, 50, 1000])
    buckets, summary = occupancies(rows, bucket_ms)
    found = {row.key: (row.peak, row.parked_ms) for row in summary}
    assert found == _by_hand(operations), f"seed {seed}"
    level = Counter()
    for row in buckets:
        assert row.opening == level[row.key], f"seed {seed}"
        level[row.key] = row.closing
    assert not any(level.values()), f"seed {seed}"
