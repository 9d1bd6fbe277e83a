"""Lines that fit the contract are typed; others are kept with the reason."""

import json

import pytest
from broker_sim_integration.observations import Observation, at_once

pytestmark = pytest.mark.spark


@pytest.fixture
def judge(spark):
    from broker_sim_integration.pipeline.jobs.schema import LINE_SCHEMA, parse

    def parse_lines(*lines):
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        rows = [(f"file-{i:02}", text) for i, text in enumerate(texts)]
        return parse(spark.createDataFrame(rows, LINE_SCHEMA)).orderBy("source").collect()

    return parse_lines


def test_the_contract_names_the_fields_of_the_trace():
    from broker_sim.trace import FIELDS

    pytest.importorskip("pyspark", reason="pyspark is not installed: make setup-spark")
    from broker_sim_integration.pipeline.jobs.schema import EVENT_SCHEMA

    assert tuple(EVENT_SCHEMA.names) == FIELDS


def test_contract_has_the_fields_of_the_comparisons_observations(require_spark, tmp_path, result_of):
    from broker_sim_integration.comparison.distribution import Machines
    from broker_sim_integration.pipeline.jobs.schema import OBSERVATION_SCHEMA
    from broker_sim_integration.report.report import Report, write_observations

    path = tmp_path / "observations.jsonl"
    observation = Observation("step", timing=at_once())
    results = [result_of(([observation], [observation]))]
    report = Report("r", "abc", "jvm", "", {}, results, [], Machines())
    write_observations(report, path)
    for line in path.read_text().splitlines():
        assert set(json.loads(line)) == set(OBSERVATION_SCHEMA.names)


def test_an_event_is_typed(judge, event):
    (row,) = judge(event(event="expired", waited_ms=1003, lateness_ms=3, keys=["a-0", "b-1"]))
    assert row.reason is None
    assert row.observation is None
    assert row.event.asDict() == event(event="expired", waited_ms=1003, lateness_ms=3, keys=["a-0", "b-1"])


def test_an_observation_is_typed_and_keeps_its_fields_as_text(judge, observation):
    (row,) = judge(observation(fields={"log_start_offset": 3}))
    assert row.reason is None
    assert row.event is None
    assert json.loads(row.observation.fields) == {"log_start_offset": 3}
    assert row.observation.elapsed_ms == 1.0


def test_a_client_that_is_called_scenario_does_not_make_an_observation(judge, event):
    (row,) = judge(event(client_id='"scenario":'))
    assert row.event.client_id == '"scenario":'


def test_every_line_that_does_not_fit_has_its_reason(judge, event, observation):
    good = event()
    lines_and_reasons = [
        ("", "not one JSON object"),
        ("nonsense", "not one JSON object"),
        ("[1]", "not one JSON object"),
        (json.dumps(good)[:-20], "not one JSON object"),
        (json.dumps(good) + json.dumps(good), "not one JSON object"),
        (f"{json.dumps(good)} {json.dumps(good)}", "not one JSON object"),
        (f"{json.dumps(good)},{json.dumps(good)}", "not one JSON object"),
        (f"{json.dumps(good)} text", "not one JSON object"),
        (f"{json.dumps(good)} text}}", "not one JSON object"),
        (f"{json.dumps(good)}] text}}", "not one JSON object"),
        (f"{json.dumps(good)}}} text}}", "not one JSON object"),
        (f"[{json.dumps(good)}]", "not one JSON object"),
        (f"[{json.dumps(good)}", "not one JSON object"),
        (good | {"keys": [None]}, "keys: one is null"),
        (good | {"keys": ["t-0", "", None]}, "keys: one is null"),
        (json.dumps(observation()) + "}", "not one JSON object"),
        (json.dumps(observation()) * 2, "not one JSON object"),
        ("{}", "ts_ms is missing"),
        (good | {"broker": None}, "broker is missing"),
        (good | {"ts_ms": "soon"}, "ts_ms: wrong type"),
        (good | {"ts_ms": 1.5, "keys": "t-0"}, "ts_ms, keys: wrong type"),
        (good | {"broker": 1 << 40}, "a number is out of range"),
        (good | {"ts_ms": 0}, "ts_ms is not positive"),
        (good | {"event": "slept"}, "unknown event"),
        (good | {"side": "left"}, "unknown side"),
        (good | {"event": "completed"}, "the end of an operation without waited_ms"),
        (good | {"event": "completed", "waited_ms": -1}, "waited_ms is negative"),
        (good | {"event": "expired", "waited_ms": 1}, "expired without lateness_ms"),
        (observation(timing="sometimes"), "unknown timing"),
        (observation(elapsed_ms=-1), "elapsed_ms is negative"),
        (observation(step=None), "step is missing"),
        (observation(attempt="first"), "attempt: wrong type"),
    ]
    rows = judge(*[line for line, _ in lines_and_reasons])
    assert [row.reason for row in rows] == [reason for _, reason in lines_and_reasons]
    assert all(row.event is None and row.observation is None for row in rows)


def test_braces_inside_texts_and_fields_do_not_end_a_line(judge, event, observation):
    texts, nested = judge(event(client_id="}{", keys=["a}", "]"]), observation(fields={"a": {"b": "}] x"}}))
    assert (texts.reason, texts.event.client_id) == (None, "}{")
    assert nested.reason is None
    assert json.loads(nested.observation.fields) == {"a": {"b": "}] x"}}


def test_each_line_is_parsed_once(spark, explained):
    from broker_sim_integration.pipeline.jobs.ingest import events
    from broker_sim_integration.pipeline.jobs.schema import parse

    lines = spark.range(1).selectExpr("'f' as source", "concat('{', id, '}') as line")
    plan = explained(events(parse(lines).select("event.*", "goes_to")))
    assert plan.count("from_json(") == len({"of an event", "of an observation"}), plan


def test_fields_beyond_the_contract_are_ignored(judge, event):
    (row,) = judge(event() | {"colour": "green"})
    assert row.reason is None
