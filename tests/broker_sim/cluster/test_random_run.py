"""Runs with random faults: no acknowledged record is lost, and a seed repeats its trace."""

import os
import random

import pytest

from broker_sim.cluster.random_run import RandomRun
from broker_sim.cluster.virtual_cluster import SimulationError, VirtualCluster

FIXED_SEEDS = range(12)


@pytest.mark.parametrize("seed", FIXED_SEEDS)
def test_nothing_acknowledged_is_lost_while_one_broker_at_a_time_fails(seed):
    summary = RandomRun(seed, duration_ms=40_000).run()
    assert summary.acknowledged > 50
    assert summary.faults > 0


def test_random_seed_passes_too():
    seed = int(os.environ.get("BROKER_SIM_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"BROKER_SIM_SEED={seed}")
    RandomRun(seed, duration_ms=40_000).run()


def test_same_seed_gives_the_same_trace_and_other_seeds_others():
    digests = [RandomRun(seed, duration_ms=20_000).run().digest for seed in (5, 5, 6)]
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


def test_failed_run_names_its_seed_and_its_last_events():
    cluster = VirtualCluster(seed=77)
    cluster.create_topic("t", 1, 3)
    leader = cluster.nodes.controller.image.topics["t"].partitions[0].leader
    (partition,) = cluster.nodes.brokers[leader].replica_manager.partitions.values()
    partition.log.high_watermark = 5
    with pytest.raises(SimulationError, match=r"seed 77: offsets out of order"):
        cluster.advance(1_000)
