"""Chaos on executors: outcomes per seed, continued, and each way to fail once with its smallest schedule."""

import sys

import pytest

from broker_sim.chaos.search import load_test

pytestmark = pytest.mark.spark

APPLICATION = '''
"""An application without a client of Kafka: a worker takes its work off a list before it does it."""

import asyncio

import pytest


@pytest.mark.chaos(faults={"crash": 1}, brokers=1, workers=1, duration_s=4)
async def forget(chaos):
    left, done = list(range(5)), []

    async def worker():
        while left:
            number = left.pop()
            await asyncio.sleep(1)
            done.append(number)

    chaos.start(worker)
    await chaos.faults_over()
    await chaos.eventually(lambda: len(done) == 5, "nothing is forgotten", within_s=10)
'''


@pytest.fixture
def plan(require_spark, tmp_path, monkeypatch):
    """Return a function that makes a plan for the application, which is in the current directory."""
    from broker_sim_integration.pipeline.jobs.chaos import ChaosPlan, load

    (tmp_path / "forgetful.py").write_text(APPLICATION)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    load_test.cache_clear()
    yield lambda seeds, seed=0, name="forgetful": ChaosPlan(load(f"{name}:forget", seeds=seeds), seed, examined=2)
    for name in ("forgetful", "unseen"):
        sys.modules.pop(name, None)


def test_seeds_are_run_and_failures_are_shrunk(spark, plan, tmp_path):
    from broker_sim_integration.pipeline.jobs import chaos

    out = str(tmp_path / "tables")
    told = chaos.run(spark, plan(seeds=3), out, tasks=1)
    outcomes = spark.read.parquet(f"{out}/chaos").collect()
    failed = [row for row in outcomes if row.invariant is not None]
    assert told.startswith(f"3 seeds, {len(failed)} failed in 1 ways; ")
    (failure,) = spark.read.parquet(f"{out}/chaos_failures").collect()
    assert (failure.invariant, failure.failed_seeds) == ("nothing is forgotten", len(failed))
    assert (failure.kinds, failure.faults, failure.repeats) == ("crash", 1, True)
    assert f"seed={failure.seed} " in failure.schedule
    assert "import forgetful\n" in failure.told


def test_what_no_seed_has_seen_fails_the_search_with_its_tables_written(spark, plan, tmp_path):
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.jobs import chaos

    out = str(tmp_path / "tables")
    sought = 'chaos.sometimes(lambda: len(done) > 5, "all twice")\n    chaos.start(worker)'
    # A name of its own: a Python of Spark that has imported a module keeps it.
    (tmp_path / "unseen.py").write_text(APPLICATION.replace("chaos.start(worker)", sought))
    earlier = spark.range(1).selectExpr("id seed", "'earlier' code")
    earlier.write.parquet(f"{out}/chaos")
    with pytest.raises(PipelineError, match=r"seen: 'all twice' in 0 of 2 seeds; never seen in 2 seeds: 'all twice'; "):
        chaos.run(spark, plan(seeds=2, name="unseen"), out, tasks=1)
    assert spark.read.parquet(f"{out}/chaos_summary").first().seeds == 2


@pytest.mark.soak(part="spark")
def test_seeds_that_are_known_are_not_run_again(spark, plan, tmp_path):
    from broker_sim_integration.pipeline.jobs import chaos

    out = str(tmp_path / "tables")
    chaos.run(spark, plan(seeds=3), out, tasks=2)
    before = {tuple(row) for row in spark.read.parquet(f"{out}/chaos").collect()}
    told = chaos.run(spark, plan(seeds=5), out, tasks=2)
    assert told.startswith("5 seeds, 3 of them known already, ")
    after = {tuple(row) for row in spark.read.parquet(f"{out}/chaos").collect()}
    assert len(after) == 5
    assert before <= after
    shrunk = spark.read.parquet(f"{out}/chaos_shrunk").collect()
    assert len({row.seed for row in shrunk}) == len(shrunk)


def test_each_distinct_failure_is_listed_once_with_its_smallest_schedule(spark):
    from broker_sim_integration.pipeline.jobs.chaos import (
        OUTCOME,
        SHRUNK,
        NamedTest,
        distinct_failures,
        summary,
        to_examine,
    )

    outcomes = spark.createDataFrame(
        [(1, "lost", "", 9, 1.0, None, None), (2, "lost", "", 3, 1.0, None, None), (3, None, "", 1, 1.0, None, None),
         (4, "twice", "", 5, 1.0, None, None), (5, "lost", "", 3, 1.0, None, None)],
        OUTCOME,
    )  # fmt: skip
    assert sorted(row.seed for row in to_examine(outcomes, 2).collect()) == [2, 4, 5]
    row = summary(outcomes, NamedTest("shop:test_orders")).first()
    assert (row.seeds, row.failed, row.seeds_per_s_and_core) == (5, 4, 1.0)
    shrunk = spark.createDataFrame(
        [(2, "lost", "crash", 2, "long", 1, "d", True, "t"),
         (5, "lost", "crash", 1, "short", 1, "d", True, "t"),
         (4, "twice", "lose", 1, "one", 1, "d", False, "t"),
         (9, None, None, None, None, None, None, None, None)],
        SHRUNK,
    )  # fmt: skip
    found = distinct_failures(outcomes, shrunk).orderBy("invariant").collect()
    ways = [(row.invariant, row.schedule, row.examined, row.failed_seeds) for row in found]
    assert ways == [("lost", "short", 2, 3), ("twice", "one", 1, 1)]


def test_wave_has_runs_for_all_tasks(plan):
    assert plan(seeds=5, seed=7).waves(3) == [(7, 10), (10, 12)]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("forgetful:nothing", "has no 'nothing'"),
        ("nowhere:test", "No module named 'nowhere'"),
        ("forgetful", "name the test as MODULE:FUNCTION"),
    ],
)
def test_a_test_that_is_not_there_is_one_line(plan, name, why):
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.jobs.chaos import load

    with pytest.raises(PipelineError, match=why):
        load(name)


def test_marker_of_the_test_sets_missing_options(plan):
    from broker_sim_integration.pipeline.errors import PipelineError
    from broker_sim_integration.pipeline.jobs.chaos import load

    marked = load("forgetful:forget", workers=None, brokers=2, order=None).settings
    assert (marked.workers, marked.brokers, marked.duration_s, marked.seeds) == (1, 2, 4, 1_000)
    assert marked.faults == {"crash": 1}
    assert set(load("forgetful:forget", faults=["crash", "pause"]).settings.faults) == {"crash", "pause"}
    with pytest.raises(PipelineError, match="unknown fault 'explode'"):
        load("forgetful:forget", faults=["explode"])
