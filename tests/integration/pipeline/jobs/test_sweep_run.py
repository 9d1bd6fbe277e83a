"""One simulated run: the same settings, the same outcome; and what a user expects of acks=all."""

import subprocess
import sys

import pytest
from broker_sim_integration.pipeline.jobs.sweep_run import DELAYS, SweepSettings, simulate

SHORT = {"duration_ms": 20_000, "requests_per_s": 10.0}
DIGEST = (
    "from broker_sim_integration.pipeline.jobs.sweep_run import *;"
    "print(simulate(SweepSettings(seed=3, failures_per_minute=6.0, duration_ms=20_000)).digest)"
)


def test_the_same_settings_give_the_same_outcome_in_any_process():
    there = subprocess.run(
        [sys.executable, "-c", DIGEST],
        env={"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    ).stdout
    here = simulate(SweepSettings(seed=3, failures_per_minute=6.0, duration_ms=20_000)).digest
    assert there == f"{here}\n"


def test_seeds_differ():
    assert simulate(SweepSettings(seed=1, **SHORT)) != simulate(SweepSettings(seed=2, **SHORT))


@pytest.mark.parametrize("delay", DELAYS)
def test_healthy_cluster_acknowledges_every_request(delay):
    outcome = simulate(SweepSettings(follower_delay=delay, follower_delay_ms=5.0, **SHORT))
    assert outcome.requests == outcome.acknowledged > 100
    assert (outcome.timed_out, outcome.refused, outcome.failed, outcome.outages) == (0, 0, 0, 0)
    assert 5 <= outcome.waited_p50_ms <= 25


def test_requests_time_out_while_a_paused_follower_is_in_the_isr():
    settings = {"seed": 1, "failures_per_minute": 6.0, "outage_ms": 5_000, **SHORT}
    impatient = simulate(SweepSettings(request_timeout_ms=500, **settings))
    patient = simulate(SweepSettings(request_timeout_ms=30_000, **settings))
    assert impatient.outages == patient.outages > 0
    assert impatient.timed_out > 0
    assert patient.timed_out == 0
    assert patient.waited_max_ms > 500
    for outcome in (impatient, patient):
        assert outcome.requests == (outcome.acknowledged + outcome.timed_out + outcome.refused + outcome.failed)


def test_requests_are_refused_once_the_isr_is_below_its_minimum():
    outcome = simulate(
        SweepSettings(
            seed=1,
            failures_per_minute=6.0,
            outage_ms=8_000,
            replica_lag_time_max_ms=2_000,
            min_insync_replicas=3,
            **SHORT,
        )
    )
    assert outcome.refused > 0
    assert outcome.isr_changes > 0


@pytest.mark.parametrize("wrong", [{"follower_delay": "gaussian"}, {"requests_per_s": 0.0}, {"duration_ms": 0}])
def test_invalid_settings_are_refused(wrong):
    with pytest.raises(ValueError, match=r"choose|above 0"):
        simulate(SweepSettings(**wrong))
