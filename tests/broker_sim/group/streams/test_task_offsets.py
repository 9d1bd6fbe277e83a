"""Tests of task offsets that members of streams groups report, from Kafka 4.4 on."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.group.modern.assigned_group import MemberState
from broker_sim.group.streams.assignors.spec import GroupSpec, MemberSpec, SubtopologyTasks
from broker_sim.group.streams.assignors.sticky import assign
from broker_sim.group.streams.current_assignment import CurrentAssignmentBuilder
from broker_sim.group.streams.member import StreamsMember
from broker_sim.group.streams.streams_group import StreamsGroup
from broker_sim.group.streams.tasks import NO_TASKS, AssignedTasks, TasksTuple
from broker_sim.group.streams.topics.configured_topology import Status
from tests.broker_sim.group.streams.members import GROUP, Request

NONE = ErrorCode.NONE
STATEFUL = {"0": SubtopologyTasks(1, True)}


def offset(partition, value):
    return Request.TaskOffset("0", partition, value)


def described_offsets(streams):
    (member,) = streams.describe().members
    return member.task_offsets, member.task_end_offsets


def test_last_report_is_described_until_the_member_leaves(newest):
    newest.bench.set_topic("in", 2)
    member = newest.member("a")
    member.join()
    assert member.beat(task_offsets=[offset(1, 7), offset(0, 5)], task_end_offsets=[offset(0, 9)]) == NONE
    offsets, ends = described_offsets(newest)
    assert [(each.subtopology_id, each.partition, each.offset) for each in offsets] == [("0", 0, 5), ("0", 1, 7)]
    assert [(each.subtopology_id, each.partition, each.offset) for each in ends] == [("0", 0, 9)]
    member.beat(task_offsets=[offset(0, 6)])
    offsets, ends = described_offsets(newest)
    assert [each.offset for each in (*offsets, *ends)] == [6, 9]
    member.leave()
    member.join()
    assert described_offsets(newest) == ([], [])


def test_report_with_duplicate_task_is_rejected(newest):
    newest.bench.set_topic("in", 1)
    member = newest.member("a")
    member.join()
    assert member.beat(task_offsets=[offset(0, 1), offset(0, 2)]) == ErrorCode.INVALID_REQUEST
    assert member.answer.error_message == ("Task offsets contain a duplicate entry for subtopology 0 and partition 0.")


def test_reports_are_lost_on_failover(newest):
    newest.bench.set_topic("in", 1)
    member = newest.member("a")
    member.join()
    member.beat(task_offsets=[offset(0, 1)])
    newest.bench.fail_over()
    assert described_offsets(newest) == ([], [])


def test_response_has_interval_and_lag(newest):
    newest.bench.set_topic("in", 1)
    member = newest.member("a")
    member.join()
    assert (member.answer.task_offset_interval_ms, member.answer.acceptable_recovery_lag) == (60_000, 10_000)
    newest.bench.configure_group(GROUP, **{"streams.task.offset.interval.ms": 1, "streams.acceptable.recovery.lag": 77})
    member.beat()
    # An interval below the broker's least one is that.
    assert (member.answer.task_offset_interval_ms, member.answer.acceptable_recovery_lag) == (15_000, 77)


def test_response_of_4_3_has_neither(streams):
    streams.bench.set_topic("in", 1)
    member = streams.member("a")
    member.join()
    assert (member.answer.task_offset_interval_ms, member.answer.acceptable_recovery_lag) == (0, -1)


@pytest.mark.parametrize("ahead", ["a", "b"])
def test_unassigned_task_goes_to_the_highest_offset(ahead):
    offsets = {"a": {"0": {0: 1}}, "b": {"0": {0: 1}}}
    offsets[ahead]["0"][0] = 5
    members = {name: MemberSpec(f"process-{name}", NO_TASKS, offsets[name]) for name in "ab"}
    targets = assign(GroupSpec(members, {}, is_4_4=True), STATEFUL)
    assert [name for name, target in targets.items() if target.active] == [ahead]


@pytest.mark.parametrize("ahead", ["b", "c"])
def test_task_of_left_member_goes_to_the_highest_offset(newest, ahead):
    newest.bench.set_topic("in", 1)
    members = {name: newest.member(name) for name in "abc"}
    for name, each in members.items():
        each.join()
        each.beat(task_offsets=[offset(0, 5 if name == ahead else 1)])
    assert members["a"].active == {"0": [0]}
    members.pop("a").leave()
    newest.settle(*members.values())
    assert [name for name, each in members.items() if each.active] == [ahead]


def test_former_standby_task_is_preferred_over_offsets():
    members = {
        "a": MemberSpec("process-a", NO_TASKS, {"0": {0: 99}}),
        "b": MemberSpec("process-b", TasksTuple(standby={"0": frozenset({0})})),
    }
    targets = assign(GroupSpec(members, {}, is_4_4=True), STATEFUL)
    assert targets["b"].active == {"0": {0}}


def test_assigned_tasks_are_used_instead_of_the_last_target(streams, newest):
    """The first member has not revoked its task yet: in 4.3 the second member keeps its target, in 4.4 it does not."""
    targets = []
    for groups in (streams, newest):
        groups.bench.set_topic("in", 3)
        for name in "acb":
            groups.member(name).join()
        targets.append({name: dict(target.active) for name, target in groups.group.targets.items()})
    assert targets == [
        {"a": {"0": {0}}, "c": {"0": {2}}, "b": {"0": {1}}},
        {"a": {"0": {0}}, "c": {"0": {1}}, "b": {"0": {2}}},
    ]


def step(member, target, *others, owned=NO_TASKS):
    group = StreamsGroup(GROUP)
    for each in (member, *others):
        group.update_member(each)
    return CurrentAssignmentBuilder(9, target, group.owners, owned, keeps_state=True).build(member)


def member(member_id="a", process="p", **tasks):
    return StreamsMember(member_id, member_epoch=5, process_id=process, assigned=AssignedTasks(**tasks))


TASK = {"0": frozenset({0})}


@pytest.mark.parametrize("kind", ["standby", "warmup"])
def test_copy_stays_until_it_becomes_active(kind):
    runs = member("b", "q", active={"0": {0: 5}})
    copies = member(**{kind: TASK})
    target = TasksTuple(active=TASK)
    owned = TasksTuple(**{kind: TASK})
    waits = step(copies, target, runs, owned=owned)
    assert (waits.state, waits.assigned) == (MemberState.UNRELEASED, AssignedTasks(**{kind: TASK}))
    gets = step(copies, target, owned=owned)
    assert (gets.state, gets.assigned) == (MemberState.STABLE, AssignedTasks({"0": {0: 9}}))


def test_active_task_becomes_standby_at_once():
    runs = member(active={"0": {0: 5}})
    after = step(runs, TasksTuple(standby=TASK), owned=TasksTuple(active=TASK))
    assert after.state is MemberState.UNREVOKED
    assert after.assigned == AssignedTasks(standby=TASK)
    assert after.pending_revocation == AssignedTasks({"0": {0: 5}})


@pytest.mark.parametrize(("before", "after"), [("standby", "warmup"), ("warmup", "standby")])
def test_copy_changes_its_kind_at_once(before, after):
    owned = TasksTuple(**{before: TASK})
    stepped = step(member(**{before: TASK}), TasksTuple(**{after: TASK}), owned=owned)
    assert (stepped.state, stepped.assigned) == (MemberState.STABLE, AssignedTasks(**{after: TASK}))


def test_copy_of_another_member_in_the_process_blocks():
    copies = member("b", standby=TASK)
    for target in (TasksTuple(active=TASK), TasksTuple(standby=TASK), TasksTuple(warmup=TASK)):
        assert step(member(), target, copies).state is MemberState.UNRELEASED


def test_missing_client_tags_get_a_status(make_newest):
    streams = make_newest(**{"group.streams.rack.aware.assignment.tags": "zone, cluster"})
    streams.bench.set_topic("in", 1)
    told = streams.member("a")
    told.join(client_tags=[Request.KeyValue("zone", "z")])
    assert told.statuses == {
        Status.MISSING_CLIENT_TAGS: "Missing required client tags for rack-aware standby assignment: [cluster]. "
        "Configure them via 'client.tag.<tagKey>' in your Streams config."
    }
    told.beat(version=0)
    assert told.statuses == {}
    streams.bench.configure_group(GROUP, **{"streams.rack.aware.assignment.tags": "zone"})
    before = streams.group.group_epoch
    told.beat()
    assert (told.statuses, streams.group.group_epoch) == ({}, before + 1)
