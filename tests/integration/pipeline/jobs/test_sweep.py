"""Settings and results do not depend on Spark's partitions."""

import json

import pytest

pytestmark = pytest.mark.spark

SPECIFICATION = {
    "request_timeout_ms": [500, 30_000],
    "min_insync_replicas": [2, 3],
    "failures_per_minute": [6.0],
    "requests_per_s": [5.0],
    "duration_ms": [4_000],
}


@pytest.fixture
def plan():
    from broker_sim_integration.pipeline.jobs.sweep import SweepPlan

    return lambda specification=SPECIFICATION, **options: SweepPlan(specification, **options)


def _rows(frame):
    return sorted(tuple(row) for row in frame.collect())


def test_a_grid_has_every_combination_with_every_seed(spark, plan):
    from broker_sim_integration.pipeline.jobs.sweep import grid

    rows = grid(spark, plan(repeats=2, seed=10)).collect()
    found = {(r.request_timeout_ms, r.min_insync_replicas, r.seed) for r in rows}
    assert found == {(t, m, s) for t in (500, 30_000) for m in (2, 3) for s in (10, 11)}
    assert len(rows) == 8
    assert all(r.replica_lag_time_max_ms == 30_000 for r in rows), "defaults fill the rest"


def test_results_are_the_same_whatever_the_partitions(spark, plan):
    from broker_sim_integration.pipeline.jobs.sweep import grid, simulate_all

    settings = grid(spark, plan(repeats=2))
    one, many = simulate_all(settings, 1), simulate_all(settings, 5)
    assert _rows(one) == _rows(many)
    assert len(_rows(one)) == 8
    assert len({row[-1] for row in _rows(one)}) > 4, "runs of different seeds differ"


@pytest.mark.soak(part="spark")
def test_a_sweep_that_fails_keeps_its_seeds_and_is_continued(spark, plan, tmp_path, monkeypatch):
    from broker_sim_integration.pipeline.jobs import sweep

    simulated = []

    def simulate_all(settings, tasks):
        seeds = {row.seed for row in settings.select("seed").collect()}
        if {2} == seeds and not simulated[2:]:
            raise OSError("no space left")
        simulated.append(seeds)
        return simulate(settings, tasks)

    simulate = sweep.simulate_all
    monkeypatch.setattr(sweep, "simulate_all", simulate_all)
    monkeypatch.setattr(sweep, "RUNS_PER_TASK", 1)
    wanted, out = plan(SPECIFICATION | {"duration_ms": [1_000]}, repeats=3), str(tmp_path)
    with pytest.raises(OSError, match="no space left"):
        sweep.run(spark, wanted, out, tasks=4)
    assert simulated == [{0}, {1}]
    assert spark.read.parquet(f"{out}/sweep").count() == 8
    simulated.append("again")
    answer = sweep.run(spark, wanted, out, tasks=4)
    assert (simulated[3:], answer) == ([{2}], "12 runs of 4 settings, 8 runs known already")
    expected = _rows(simulate(sweep.grid(spark, wanted), 2))
    assert _rows(spark.read.parquet(f"{out}/sweep").drop("code")) == expected
    (row,) = spark.read.parquet(f"{out}/sweep_summary").select("runs").distinct().collect()
    assert row.runs == 3


@pytest.mark.soak(part="spark")
def test_results_of_other_code_are_simulated_again(spark, plan, tmp_path, monkeypatch):
    from broker_sim_integration.pipeline.jobs import sweep

    wanted, out = plan({"duration_ms": [1_000]}, repeats=1), str(tmp_path)
    assert sweep.run(spark, wanted, out, tasks=1) == "1 runs of 1 settings"
    assert sweep.run(spark, wanted, out, tasks=1) == "1 runs of 1 settings, 1 runs known already"
    monkeypatch.setattr(sweep, "ship_code", lambda spark: "other")
    assert sweep.run(spark, wanted, out, tasks=1) == "1 runs of 1 settings"
    codes = {row.code for row in spark.read.parquet(f"{out}/sweep").collect()}
    assert len(codes) == 2


@pytest.mark.parametrize(
    ("repeats", "at_once", "expected"),
    [(3, 4, [(7, 7), (8, 8), (9, 9)]), (3, 5, [(7, 8), (9, 9)]), (3, 99, [(7, 9)]), (1, 1, [(7, 7)])],
)
def test_a_wave_has_work_for_all_tasks(require_spark, plan, repeats, at_once, expected):
    from broker_sim_integration.pipeline.jobs.sweep import waves

    assert waves(plan(repeats=repeats, seed=7), at_once) == expected


@pytest.mark.soak(part="spark")
def test_a_sample_is_the_same_whatever_the_partitions_and_covers_the_range(spark, plan):
    from broker_sim_integration.pipeline.jobs.sweep import sample

    wanted = plan(
        {"follower_delay_ms": {"from": 10, "to": 20}, "min_insync_replicas": [1, 2, 3]}, sample_size=300, repeats=1
    )
    found = _rows(sample(spark, wanted))
    spark.conf.set("spark.sql.leafNodeDefaultParallelism", "7")
    try:
        assert _rows(sample(spark, wanted)) == found
    finally:
        spark.conf.unset("spark.sql.leafNodeDefaultParallelism")
    rows = sample(spark, wanted).collect()
    assert len({row.follower_delay_ms for row in rows}) == 300
    assert all(10 <= row.follower_delay_ms < 20 for row in rows)
    assert 14 < sum(row.follower_delay_ms for row in rows) / 300 < 16
    assert {row.min_insync_replicas for row in rows} == {1, 2, 3}


def test_a_grid_of_ranges_is_refused(spark, plan):
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.jobs.sweep import grid

    with pytest.raises(PipelineError, match="outage_ms: a range needs --sample"):
        grid(spark, plan({"outage_ms": {"from": 1, "to": 2}}))


def test_the_summary_adds_up_the_seeds(spark):
    from broker_sim_integration.pipeline.jobs.sweep import RESULT_SCHEMA, sweep_summary
    from broker_sim_integration.pipeline.jobs.sweep_run import SweepOutcome, SweepSettings, asdict

    def result(seed, requests, timed_out):
        outcome = SweepOutcome(requests, requests - timed_out, timed_out, 0, 0, 1.0, 2.0, 3 + seed, 0, 0, 1, "d")
        return asdict(SweepSettings(seed=seed)) | asdict(outcome)

    frame = spark.createDataFrame([result(0, 100, 10), result(1, 300, 90)], RESULT_SCHEMA)
    (row,) = sweep_summary(frame).collect()
    assert (row.runs, row.requests, row.timed_out, row.waited_max_ms) == (2, 400, 100, 4)
    assert row.timed_out_share == 0.25
    assert (row.timed_out_share_min, row.timed_out_share_max) == (0.1, 0.3)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting"),
        ("[]", "a JSON object from settings"),
        ('{"colour": [1]}', "a JSON object from settings"),
        ('{"seed": [1]}', "a JSON object from settings"),
        ('{"outage_ms": []}', "outage_ms: give a list"),
        ('{"outage_ms": {"from": 1}}', "outage_ms: give a list"),
        ('{"follower_delay": ["gaussian"]}', "follower_delay: choose from constant"),
    ],
)
def test_a_bad_specification_is_one_line(require_spark, tmp_path, text, why):
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.jobs.sweep import read_specification

    path = tmp_path / "spec.json"
    path.write_text(text)
    with pytest.raises(PipelineError, match=why):
        read_specification(str(path))


def test_a_good_specification_is_read(require_spark, tmp_path):
    from broker_sim_integration.pipeline.jobs.sweep import read_specification

    path = tmp_path / "spec.json"
    path.write_text(json.dumps(SPECIFICATION))
    assert read_specification(str(path)) == SPECIFICATION
