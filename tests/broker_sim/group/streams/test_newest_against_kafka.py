"""Kafka 4.4's own `StickyTaskAssignor` and `CurrentAssignmentBuilder` do with random streams groups what ours do.

Needs Java and Maven; with REQUIRE_REAL_KAFKA set their absence is a failure. Set BROKER_SIM_SEED to run
another seed: the seed is in a failure.
"""

import json
import os
import random
from dataclasses import replace

import pytest

from broker_sim.group.modern.assigned_group import MemberState
from broker_sim.group.streams.assignors.spec import GroupSpec
from broker_sim.group.streams.assignors.sticky import assign
from broker_sim.group.streams.current_assignment import CurrentAssignmentBuilder
from broker_sim.group.streams.member import FIRST_STATE, StreamsMember
from broker_sim.group.streams.streams_group import StreamsGroup
from broker_sim.group.streams.tasks import AssignedTasks, TasksTuple

from .random_group import RandomGroup

pytestmark = [pytest.mark.real_kafka, pytest.mark.soak(part="kafka_classes")]

RUNS = 60
STEPS = 12
TARGET_EPOCH = 9
EPOCHS = (0, 5, 8, TARGET_EPOCH)


def seeds():
    chosen = os.environ.get("BROKER_SIM_SEED")
    return range(RUNS) if chosen is None else [int(chosen)]


def told_tasks(tasks):
    return [[subtopology_id, sorted(numbers)] for subtopology_id, numbers in sorted(tasks.items()) if numbers]


def in_javas_order(rows):
    return sorted(rows, key=lambda row: row[0].encode("utf-16-be"))


def told_tuple(tasks):
    return [in_javas_order(told_tasks(each)) for each in (tasks.active, tasks.standby, tasks.warmup)]


def told_assigned(tasks):
    active = [[name, sorted(map(list, epochs.items()))] for name, epochs in sorted(tasks.active.items())]
    return [active, told_tasks(tasks.standby), told_tasks(tasks.warmup)]


class Reports:
    """Task offsets that the members of a random group have reported."""

    def __init__(self, rng):
        self.rng = rng
        self.offsets = {}

    def change(self, group):
        for member_id in group.processes:
            if self.rng.random() < 0.3:
                tasks = group._some_tasks()
                self.offsets[member_id] = {
                    name: {number: self.rng.choice([0, 1, 1, 70, 900]) for number in numbers}
                    for name, numbers in tasks.items()
                }


def test_random_groups_get_the_same_tasks_as_in_kafka(newest_streams_peer):
    """Members leave and join, processes die, offsets are reported, standby replicas and partitions change."""
    for seed in seeds():
        rng = random.Random(seed)
        group, reports = RandomGroup(rng), Reports(rng)
        for step in range(STEPS):
            spec = group.spec()
            members = {
                member_id: replace(member, offsets=reports.offsets.get(member_id, {}))
                for member_id, member in spec.members.items()
            }
            told = {
                "standby": group.standby,
                "subtopologies": [[name, *tasks] for name, tasks in group.subtopologies.items()],
                "members": [
                    {
                        "id": member_id,
                        "process": member.process_id,
                        "active": told_tasks(member.tasks.active),
                        "standby": told_tasks(member.tasks.standby),
                        "offsets": [[name, list(map(list, each.items()))] for name, each in member.offsets.items()],
                    }
                    for member_id, member in members.items()
                ],
            }
            (line,) = newest_streams_peer.ask("assign", json.dumps(told))
            group.targets = assign(GroupSpec(members, spec.configs, is_4_4=True), group.subtopologies)
            ours = [[member_id, *told_tuple(target)[:2]] for member_id, target in group.targets.items()]
            assert ours == json.loads(line), f"seed {seed}, step {step}"
            group.change()
            reports.change(group)


class RandomMembers:
    """Members of a few processes that have some tasks, each of which somebody runs or has a copy of."""

    def __init__(self, rng):
        self.rng = rng

    def tasks(self, share):
        rng = self.rng
        chosen = {name: frozenset(n for n in range(3) if rng.random() < share) for name in ("0", "1")}
        return {name: numbers for name, numbers in chosen.items() if numbers}

    def assigned(self, share):
        active = {name: {n: self.rng.choice(EPOCHS) for n in numbers} for name, numbers in self.tasks(share).items()}
        return AssignedTasks(active, self.tasks(share), self.tasks(share))

    def member(self, number):
        rng = self.rng
        state = rng.choice([MemberState.STABLE, MemberState.UNREVOKED, MemberState.UNRELEASED])
        revokes = state is MemberState.UNREVOKED
        return StreamsMember(
            f"member-{number}",
            member_epoch=rng.choice(EPOCHS),
            previous_member_epoch=rng.choice(EPOCHS),
            state=state,
            process_id=f"process-{rng.randrange(2)}",
            assigned=self.assigned(0.3),
            pending_revocation=self.assigned(0.2) if revokes else AssignedTasks(),
        )

    def tuple(self, share):
        return TasksTuple(self.tasks(share), self.tasks(share), self.tasks(share))


def told_member(member):
    return {
        "id": member.member_id,
        "process": member.process_id,
        "state": member.state.number(FIRST_STATE),
        "epoch": member.member_epoch,
        "previous": member.previous_member_epoch,
        "assigned": told_assigned(member.assigned),
        "revoked": told_assigned(member.pending_revocation),
    }


def test_random_members_take_the_same_steps_as_in_kafka(newest_streams_peer):
    """Tasks are active, standby and warm-up ones of members in the same processes, and change their kinds."""
    for seed in seeds():
        rng = random.Random(seed)
        for step in range(STEPS * 10):
            drawn = RandomMembers(rng)
            group = StreamsGroup("group")
            for number in range(rng.randrange(1, 4)):
                group.update_member(drawn.member(number))
            member = group.members["member-0"]
            target, owned = drawn.tuple(0.4), rng.choice([None, TasksTuple(), drawn.tuple(0.4)])
            told = {
                "members": [told_member(group.members[member_id]) for member_id in sorted(group.members)],
                "member": member.member_id,
                "epoch": TARGET_EPOCH,
                "target": told_tuple(target),
                "owned": None if owned is None else told_tuple(owned),
            }
            (line,) = newest_streams_peer.ask("step", json.dumps(told))
            after = CurrentAssignmentBuilder(TARGET_EPOCH, target, group.owners, owned, keeps_state=True).build(member)
            ours = told_member(after)
            del ours["id"], ours["process"]
            assert ours == json.loads(line), f"seed {seed}, step {step}: {told}"
