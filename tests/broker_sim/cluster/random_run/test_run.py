"""Runs with random faults: what must hold holds, and a seed repeats its trace."""

import gc
import os
import random

import pytest

from broker_sim.cluster.random_run import (
    CONTROLLER,
    Action,
    Producer,
    RunFailedError,
    Schedule,
    draw_schedule,
    run,
    run_schedule,
)
from broker_sim.cluster.virtual.invariants import InvariantViolationError
from broker_sim.cluster.virtual.virtual_cluster import SimulationError, VirtualCluster
from broker_sim.protocol import messages

FIXED_SEEDS = range(12)


@pytest.mark.parametrize("seed", FIXED_SEEDS)
def test_all_invariants_hold_with_overlapping_faults(seed):
    run_schedule(draw_schedule(seed))


def test_random_seed_passes_too():
    chosen = (
        len(FIXED_SEEDS)
        if os.environ.get("CI") == "true"
        else random.SystemRandom().randrange(1 << 32)
    )
    seed = int(os.environ.get("BROKER_SIM_SEED", chosen))
    print(f"BROKER_SIM_SEED={seed}")
    run_schedule(draw_schedule(seed))


def test_same_seed_gives_the_same_trace_and_other_seeds_others():
    digests = [run_schedule(draw_schedule(seed)).digest for seed in (5, 5, 6)]
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


def everything_at_once(kind, value=0):
    """Every broker has the fault from 1 s to 2.5 s."""
    return tuple(Action(1_000, kind, (broker,), 1_500, value) for broker in (1, 2, 3))


@pytest.mark.parametrize(
    "actions",
    [
        *(
            everything_at_once(kind)
            for kind in ("pause", "kill", "stop", "isolate", "cut_requests", "cut_responses")
        ),
        everything_at_once("shift_clock", 7_200_000),
        (Action(1_000, "kill", (1,), 2_000), Action(1_000, "kill", (2,), 2_500)),
        (Action(1_000, "cut", (1, 2), 2_500), Action(1_500, "cut", (2, 3), 2_500)),
        (
            Action(1_000, "cut", (1, CONTROLLER), 2_500),
            Action(1_000, "cut", (CONTROLLER, 2), 2_500),
        ),
        (Action(1_000, "slow", (1, 2), 2_500, 400), Action(1_200, "slow", (1, 2), 500, 40)),
        (Action(1_000, "pause", (1,), 2_000), Action(1_500, "kill", (1,), 200)),
        (Action(1_000, "stop", (1,), 100), Action(1_010, "kill", (1,), 500)),
        (Action(1_000, "stop", (1,), 100), Action(1_000, "stop", (1,), 200)),
        tuple(Action(at, "transfer", (0, at // 100 % 3 + 1)) for at in range(500, 3_000, 100)),
    ],
    ids=lambda actions: "+".join(dict.fromkeys(action.kind for action in actions)),
)
def test_nothing_acknowledged_is_lost_when_a_majority_fails_together(actions):
    summary = run_schedule(
        Schedule(
            7,
            producers=(Producer(), Producer(idempotent=True)),
            duration_ms=4_000,
            actions=tuple(sorted(actions)),
        )
    )
    assert summary.actions > 0
    assert summary.acknowledged > 10


@pytest.mark.parametrize(
    "producer", [Producer(), Producer(idempotent=True), Producer(1), Producer(0)]
)
@pytest.mark.parametrize("min_isr", [1, 2, 3])
def test_runs_with_every_kind_of_producer_pass_while_the_leader_changes(producer, min_isr):
    actions = [Action(at, "kill", (at // 1_000,), 700) for at in (1_000, 2_000, 3_000)]
    run_schedule(
        Schedule(
            3,
            min_insync_replicas=min_isr,
            producers=(producer,),
            duration_ms=4_000,
            actions=tuple(actions),
        )
    )


def test_broker_that_two_actions_start_at_the_same_moment_is_started_once():
    actions = (Action(6_270, "stop", (3,), 1_730), Action(6_400, "kill", (3,), 1_600))
    summary = run_schedule(
        Schedule(
            931,
            min_insync_replicas=1,
            producers=(),
            consumers=0,
            duration_ms=8_000,
            actions=actions,
        )
    )
    assert summary.actions == len(actions)


def test_acknowledged_records_may_be_lost_with_unclean_elections_only():
    # The followers hear nothing of the leader, which then dies: one of them is elected without
    # what was acknowledged meanwhile with the leader alone in sync.
    actions = (
        Action(500, "cut", (1, 2), 4_000),
        Action(500, "cut", (1, 3), 4_000),
        Action(3_000, "kill", (1,), 2_500),
    )
    schedule = Schedule(
        4, min_insync_replicas=1, unclean_elections=True, duration_ms=6_000, actions=actions
    )
    run_schedule(schedule)


def test_unknown_kind_of_action_is_refused():
    with pytest.raises(SimulationError, match="explode"):
        run_schedule(Schedule(1, actions=(Action(10, "explode", (1,)),)))


def test_failed_run_names_the_invariant_and_shows_the_last_events(monkeypatch):
    monkeypatch.setattr(run, "RECOVERY_LIMIT_MS", 1)
    schedule = Schedule(7, duration_ms=1_000, actions=(Action(900, "kill", (1,), 100),))
    with pytest.raises(RunFailedError, match=r"^recovers: 1 ms after .* last events:\n") as caught:
        run_schedule(schedule)
    assert caught.value.invariant == "recovers"
    assert caught.value.schedule == schedule


def test_failed_step_of_a_virtual_cluster_names_its_seed():
    cluster = VirtualCluster(seed=77)
    cluster.create_topic("t", 1, 3)
    leader = cluster.nodes.controller.image.topics["t"].partitions[0].leader
    (partition,) = cluster.nodes.brokers[leader].replica_manager.partitions.values()
    partition.log.high_watermark = 5
    with pytest.raises(SimulationError, match=r"seed 77: offsets out of order"):
        cluster.advance(1_000)


@pytest.mark.usefixtures("collects_little")
def test_run_that_ends_before_a_client_has_connected_warns_of_nothing(monkeypatch):
    def fail(cluster, *_):
        cluster.client().send(1, messages.ApiVersionsRequest(), 0)
        raise InvariantViolationError("sound", "it is not")

    monkeypatch.setattr("broker_sim.cluster.random_run.run.check_end", fail)
    with pytest.raises(RunFailedError, match="it is not"):
        run_schedule(Schedule(1))
    gc.collect()
