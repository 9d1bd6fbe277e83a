"""Kafka's own `StickyTaskAssignor` and ours give the same tasks to the same members, in the same order.

Needs Java and Maven; with REQUIRE_REAL_KAFKA set their absence is a failure. Set BROKER_SIM_SEED to run
another seed: the seed is in a failure.
"""

import json
import os
import random

import pytest

from broker_sim.group.streams.assignors.sticky import assign

from .random_group import RandomGroup

pytestmark = [pytest.mark.real_kafka, pytest.mark.soak(part="kafka_classes")]

RUNS = 60
STEPS = 12


def assigned_by_kafka(peer, group):
    told = {
        "standby": group.standby,
        "subtopologies": [[name, *tasks] for name, tasks in group.subtopologies.items()],
        "members": [
            [
                member_id,
                process_id,
                told_tasks(group.targets[member_id].active if member_id in group.targets else {}),
                told_tasks(group.targets[member_id].standby if member_id in group.targets else {}),
                group.rng.choice([None, "instance"]),
            ]
            for member_id, process_id in group.processes.items()
        ],
    }
    (line,) = peer.ask("assign", json.dumps(told))
    return json.loads(line)


def told_tasks(tasks):
    return [[subtopology_id, sorted(numbers)] for subtopology_id, numbers in tasks.items()]


def test_random_groups_get_the_same_tasks_as_in_kafka(streams_peer):
    """Members leave and join, processes die, standby replicas and partitions change."""
    chosen = os.environ.get("BROKER_SIM_SEED")
    for seed in range(RUNS) if chosen is None else [int(chosen)]:
        group = RandomGroup(random.Random(seed))
        for step in range(STEPS):
            theirs = assigned_by_kafka(streams_peer, group)
            group.targets = assign(group.spec(), group.subtopologies)
            ours = [
                [member_id, *map(told_tasks, (target.active, target.standby, target.warmup))]
                for member_id, target in group.targets.items()
            ]
            assert ours == theirs, f"seed {seed}, step {step}"
            group.change()
