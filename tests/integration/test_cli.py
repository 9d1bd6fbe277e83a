import json
import sys

import pytest
from broker_sim_integration.cli import main
from broker_sim_integration.comparison.recorded import RECORDINGS, RecordedSide
from broker_sim_integration.reference.jars import KAFKA_VERSIONS
from broker_sim_integration.scenarios.catalogue import CATALOGUE
from click.testing import CliRunner


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_list_names_has_one_name_a_line(run):
    done = run("list", "--names")
    assert done.exit_code == 0
    assert done.output.splitlines() == [found.name for found in CATALOGUE]


def test_list_shows_every_scenario_by_family_with_its_description(run):
    output = run("list").output
    for found in CATALOGUE:
        assert f"  {found.name}\n      {found.description}\n" in output
    assert output.startswith(CATALOGUE[0].family)


def test_a_pattern_that_fits_no_scenario_is_an_error_of_usage(run):
    done = run("--scenario", "nothing_like_it")
    assert done.exit_code == 2
    assert "unknown scenario 'nothing_like_it'" in done.output


def test_without_the_client_that_scenarios_use_there_is_one_line(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    done = run("--reference", "recorded")
    assert done.exit_code == 2
    assert done.output == "confluent-kafka is not installed: pip install broker-sim-compare\n"


def test_an_unknown_reference_is_an_error_of_usage(run):
    done = run("--reference", "elsewhere")
    assert done.exit_code == 2
    assert "choose auto, containers, jvm" in done.output


def test_a_reference_that_does_not_answer_is_exit_code_2(run, tmp_path):
    done = run("--reference", "bootstrap=127.0.0.1:1", "--out", str(tmp_path))
    assert done.exit_code == 2
    assert "no Kafka responds at 127.0.0.1:1" in done.output


def test_the_demo_takes_no_other_scenarios_and_records_nothing(run):
    for option in (("--scenario", "pipelining"), ("--record",)):
        done = run("--demo", *option)
        assert done.exit_code == 2
        assert "--demo has its own scenarios and cluster: leave out --scenario and --record" in done.output


def test_recordings_without_a_common_version_have_no_drift_to_tell(run, tmp_path):
    (tmp_path / "observations.jsonl").write_text("")
    (tmp_path / "recording.json").write_text(
        json.dumps({"runs": [{"kafka_version": "4.4.0", "scenarios": {"other": {"version": "1", "duration_ms": 1}}}]})
    )
    done = run("drift", str(tmp_path))
    assert done.exit_code == 2
    assert "not shipped at this version: other" in done.output
    assert "0 scenarios compared" in done.output


@pytest.mark.parametrize("release", KAFKA_VERSIONS)
def test_shipped_recording_has_no_drift_to_itself(run, release):
    recording = RECORDINGS / release
    done = run("drift", str(recording))
    assert done.exit_code == 0, done.output
    assert f"{len(RecordedSide(recording).versions)} scenarios compared, 0 outcomes differ" in done.output
