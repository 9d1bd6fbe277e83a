"""No task gets all of something, however uneven the keys: seen in plans, and in what tasks read."""

import random

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.soak(part="spark")]

ROWS = 3_000
TASKS = 16
SHARE = ROWS // TASKS
"""Rows of a task in an even split; hashes may give it twice as many."""
CONF = {"spark.sql.shuffle.partitions": str(TASKS), "spark.sql.adaptive.coalescePartitions.enabled": "false"}


@pytest.fixture
def many_tasks(spark):
    """Let every shuffle have its tasks, although there is little to do."""
    before = {key: spark.conf.get(key) for key in CONF}
    for key, value in CONF.items():
        spark.conf.set(key, value)
    yield
    for key, value in before.items():
        spark.conf.set(key, value)


@pytest.fixture
def largest_task(spark, many_tasks, request, task_sizes):
    """Return a function from a frame to the task that read the most rows of others when it was collected."""

    def measure(frame):
        spark.sparkContext.setJobGroup(request.node.name, "measured")
        frame.collect()
        return task_sizes["largest_task"](spark, request.node.name, shuffled_only=True)

    return measure


def _windows(plan):
    """Return the window nodes of a plan; a window without a partition has one list in brackets only."""
    return [line for line in plan.splitlines() if "- Window [" in line]


def test_ranking_keys_gives_no_task_all_keys(spark, events_frame, life, explained, largest_task, monkeypatch):
    from broker_sim_integration.pipeline.jobs import occupancy

    monkeypatch.setattr(occupancy, "HOTTEST", 2)
    rows = [
        {"run_id": "r", "side": "sim", "broker": 1, "purgatory": "Produce", "key": f"k{number}",
         "peak": 1, "from_ms": 0, "to_ms": 9_999, "parked_ms": number}
        for number in range(ROWS)
    ]  # fmt: skip
    ranked = occupancy._with_heat(spark.createDataFrame(rows))
    windows = _windows(explained(ranked))
    assert len(windows) == len({"of a share", "of all"})
    assert all("[side#" in line.split(" AS ")[1] for line in windows), windows
    hottest = {row.key: row.heat for row in ranked.collect() if row.heat}
    assert hottest == {f"k{ROWS - 1}": 1, f"k{ROWS - 2}": 2}
    largest = largest_task(ranked)
    assert largest.rows < 3 * SHARE, largest


def test_distance_of_distributions_gives_no_task_all_values(spark, observation, explained, largest_task):
    from broker_sim_integration.pipeline.jobs.parity import ks_distance
    from broker_sim_integration.pipeline.jobs.schema import OBSERVATION_SCHEMA

    rows = [
        observation(side=side, due_ms=0.0, elapsed_ms=number / 30, fields="{}", attempt=number)
        for side in ("sim", "kafka")
        for number in range(ROWS)
    ]
    distance = ks_distance(spark.createDataFrame(rows, OBSERVATION_SCHEMA))
    windows = _windows(explained(distance))
    assert len(windows) == len({"within a millisecond", "over the milliseconds"})
    assert all("[timing#" in line for line in windows), windows
    (row,) = distance.collect()
    assert (row.kafka, row.sim, row.ks_distance, row.same) == (ROWS, ROWS, 0.0, True)
    largest = largest_task(distance)
    assert largest.rows < 3 * SHARE, largest


def test_a_hot_partition_is_written_by_many_tasks(spark, many_tasks, event, tmp_path, write_lines):
    from broker_sim_integration.pipeline.jobs import ingest

    rng = random.Random(5)
    rows = [event(operation_id=number, client_id=rng.randbytes(100).hex()) for number in range(ROWS)]
    trace = write_lines(tmp_path / "trace.jsonl", rows)
    spark.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "60k")
    try:
        ingest.run(spark, [trace], str(tmp_path))
    finally:
        spark.conf.unset("spark.sql.adaptive.advisoryPartitionSizeInBytes")
    sizes = [path.stat().st_size for path in (tmp_path / "events").rglob("*.parquet")]
    assert sum(sizes) > 300_000
    assert max(sizes) < sum(sizes) / 3, sizes


def test_all_operations_under_one_key_give_no_task_all_of_them(spark, events_frame, life, largest_task):
    from broker_sim_integration.pipeline.jobs.lifecycle import lifecycles
    from broker_sim_integration.pipeline.jobs.occupancy import occupancy

    rows = [event for number in range(ROWS // 3) for event in life(number, number, number + 40)]
    lives = lifecycles(events_frame(rows))
    assert largest_task(lives).rows < 3 * SHARE
    # Twice as many: a series for the key and one for the purgatory. A bucket is never shared out.
    by_bucket = largest_task(occupancy(lives.cache(), 5))
    lives.unpersist()
    assert by_bucket.rows < 6 * SHARE, by_bucket
