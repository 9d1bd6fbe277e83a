"""Tests of task assignments; where the order of members matters, the expected tasks were printed by Kafka's class."""

from random import Random

import pytest

from broker_sim.group.modern.assignment import AssignorError
from broker_sim.group.streams.assignors.spec import GroupSpec, MemberSpec, SubtopologyTasks
from broker_sim.group.streams.assignors.sticky import assign
from broker_sim.group.streams.tasks import NO_TASKS, TasksTuple

from .random_group import RandomGroup

SEEDS = 20
STEPS = 12


def tasks(text):
    """Return the tasks in a text such as `0_1 0_2 1_1`."""
    found = {}
    for word in text.split():
        subtopology_id, partition = word.split("_")
        found.setdefault(subtopology_id, set()).add(int(partition))
    return {subtopology_id: frozenset(numbers) for subtopology_id, numbers in found.items()}


def target(active, standby=""):
    return TasksTuple(tasks(active), tasks(standby))


def spec(members, standby=0):
    """Return a group of members by name, each with its process and its last target."""
    return GroupSpec({name: MemberSpec(*of) for name, of in members.items()}, {"num.standby.replicas": str(standby)})


TWO = {"0": SubtopologyTasks(4, is_stateful=True), "1": SubtopologyTasks(4, is_stateful=False)}
ONE = {"0": SubtopologyTasks(4, is_stateful=True)}


def test_new_members_get_tasks_of_each_subtopology_in_turn():
    new = {name: (name, NO_TASKS) for name in ("a", "b")}
    assert assign(spec(new), TWO) == {"a": target("0_0 0_2 1_0 1_2"), "b": target("0_1 0_3 1_1 1_3")}


def test_new_member_gets_only_tasks_above_the_quota():
    members = {"a": ("a", target("0_0 0_1 1_0 1_1")), "b": ("b", target("0_2 0_3 1_2 1_3")), "c": ("c", NO_TASKS)}
    assert assign(spec(members), TWO) == {
        "a": target("0_0 0_1 1_0"),
        "b": target("0_2 0_3 1_2"),
        "c": target("1_1 1_3"),
    }


def test_quota_shrinks_once_a_member_is_full():
    members = {"a": ("a", target("0_0 0_1 0_2")), "b": ("b", target("0_3 0_4 0_5")), "c": ("c", target("0_6"))}
    assert assign(spec(members), {"0": SubtopologyTasks(7, is_stateful=False)}) == {
        "a": target("0_0 0_1 0_2"),
        "b": target("0_3 0_4"),
        "c": target("0_5 0_6"),
    }


def test_task_of_a_dead_member_goes_to_its_state():
    members = {"a": ("a", target("0_0", "0_3")), "b": ("b", target("0_1", "0_2"))}
    assert assign(spec(members), ONE) == {"a": target("0_0 0_3"), "b": target("0_1 0_2")}


def test_standby_tasks_are_in_other_processes_and_stateful_only():
    members = {name: (name, NO_TASKS) for name in ("a", "b")}
    assert assign(spec(members, standby=1), TWO) == {
        "a": target("0_0 0_2 1_0 1_2", "0_1 0_3"),
        "b": target("0_1 0_3 1_1 1_3", "0_0 0_2"),
    }


def test_members_of_one_process_have_no_standby_tasks():
    members = dict.fromkeys(("a", "b"), ("same", NO_TASKS))
    assert assign(spec(members, standby=1), ONE) == {"a": target("0_0 0_2"), "b": target("0_1 0_3")}


def test_process_with_more_members_gets_more_tasks():
    members = {"a": ("big", NO_TASKS), "b": ("big", NO_TASKS), "c": ("small", NO_TASKS)}
    assert assign(spec(members), {"0": SubtopologyTasks(6, is_stateful=False)}) == {
        "a": target("0_1 0_4"),
        "b": target("0_2 0_5"),
        "c": target("0_0 0_3"),
    }


def test_former_active_member_gets_the_standby_task():
    members = {"a": ("a", target("0_0 0_1 0_2 0_3")), "b": ("b", NO_TASKS)}
    assert assign(spec(members, standby=1), ONE) == {
        "a": target("0_0 0_1", "0_2 0_3"),
        "b": target("0_2 0_3", "0_0 0_1"),
    }


def test_existing_state_is_preferred_for_standby_tasks():
    members = {"a": ("a", target("0_0 0_1 0_2 0_3")), "b": ("b", NO_TASKS), "c": ("c", NO_TASKS)}
    assert assign(spec(members, standby=1), ONE) == {
        "a": target("0_0 0_1", "0_3"),
        "b": target("0_2", "0_1"),
        "c": target("0_3", "0_0 0_2"),
    }


def test_equal_processes_are_ordered_as_in_javas_heap():
    """Five equal processes; heapq would return them in another order."""
    members = {name: (name, NO_TASKS) for name in "abcde"}
    result = assign(spec(members), {"0": SubtopologyTasks(5, is_stateful=False)})
    assert {name: sorted(of.active["0"]) for name, of in result.items()} == {
        "a": [0],
        "b": [2],
        "c": [4],
        "d": [3],
        "e": [1],
    }


def test_subtopologies_are_in_kafkas_table_order():
    topology = {str(number): SubtopologyTasks(1, is_stateful=False) for number in range(12)}
    topology = dict(sorted(topology.items()))
    result = assign(spec({"a": ("a", NO_TASKS)}), topology)
    assert list(result["a"].active) == ["11", *map(str, range(11))]


def test_tasks_without_members_raise():
    with pytest.raises(AssignorError, match="No process available to assign active task 0_0"):
        assign(spec({}), ONE)
    assert assign(spec({}), {}) == {}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_task_is_active_once_and_standby_in_other_processes(seed):
    group = RandomGroup(Random(seed))
    for _ in range(STEPS):
        given = group.spec()
        group.targets = assign(given, group.subtopologies)
        active, standby = {}, {}
        for member_id, of in group.targets.items():
            process = given.members[member_id].process_id
            for kind, owners in ((of.active, active), (of.standby, standby)):
                for subtopology_id, numbers in kind.items():
                    for number in numbers:
                        owners.setdefault((subtopology_id, number), []).append(process)
        assert {task: len(owners) for task, owners in active.items()} == {
            (subtopology_id, number): 1
            for subtopology_id, (count, _) in group.subtopologies.items()
            for number in range(count)
        }
        processes = set(group.processes.values())
        for (subtopology_id, number), (owner,) in active.items():
            others = standby.get((subtopology_id, number), [])
            assert len({owner, *others}) == 1 + len(others)
            wanted = given.standby_replicas if group.subtopologies[subtopology_id].is_stateful else 0
            assert len(others) == min(wanted, len(processes) - 1)
        group.change()
