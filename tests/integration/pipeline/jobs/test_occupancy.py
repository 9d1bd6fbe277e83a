"""Levels over time, exactly: small frames, and random lifecycles against a list of all milliseconds."""

import random
from collections import Counter

import pytest

pytestmark = pytest.mark.spark

SERIES = ("run_id", "side", "broker", "purgatory", "key")


@pytest.fixture
def occupancies(events_frame):
    """Return a function from events to (buckets, summary) as lists of rows."""
    from integration.pipeline.jobs.lifecycle import lifecycles
    from integration.pipeline.jobs.occupancy import occupancy, occupancy_summary

    def compute(rows, bucket_ms):
        lives = lifecycles(events_frame(rows)).cache()
        buckets = occupancy(lives, bucket_ms).cache()
        summary = occupancy_summary(buckets, lives, bucket_ms).collect()
        found = buckets.orderBy(*SERIES, "bucket_start_ms").collect()
        buckets.unpersist()
        lives.unpersist()
        return found, summary

    return compute


def test_the_table_of_the_documentation(occupancies, life):
    rows = [
        *life(1, 10, 14, keys=["k"]),
        *life(2, 12, 14, keys=["k"]),
        *life(3, 18, 20, keys=["k"]),
    ]
    buckets, summary = occupancies(rows, 5)
    whole = [row for row in buckets if row.key is None]
    assert [
        (r.bucket_start_ms, r.opening, r.closing, r.peak, r.mean, r.area_ms) for r in whole
    ] == [(10, 0, 0, 2, 1.2, 6), (15, 0, 1, 1, 0.4, 2), (20, 1, 0, 0, 0.0, 0)]
    (total,) = [row for row in summary if row.key is None]
    assert (total.peak, total.parked_ms, total.mean, total.heat) == (2, 8, 0.8, None)


def test_a_bucket_that_opens_high_has_at_least_that_peak(occupancies, life):
    buckets, _ = occupancies([*life(1, 10, 17), *life(2, 10, 18)], 5)
    (later,) = [row for row in buckets if row.key is None and row.bucket_start_ms == 15]
    assert (later.opening, later.closing, later.peak, later.area_ms) == (2, 0, 2, 5)


def test_changes_within_one_millisecond_are_one_change(occupancies, life):
    buckets, _ = occupancies([*life(1, 10, 12), *life(2, 12, 14)], 10)
    assert max(row.peak for row in buckets) == 1


def test_an_operation_counts_under_each_of_its_keys_and_once_for_the_purgatory(occupancies, life):
    _, summary = occupancies(life(1, 10, 20, keys=["a", "b", "a"]), 10)
    assert {row.key: (row.peak, row.parked_ms) for row in summary} == {
        None: (1, 10),
        "a": (1, 10),
        "b": (1, 10),
    }


def test_keys_are_ranked_by_their_parked_milliseconds(occupancies, life):
    rows = [*life(1, 10, 15, keys=["cold"]), *life(2, 10, 90, keys=["hot"])]
    _, summary = occupancies(rows, 10)
    assert {row.key: row.heat for row in summary} == {None: None, "hot": 1, "cold": 2}


def test_operation_without_an_end_is_parked_to_the_end_of_its_run(occupancies, life):
    _, summary = occupancies([*life(1, 10), *life(2, 40, 50, purgatory="Fetch")], 8)
    (total,) = [row for row in summary if row.purgatory == "Produce" and row.key is None]
    assert (total.peak, total.parked_ms, total.mean) == (1, 40, 1.0)


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
    return {
        key: (max(level.values(), default=0), sum(level.values())) for key, level in levels.items()
    }


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
        row
        for number, (keys, parked, ended) in enumerate(operations)
        for row in life(number, parked, ended, keys=keys)
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
