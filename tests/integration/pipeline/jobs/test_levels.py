"""Levels of whole columns against a list of every millisecond, and a task that holds few operations."""

import random
from collections import Counter

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("require_spark")]

RUN = {"run_id": "r", "side": "sim"}


def _table(rows):
    """Return operations as `levels` takes them: a row for each bucket in which something happened."""
    import pyarrow as pa

    kinds = {
        "run_id": pa.string(), "side": pa.string(), "broker": pa.int32(), "purgatory": pa.string(),
        "bucket_start_ms": pa.int64(), "keys": pa.list_(pa.string()),
        "parked_at_ms": pa.int64(), "ended_at_ms": pa.int64(),
    }  # fmt: skip
    return pa.Table.from_pylist([RUN | row for row in rows], schema=pa.schema(kinds))


def _random_operations(rng, bucket_ms):
    rows = []
    for _ in range(200):
        parked = 1_000 + rng.randrange(300)
        ended = rng.choice([None, parked, parked + rng.randrange(80)])
        operation = {
            "broker": rng.choice([1, 2]),
            "purgatory": rng.choice(["Produce", "Fetch"]),
            "keys": rng.sample(["a", "b", "c"], rng.randrange(3)),
            "parked_at_ms": parked,
            "ended_at_ms": ended,
        }
        starts = {at - at % bucket_ms for at in (parked, ended) if at is not None}
        rows += [operation | {"bucket_start_ms": start} for start in sorted(starts)]
    return rows


def _by_hand(rows, bucket_ms):
    """Return net, highest, risen_area, first_ms of each series and bucket, millisecond by millisecond."""
    changes = {}
    for row in rows:
        for key in (None, *row["keys"]):
            start = row["bucket_start_ms"]
            found = changes.setdefault((row["broker"], row["purgatory"], start, key), Counter())
            for at, by in ((row["parked_at_ms"], 1), (row["ended_at_ms"], -1)):
                if at is not None and start <= at < start + bucket_ms:
                    found[at] += by
    result = {}
    for series, found in changes.items():
        level, area, reached = 0, 0, []
        for at in range(series[2], series[2] + bucket_ms):
            if at in found:
                level += found[at]
                reached.append(level)
            area += level
        result[series] = (level, max(reached), area, min(found))
    return result


def _found(tables):
    return {
        (row["broker"], row["purgatory"], row["bucket_start_ms"], row["key"]): (
            row["net"], row["highest"], row["risen_area"], row["first_ms"],
        )
        for table in tables
        for row in table.to_pylist()
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_random_operations_agree_with_counting_every_millisecond(seed):
    from broker_sim_integration.pipeline.jobs.levels import levels

    rng = random.Random(seed)
    bucket_ms = rng.choice([1, 7, 50, 1_000])
    rows = _random_operations(rng, bucket_ms)
    assert _found([levels(_table(rows), bucket_ms)]) == _by_hand(rows, bucket_ms), f"seed {seed}"


def test_operations_of_two_runs_and_sides_are_distinguished():
    from broker_sim_integration.pipeline.jobs.levels import levels

    row = {
        "broker": 1, "purgatory": "Produce", "bucket_start_ms": 0, "keys": ["a"],
        "parked_at_ms": 1, "ended_at_ms": 3,
    }  # fmt: skip
    found = levels(_table([row, row | {"run_id": "r2"}, row | {"side": "kafka"}]), 10).to_pylist()
    assert len(found) == 6
    assert {(each["highest"], each["risen_area"]) for each in found} == {(1, 2)}


@pytest.mark.parametrize("seed", range(3))
def test_a_task_holds_some_buckets_at_once_and_never_cuts_one(monkeypatch, seed):
    from broker_sim_integration.pipeline.jobs import levels

    rng = random.Random(seed)
    sizes = []
    whole = levels.levels

    def noticing(operations, bucket_ms):
        sizes.append(len(operations))
        return whole(operations, bucket_ms)

    monkeypatch.setattr(levels, "PIECE_ROWS", 20)
    monkeypatch.setattr(levels, "levels", noticing)
    rows = sorted(_random_operations(rng, 7), key=lambda row: row["bucket_start_ms"])
    batches = _table(rows).to_batches(max_chunksize=5)
    pieces = list(levels.levels_of_batches(iter(batches), 7))
    assert len(_found(pieces)) == sum(piece.num_rows for piece in pieces), "a bucket was cut"
    assert _found(pieces) == _by_hand(rows, 7), f"seed {seed}"
    largest = max(Counter(row["bucket_start_ms"] for row in rows).values())
    assert sum(sizes) == len(rows)
    assert max(sizes) < 20 + 5 + largest, f"seed {seed}"


def test_a_bucket_larger_than_a_piece_stays_whole(monkeypatch):
    from broker_sim_integration.pipeline.jobs import levels

    monkeypatch.setattr(levels, "PIECE_ROWS", 3)
    row = {
        "broker": 1, "purgatory": "Produce", "bucket_start_ms": 0, "keys": [],
        "parked_at_ms": 1, "ended_at_ms": 3,
    }  # fmt: skip
    (piece,) = levels.levels_of_batches(iter(_table([row] * 10).to_batches(max_chunksize=1)), 10)
    assert piece.to_pylist()[0]["highest"] == 10


def test_a_task_without_operations_has_no_levels():
    from broker_sim_integration.pipeline.jobs.levels import levels_of_batches

    assert list(levels_of_batches(iter([]), 10)) == []
    assert list(levels_of_batches(iter(_table([]).to_batches()), 10)) == []
