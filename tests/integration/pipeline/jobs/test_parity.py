"""Agreement per step and scenario, and the distance between two distributions."""

import bisect
import random

import pytest

pytestmark = pytest.mark.spark


@pytest.fixture
def frame(spark):
    from broker_sim_integration.pipeline.jobs.schema import OBSERVATION_SCHEMA

    def make(rows):
        texts = [row | {"fields": row["fields"] if isinstance(row["fields"], str) else "{}"}
                 for row in rows]  # fmt: skip
        return spark.createDataFrame(texts, OBSERVATION_SCHEMA)

    return make


@pytest.fixture
def both(observation):
    """Return a function that makes the observation of both sides, with changes to the simulator's."""
    return lambda step, **sim: [
        observation(step=step, side="kafka", fields='{"a": 1, "b": 2}'),
        observation(step=step, **({"fields": '{"b":2,"a":1}'} | sim)),
    ]


def test_each_step_names_what_differs(frame, both, observation):
    from broker_sim_integration.pipeline.jobs.parity import parity

    rows = [
        *both("same", elapsed_ms=3.5),
        *both("code", error_code=7),
        *both("null", base_offset=None),
        *both("fields", fields='{"a":1}'),
        *both("late", elapsed_ms=100.0),
        observation(step="Kafka may be slower", side="kafka", elapsed_ms=100.0),
        observation(step="Kafka may be slower"),
        *both("kind", timing="untimed", elapsed_ms=9999.0),
        observation(step="ours only"),
        observation(step="theirs only", side="kafka"),
    ]
    found = {row.step: row for row in parity(frame(rows)).collect()}
    assert {step: row.differs_in for step, row in found.items()} == {
        "same": [],
        "code": ["error_code"],
        "null": ["base_offset"],
        "fields": ["fields"],
        "late": ["late at sim"],
        "Kafka may be slower": [],
        "kind": ["timing"],
        "ours only": ["missing at kafka"],
        "theirs only": ["missing at sim"],
    }
    agreed = {step for step, row in found.items() if row.agrees}
    assert agreed == {"same", "Kafka may be slower"}
    assert found["same"].elapsed_delta_ms == 2.5
    assert found["ours only"].elapsed_delta_ms is None


def test_repeats_and_attempts_are_matched_one_to_one(frame, observation):
    from broker_sim_integration.pipeline.jobs.parity import parity

    rows = [
        observation(side=side, repeat=repeat, attempt=attempt, base_offset=10 * repeat + attempt)
        for side in ("kafka", "sim")
        for repeat in (1, 2)
        for attempt in (1, 2)
    ]
    found = parity(frame(rows)).collect()
    assert len(found) == 4
    assert all(row.agrees for row in found)


def test_scenarios_are_summed_up(frame, both):
    from broker_sim_integration.pipeline.jobs.parity import parity, scenario_agreement

    rows = [*both("a", elapsed_ms=2.0), *both("b", error_code=7, elapsed_ms=5.0)]
    (row,) = scenario_agreement(parity(frame(rows))).collect()
    assert (row.scenario, row.steps, row.agreed, row.agreement) == ("acks", 2, 1, 0.5)
    assert row.differs_in == ["error_code"]
    assert row.elapsed_delta_p50_ms == 1.0, "the lower one of the two in the middle"
    assert row.elapsed_delta_max_ms == 4.0


def _ks(first, second):
    first, second = sorted(first), sorted(second)
    return max(
        abs(bisect.bisect_right(first, x) / len(first) - bisect.bisect_right(second, x) / len(second))
        for x in [*first, *second]
    )


def test_the_ks_distance_is_that_of_the_definition(frame, observation):
    from broker_sim_integration.pipeline.jobs.parity import ks_distance

    rng = random.Random(5)
    samples = {
        ("at_once", "kafka"): [round(rng.expovariate(1)) for _ in range(120)],
        ("at_once", "sim"): [round(rng.expovariate(1)) for _ in range(80)],
        ("at_timeout", "kafka"): [rng.uniform(0, 5) for _ in range(60)],
        ("at_timeout", "sim"): [rng.uniform(3, 9) for _ in range(60)],
        ("on_event", "kafka"): [1.0],
    }
    rows = [
        observation(timing=timing, side=side, due_ms=100.0, elapsed_ms=100.0 + value, attempt=i)
        for (timing, side), values in samples.items()
        for i, value in enumerate(values)
    ]
    found = {row.timing: row for row in ks_distance(frame(rows)).collect()}
    assert found.keys() == {"at_once", "at_timeout"}
    for timing, row in found.items():
        kafka, sim = samples[timing, "kafka"], samples[timing, "sim"]
        assert (row.kafka, row.sim) == (len(kafka), len(sim))
        lateness = [[100.0 + x - 100.0 for x in side] for side in (kafka, sim)]
        assert row.ks_distance == pytest.approx(_ks(*lateness))
    assert found["at_once"].same
    assert not found["at_timeout"].same
