"""Runs with random faults: what must hold holds, and a seed repeats its trace."""

import gc
import os
import random
from dataclasses import replace

import pytest

from broker_sim.chaos.faults.action import ScheduleError, broker_names
from broker_sim.chaos.random_run import Action, RunFailedError, Schedule, draw_schedule, run, run_schedule
from broker_sim.cluster.virtual.invariants import InvariantViolationError
from broker_sim.cluster.virtual.virtual_cluster import SimulationError, VirtualCluster
from broker_sim.protocol import messages

FIXED_SEEDS = range(12)


@pytest.mark.parametrize("seed", FIXED_SEEDS)
def test_all_invariants_hold_with_overlapping_faults(seed):
    run_schedule(draw_schedule(seed))


def test_random_seed_passes_too():
    chosen = len(FIXED_SEEDS) if os.environ.get("CI") == "true" else random.SystemRandom().randrange(1 << 32)
    seed = int(os.environ.get("BROKER_SIM_SEED", chosen))
    print(f"BROKER_SIM_SEED={seed}")
    run_schedule(draw_schedule(seed))


def test_same_seed_gives_the_same_trace_and_other_seeds_others():
    digests = [run_schedule(draw_schedule(seed)).digest for seed in (5, 5, 6)]
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


def everything_at_once(kind, value=""):
    """Every broker has the fault from 1 s to 2.5 s."""
    return [Action(1_000, kind, (broker,), 1_500, value) for broker in broker_names(3)]


def read(*lines):
    """Return the actions of these lines."""
    return [Action.parse(line) for line in lines]


@pytest.mark.parametrize(
    "actions",
    [
        *map(everything_at_once, ("pause", "kill", "stop", "isolate", "deaf", "mute")),
        *map(everything_at_once, ("full_disk", "unreachable")),
        everything_at_once("slow_disk", "200"),
        everything_at_once("lag", "300"),
        read("1000 roll brokers"),
        read("1000 error brokers for=1500 value=Produce/REQUEST_TIMED_OUT"),
        read("1000 lose brokers for=1500 value=Produce", "1500 delay leader for=900 value=Produce/400"),
        everything_at_once("shift_clock", "7200000"),
        read("1000 kill broker-1 for=2000", "1000 kill broker-2 for=2500"),
        read("1000 cut_link broker-1 broker-2 for=2500", "1500 cut_link broker-2 broker-3 for=2500"),
        read("1000 cut_link broker-1 controller for=2500", "1000 cut_link controller broker-2 for=2500"),
        read(
            "1000 slow_link broker-1 broker-2 for=2500 value=400", "1200 slow_link broker-1 broker-2 for=500 value=40"
        ),
        read("1000 pause broker-1 for=2000", "1500 kill broker-1 for=200"),
        read("1000 stop broker-1 for=100", "1010 kill broker-1 for=500"),
        read("1000 stop broker-1 for=100", "1000 stop broker-1 for=200"),
        read(*(f"{at} transfer broker-{at // 100 % 3 + 1} value=0" for at in range(500, 3_000, 100))),
    ],
    ids=lambda actions: "+".join(dict.fromkeys(action.kind for action in actions)),
)
def test_nothing_acknowledged_is_lost_when_a_majority_fails_together(actions):
    summary = run_schedule(
        Schedule(7, producers=("acks_all", "idempotent"), duration_ms=4_000, actions=tuple(sorted(actions)))
    )
    assert summary.actions > 0
    assert summary.acknowledged > 10


@pytest.mark.parametrize("producer", ["acks_all", "idempotent", "acks_1", "acks_0"])
@pytest.mark.parametrize("min_isr", [1, 2, 3])
def test_runs_with_every_kind_of_producer_pass_while_the_leader_changes(producer, min_isr):
    actions = read(*(f"{number}000 kill broker-{number} for=700" for number in (1, 2, 3)))
    run_schedule(
        Schedule(3, min_insync_replicas=min_isr, producers=(producer,), duration_ms=4_000, actions=tuple(actions))
    )


def test_broker_that_two_actions_start_at_the_same_moment_is_started_once():
    actions = tuple(read("6270 stop broker-3 for=1730", "6400 kill broker-3 for=1600"))
    summary = run_schedule(
        Schedule(931, min_insync_replicas=1, producers=(), consumers=0, duration_ms=8_000, actions=actions)
    )
    assert summary.actions == len(actions)


def test_last_leader_may_lead_again_with_a_replica_that_has_joined_it_in_the_same_moment():
    lines = (
        "seed=536750827 brokers=3 latency_ms=0 duration_ms=4000 min_insync_replicas=3 producers=",
        "1500 full_disk broker-1 for=100",
        "1700 kill broker-3 for=50",
        "1770 full_disk broker-2 for=2000",
        "3730 isolate broker-2 for=270",
        "3730 isolate broker-3 for=270",
    )
    schedule = Schedule.parse("\n".join(lines))
    assert run_schedule(replace(schedule, consumers=0, consumer_members=1)).actions == 5


def test_acknowledged_records_may_be_lost_with_unclean_elections_only():
    # The followers hear nothing of the leader, which then dies: one of them is elected without
    # what was acknowledged meanwhile with the leader alone in sync.
    actions = (
        Action(500, "cut_link", ("broker-1", "broker-2"), 4_000),
        Action(500, "cut_link", ("broker-1", "broker-3"), 4_000),
        Action(3_000, "kill", ("broker-1",), 2_500),
    )
    schedule = Schedule(4, min_insync_replicas=1, unclean_elections=True, duration_ms=6_000, actions=actions)
    run_schedule(schedule)


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("10 explode broker-1", "unknown kind 'explode'"),
        ("10 crash worker-1 for=100", "this run has no workers"),
        ("10 transfer broker-1", "add a value, such as value=0"),
    ],
)
def test_action_that_means_nothing_is_refused(action, error):
    with pytest.raises(ScheduleError, match=error):
        run_schedule(Schedule(1, actions=(Action.parse(action),)))


def test_failed_run_names_the_invariant_and_shows_the_last_events(monkeypatch):
    monkeypatch.setattr(run, "RECOVERY_LIMIT_MS", 1)
    schedule = Schedule(7, duration_ms=1_000, actions=(Action(900, "kill", ("broker-1",), 100),))
    with pytest.raises(RunFailedError, match=r"^recovers: 1 ms after .* last events:\n") as caught:
        run_schedule(schedule)
    assert caught.value.invariant == "recovers"
    assert caught.value.schedule == schedule


def test_failed_step_of_a_virtual_cluster_names_its_seed():
    cluster = VirtualCluster(seed=77)
    cluster.create_topic("t", 1, 3)
    leader = cluster.nodes.controller.image.topics["t"].partitions[0].leader
    (partition,) = cluster.nodes.brokers[leader].replica_manager.partitions.values()
    partition.log.offsets.high_watermark = 5
    with pytest.raises(SimulationError, match=r"seed 77: offsets out of order"):
        cluster.advance(1_000)


@pytest.mark.usefixtures("collects_little")
def test_run_that_ends_before_a_client_has_connected_warns_of_nothing(monkeypatch):
    def fail(cluster, *_):
        cluster.client().send(1, messages.ApiVersionsRequest(), 0)
        raise InvariantViolationError("sound", "it is not")

    monkeypatch.setattr("broker_sim.chaos.random_run.run.check_end", fail)
    with pytest.raises(RunFailedError, match="it is not"):
        run_schedule(Schedule(1))
    gc.collect()
