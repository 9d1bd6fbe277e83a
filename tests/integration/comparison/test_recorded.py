import pytest

from integration.comparison.drift import Drift, drift_between
from integration.comparison.recorded import RecordedSide, write_recording
from integration.comparison.runs import Run
from integration.reference.errors import ReferenceUnavailableError


@pytest.fixture
def recording(tmp_path, result_of, see):
    """A recording of one scenario with two steps, one that was skipped and one with trouble."""
    results = [
        result_of(([see("a", base_offset=1), see("b")], [see("a")]), name="recorded"),
        result_of((Run(skipped="needs disconnect"), Run()), name="skipped"),
        result_of((Run([see("a")], trouble="broken"), Run()), name="troubled"),
    ]
    facts = {"kafka_version": "4.3.1", "reference": "jvm"}
    write_recording(
        tmp_path, results, catalogue_version="abc", facts=facts, recorded_at="2026-01-01"
    )
    return tmp_path


def test_runner_returns_what_was_recorded(recording, make_scenario, see):
    side = RecordedSide("abc", recording)
    with side.open(()) as runner:
        played = runner.run(make_scenario("recorded"), 1)
    assert played.observations == [see("a", base_offset=1), see("b")]


def test_the_facts_of_the_recorded_run_are_kept(recording):
    facts = RecordedSide("abc", recording).facts
    assert facts["kafka_version"] == "4.3.1"
    assert facts["recorded_at"] == "2026-01-01"


def test_the_first_repeat_that_was_in_time_is_kept(tmp_path, result_of, see):
    late, in_time = [see(elapsed_ms=9000.0)], [see(elapsed_ms=2.0)]
    results = [
        result_of((late, late), (in_time, in_time), name="late_once"),
        result_of((late, late), name="late_always"),
    ]
    left_out = write_recording(tmp_path, results, catalogue_version="abc", facts={}, recorded_at="")
    assert left_out == ["late_always"]
    side = RecordedSide("abc", tmp_path)
    assert side.observations_of("late_once") == in_time


@pytest.mark.parametrize("name", ["skipped", "troubled", "never_heard_of"])
def test_what_was_not_recorded_is_skipped(recording, make_scenario, name):
    with RecordedSide("abc", recording).open(()) as runner:
        assert runner.run(make_scenario(name), 1).skipped == "was not recorded"


def test_a_recording_of_another_catalogue_is_refused(recording):
    with pytest.raises(ReferenceUnavailableError, match=r"is of catalogue abc, .* are other"):
        RecordedSide("other", recording)


def test_a_missing_recording_is_refused_with_the_remedy(tmp_path):
    with pytest.raises(ReferenceUnavailableError, match=r"no recording in .*--record"):
        RecordedSide("abc", tmp_path)


def test_recordings_that_differ_in_times_only_have_no_drift(
    recording, tmp_path_factory, result_of, see
):
    fresh = tmp_path_factory.mktemp("fresh")
    slower = [see("a", 99.0, base_offset=1), see("b", 99.0)]
    results = [result_of((slower, slower), name="recorded")]
    write_recording(fresh, results, catalogue_version="abc", facts={}, recorded_at="")
    assert list(drift_between(RecordedSide("abc", recording), RecordedSide("abc", fresh))) == []


def test_every_outcome_that_differs_is_drift(recording, tmp_path_factory, result_of, see):
    fresh = tmp_path_factory.mktemp("fresh")
    results = [result_of(([see("a", base_offset=2)], []), name="recorded")]
    write_recording(fresh, results, catalogue_version="abc", facts={}, recorded_at="")
    found = list(drift_between(RecordedSide("abc", recording), RecordedSide("abc", fresh)))
    assert found == [
        Drift("recorded", "a #1", "base_offset", 1, 2),
        Drift("recorded", "b #1", "seen", True, False),
    ]
    assert str(found[0]) == "recorded, a #1, base_offset: 1 is now 2"
