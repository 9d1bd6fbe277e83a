from dataclasses import replace

import pytest
from broker_sim_integration.comparison import expected_time
from broker_sim_integration.comparison.expected_time import announcement
from broker_sim_integration.reference.selection import ReferenceKind


@pytest.fixture(autouse=True)
def durations(monkeypatch):
    """Two scenarios were recorded: `a` took 2 s, `b` 60 s."""
    recorded = {"a": 2000, "b": 60_000}
    monkeypatch.setattr(expected_time, "_recorded_durations_ms", lambda: recorded)


def test_time_is_that_of_the_recording_and_of_every_clusters_start(make_scenario):
    scenarios = [make_scenario("a"), replace(make_scenario("b"), configs=(("x", "1"),))]
    assert announcement(scenarios, ReferenceKind.CONTAINERS, 1) == (
        "2 scenarios on 2 clusters of each side; about 88 s, of which 26 s to start them"
    )


def test_recording_plays_as_long_as_the_simulator_does(make_scenario):
    assert announcement([make_scenario("a")], ReferenceKind.RECORDED, 3) == (
        "1 scenario on 1 cluster of each side; about 7 s, of which 1 s to start them"
    )


def test_announcement_has_no_time_for_unrecorded_scenarios(make_scenario):
    told = announcement([make_scenario("new")], ReferenceKind.JVM, 1)
    assert told.endswith("how long that takes is not recorded")
