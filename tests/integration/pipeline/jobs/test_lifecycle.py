"""One row per operation, and every lifecycle that is not possible in a correct purgatory."""

import pytest

pytestmark = pytest.mark.spark

T = 1_700_000_000_000


@pytest.fixture(scope="module")
def broken(events_frame, life, event):
    """Return a function from runs to the problems of each of their operations that has some; from one job."""
    from broker_sim_integration.pipeline.jobs.lifecycle import GRACE_MS, broken_lifecycles, lifecycles, run_spans

    deadline, late = T + 1000, T + 1_000_000
    runs = {
        "complete": [
            *life(1, T, T + 5),
            *life(2, T, T + 1000, "expired"),
            *life(3, ended_at=T, completed_by="immediate"),
            *life(4, T, T + 200_000),
        ],
        "in grace": [*life(1, T), *life(2, T, deadline + GRACE_MS)],
        "overdue": [*life(1, T), *life(2, T, deadline + GRACE_MS + 1)],
        "open": life(1, T),
        "longer": life(2, T, T + 10_000_000),
        "every problem": [
            *life(1, T, T + 5),
            event(operation_id=1, event="expired", ts_ms=T + 6, waited_ms=6, lateness_ms=0),
            *life(2, T, T + 5)[1:],
            *life(3, T, T + 5),
            event(operation_id=3, event="parked", ts_ms=T + 1),
            *life(4, T, T + 5),
            event(operation_id=4, event="tried", ts_ms=T + 1),
            *life(5, tried_at=T),
            *life(6, T + 9, T + 5, tried_at=T),
            *life(7, T, T + 5, completed_by="immediate"),
            *life(8, T, T + 900, "expired", lateness_ms=-100),
            *life(9, T, tried_at=T + 1),
            *life(99, late, late),
        ],
    }
    rows = [each | {"run_id": name} for name, events in runs.items() for each in events]
    frame = events_frame(rows)
    found = broken_lifecycles(lifecycles(frame), run_spans(frame)).collect()
    return lambda *names: {row.operation_id: row.problems for row in found if row.run_id in names}


def test_a_parked_operation_becomes_one_row(spark, events_frame, life):
    from broker_sim_integration.pipeline.jobs.lifecycle import lifecycles
    from pyspark.testing import assertDataFrameEqual

    found = lifecycles(events_frame(life(1, T + 1, T + 1004, "expired", tried_at=T, lateness_ms=4, client_id=None)))
    expected = {
        "run_id": "r1",
        "side": "sim",
        "broker": 1,
        "purgatory": "Produce",
        "operation_id": 1,
        "api": "Produce",
        "client_id": None,
        "keys": ["t-0"],
        "delay_ms": 1000,
        "tried_at_ms": T,
        "parked_at_ms": T + 1,
        "ended_at_ms": T + 1004,
        "outcome": "expired",
        "completed_by": "timer",
        "error_code": 7,
        "waited_ms": 1004,
        "lateness_ms": 4,
        "tried": 1,
        "parked": 1,
        "ended": 1,
    }
    assertDataFrameEqual(found, spark.createDataFrame([expected], found.schema))


def test_outcomes_are_distinguished(events_frame, life):
    from broker_sim_integration.pipeline.jobs.lifecycle import lifecycles

    rows = [
        *life(1, ended_at=T, completed_by="immediate"),
        *life(2, T, T + 5),
        *life(3, T, T + 5, "expired"),
        *life(4, T, T + 5, "cancelled"),
        *life(5, T),
    ]
    found = {row.operation_id: row.outcome for row in lifecycles(events_frame(rows)).collect()}
    assert found == {1: "immediate", 2: "completed", 3: "expired", 4: "cancelled", 5: "open"}


def test_operations_are_distinguished_by_run_broker_and_purgatory(events_frame, life):
    from broker_sim_integration.pipeline.jobs.lifecycle import lifecycles

    rows = [
        *life(1, T, T + 5),
        *life(1, T, T + 5, broker=2),
        *life(1, T, T + 5, purgatory="Fetch"),
        *life(1, T, T + 5, run_id="r2"),
        *life(1, T, T + 5, side="kafka"),
    ]
    assert lifecycles(events_frame(rows)).count() == 5


def test_complete_lifecycles_are_not_broken(broken):
    assert broken("complete") == {}


def test_an_open_operation_is_broken_only_long_after_its_deadline(broken):
    assert broken("in grace") == {}
    assert broken("overdue") == {1: ["parked and never ended"]}


def test_end_of_one_run_does_not_break_operations_of_another(broken):
    assert broken("open", "longer") == {}


def test_every_problem_of_a_lifecycle_is_named(broken):
    assert broken("every problem") == {
        1: ["ended twice"],
        2: ["never tried"],
        3: ["parked twice"],
        4: ["tried twice"],
        5: ["tried and never ended"],
        6: ["ended before it began"],
        7: ["parked and immediate"],
        8: ["expired too early"],
        9: ["parked and never ended", "parked before it was tried"],
    }


@pytest.mark.parametrize(
    ("late_ms", "fields", "problems"),
    [
        pytest.param(0, {}, [], id="none"),
        pytest.param(1, {}, ["parked and never ended"], id="overdue"),
        pytest.param(0, {"lateness_ms": -1}, ["expired too early"], id="by itself"),
    ],
)
def test_job_looks_for_broken_lifecycles_where_it_noticed_some(
    spark, events_frame, life, tmp_path, late_ms, fields, problems
):
    from broker_sim_integration.pipeline.jobs import lifecycle

    last = T + 1000 + lifecycle.GRACE_MS + late_ms
    rows = [*life(1, T), *life(2, T, last, "expired", **fields)]
    events_frame(rows).write.parquet(str(tmp_path / "events"))
    said = lifecycle.run(spark, str(tmp_path), str(tmp_path))
    assert said == f"2 lifecycles, {len(problems)} of them broken"
    found = spark.read.parquet(str(tmp_path / "broken_lifecycles"))
    assert found.columns[-1] == "problems"
    assert [row.problems for row in found.collect()] == [[problem] for problem in problems]


def test_a_run_in_virtual_time_is_traced_by_the_contract_and_breaks_nothing(spark, tmp_path):
    from broker_sim_integration.pipeline.jobs import ingest, lifecycle

    from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
    from broker_sim.trace import Trace

    out = str(tmp_path)
    with Trace(tmp_path / "trace.jsonl.gz", run_id="seed-1") as trace:
        cluster = VirtualCluster(seed=1, trace=trace)
        cluster.create_topic("t", assignments={0: [1, 2, 3]})
        client = cluster.client()
        for paused in (False, True):
            if paused:
                cluster.pause(3)
            pending = client.send(1, produce_request(("t", 0), timeout_ms=700), PRODUCE_VERSION)
            cluster.run_until(lambda answer=pending: answer.done)
    counts = ingest.run(spark, [str(tmp_path / "trace.jsonl.gz")], out)
    assert counts.quarantined == counts.duplicates == 0
    assert lifecycle.run(spark, out, out).endswith(", 0 of them broken")
    produced = spark.read.parquet(f"{out}/lifecycles").where("purgatory = 'Produce'")
    outcomes = {row.outcome: row.waited_ms for row in produced.collect()}
    assert outcomes.keys() == {"completed", "expired"}
    assert outcomes["expired"] == 700
