import json

import pytest
from broker_sim_integration.comparison.recorded import RecordedSide, write_recording
from broker_sim_integration.comparison.runs import Run
from broker_sim_integration.reference.errors import ReferenceUnavailableError

FACTS = {"kafka_version": "4.3.1", "reference": "jvm"}


@pytest.fixture
def record(tmp_path):
    """Return a function that records results, by default of version 1 each."""

    def record(*results, catalogue=None, version="1", facts=FACTS, date="2026-01-01"):
        return write_recording(
            tmp_path,
            results,
            facts=facts,
            recorded_at=date,
            version_of=lambda _: version,
            catalogue=[result.scenario for result in results] if catalogue is None else catalogue,
        )

    return record


@pytest.fixture
def side(tmp_path):
    """Return a function that reads what was recorded."""
    return lambda version="1": RecordedSide(tmp_path, version_of=lambda _: version)


@pytest.fixture
def recording(record, result_of, see):
    """A recording of one scenario with two steps, one that was not played and one with trouble."""
    record(
        result_of(([see("a", base_offset=1), see("b")], [see("a")]), name="recorded"),
        result_of((Run(skipped="needs disconnect"), Run()), name="skipped"),
        result_of((Run([see("a")], trouble="broken"), Run()), name="troubled"),
    )


@pytest.mark.usefixtures("recording")
def test_runner_returns_what_was_recorded(side, make_scenario, see):
    with side().open(()) as runner:
        played = runner.run(make_scenario("recorded"), 1)
    assert played.observations == [see("a", base_offset=1), see("b")]


@pytest.mark.usefixtures("recording")
def test_the_facts_of_the_recorded_run_are_kept(side):
    assert side().facts == {**FACTS, "recorded_at": "2026-01-01"}


def test_the_first_repeat_that_was_in_time_is_kept(record, side, result_of, see):
    late, in_time = [see(elapsed_ms=9000.0)], [see(elapsed_ms=2.0)]
    left_out = record(
        result_of((late, late), (in_time, in_time), name="late_once"), result_of((late, late), name="late_always")
    )
    assert left_out == ["late_always"]
    assert side().observations_of("late_once") == in_time


@pytest.mark.usefixtures("recording")
@pytest.mark.parametrize("name", ["skipped", "troubled", "never_heard_of"])
def test_unrecorded_scenario_is_skipped_with_the_remedy(side, make_scenario, name):
    with side().open(()) as runner:
        reason = runner.run(make_scenario(name), 1).skipped
    assert reason.startswith("not recorded; broker-sim-compare --reference jvm --record ")


@pytest.mark.usefixtures("recording")
def test_what_was_recorded_at_another_version_is_not_played(side, make_scenario):
    with side("2").open(()) as runner:
        played = runner.run(make_scenario("recorded"), 1)
    assert played.observations == []
    assert "at another version" in played.skipped
    assert "--record" in played.skipped


def test_missing_recording_is_refused_with_the_remedy(side):
    with pytest.raises(ReferenceUnavailableError, match=r"no recording in .*--record"):
        side()


@pytest.fixture
def three(result_of, see):
    """Return a function that makes the results of scenarios `a`, `b`, `c` with this base offset."""

    def three(offset):
        pair = [see(base_offset=offset)], [see()]
        return [result_of(pair, name=name) for name in "abc"]

    return three


def test_only_played_scenarios_are_replaced(record, side, three):
    old, new = three(1), three(2)
    names = [result.scenario for result in old]
    record(*old, catalogue=names)
    record(new[1], catalogue=names, version="2", facts={"reference": "new"}, date="2026-02-02")
    found = side()
    assert found.versions == {"a": "1", "b": "2", "c": "1"}
    assert [found.observations_of(name)[0].base_offset for name in "abc"] == [1, 2, 1]
    assert [list(run["scenarios"]) for run in found.runs] == [["a", "c"], ["b"]]
    assert found.facts == {"reference": "new", "recorded_at": "2026-02-02"}


def test_what_could_not_be_recorded_again_keeps_its_old_recording(record, side, three, result_of):
    old = three(1)
    names = [result.scenario for result in old]
    record(*old, catalogue=names)
    troubled = result_of((Run(trouble="broken"), Run()), name="a")
    assert record(troubled, catalogue=names, version="2") == ["a"]
    assert side().versions == {"a": "1", "b": "1", "c": "1"}


def test_scenarios_that_are_no_more_are_dropped(record, side, three, tmp_path):
    first, *rest = three(1)
    record(first, *rest)
    record(*rest)
    assert side().versions.keys() == {"b", "c"}
    lines = (tmp_path / "observations.jsonl").read_text().splitlines()
    assert [json.loads(line)["scenario"] for line in lines] == ["b", "c"]


def test_what_json_would_change_is_refused_and_the_recording_stays(record, side, result_of, see):
    record(result_of(([see("a")], [see("a")]), name="kept"))
    changed = [see("b", fields={"value": (1, 2)})]
    with pytest.raises(ValueError, match=r"changed, step 'b': JSON changes .* use lists"):
        record(result_of((changed, changed), name="changed"))
    assert list(side().versions) == ["kept"]
