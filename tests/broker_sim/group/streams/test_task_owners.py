"""Tests of the owners of tasks: a revoked task may already belong to another process."""

from broker_sim.group.streams.member import StreamsMember
from broker_sim.group.streams.streams_group import TaskOwners
from broker_sim.group.streams.tasks import AssignedTasks


def member(name, *, active=(), pending=(), standby=(), warmup=()):
    assigned = AssignedTasks(
        {"0": dict.fromkeys(active, 1)} if active else {},
        {"0": frozenset(standby)} if standby else {},
        {"0": frozenset(warmup)} if warmup else {},
    )
    revoked = AssignedTasks({"0": dict.fromkeys(pending, 1)} if pending else {})
    return StreamsMember(name, process_id=name, assigned=assigned, pending_revocation=revoked)


def test_task_is_owned_until_it_is_revoked():
    owners = TaskOwners()
    before = member("a", active=[0], pending=[1])
    owners.add(before)
    assert [owners.active_process("0", number) for number in (0, 1, 2)] == ["a", "a", None]
    owners.remove(before)
    owners.add(member("a", active=[0]))
    assert [owners.active_process("0", number) for number in (0, 1)] == ["a", None]


def test_moved_task_stays_with_its_new_process():
    owners = TaskOwners()
    old = member("a", active=[0])
    owners.add(old)
    owners.add(member("b", active=[0]))
    owners.remove(old)
    assert owners.active_process("0", 0) == "b"


def test_copies_are_tracked_by_process():
    owners = TaskOwners()
    copies = member("a", standby=[0], warmup=[1])
    owners.add(copies)
    owners.add(member("b", standby=[0]))
    assert [owners.has_copy("a", "0", number) for number in (0, 1, 2)] == [True, True, False]
    assert not owners.has_copy("b", "0", 1)
    owners.remove(copies)
    assert not owners.has_copy("a", "0", 0)
    assert owners.has_copy("b", "0", 0)
