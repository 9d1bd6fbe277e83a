import pytest
from broker_sim_integration.comparison.drift import Drift, comparable, drift_between
from broker_sim_integration.comparison.recorded import RecordedSide, write_recording
from broker_sim_integration.observations import at_timeout


@pytest.fixture
def recorded(tmp_path_factory, result_of):
    """Return a function that records scenarios, given as lists of observations by name."""

    def recorded(version="1", **scenarios):
        directory = tmp_path_factory.mktemp("recording")
        results = [result_of((seen, seen), name=name) for name, seen in scenarios.items()]
        write_recording(
            directory,
            results,
            facts={},
            recorded_at="",
            version_of=lambda _: version,
            catalogue=[result.scenario for result in results],
        )
        return RecordedSide(directory)

    return recorded


def test_recordings_that_differ_in_times_only_have_no_drift(recorded, see):
    shipped = recorded(claim=[see("a", base_offset=1), see("b")])
    slower = recorded(claim=[see("a", 9.0, base_offset=1), see("b", 9.0)])
    assert list(drift_between(shipped, slower)) == []


def test_every_outcome_that_differs_is_drift(recorded, see):
    shipped = recorded(claim=[see("a", base_offset=1), see("b"), see("c", 500.0, timing=at_timeout(500))])
    fresh = recorded(claim=[see("a", base_offset=2), see("c")])
    found = list(drift_between(shipped, fresh))
    assert found == [
        Drift("claim", "a #1", "base_offset", 1, 2),
        Drift("claim", "b #1", "seen", True, False),
        Drift("claim", "c #1", "timing", "at_timeout", "at_once"),
    ]
    assert str(found[0]) == "claim, a #1, base_offset: 1 is now 2"


def test_documented_differences_of_the_simulator_are_drift_too(recorded, see):
    name = "fetch_sessions_have_rules"
    shipped = recorded(**{name: [see("new", fields={"session_id": "given"})]})
    fresh = recorded(**{name: [see("new", fields={"session_id": "none"})]})
    (found,) = drift_between(shipped, fresh)
    assert (found.shipped, found.fresh) == ("given", "none")


def test_scenarios_recorded_at_another_version_are_not_comparable(recorded, see):
    shipped = recorded(old=[see("a", base_offset=1)])
    fresh = recorded("2", old=[see("a", base_offset=2)], new=[see("a")])
    assert comparable(shipped, fresh) == []
    assert list(drift_between(shipped, fresh)) == []
