"""The reconciliation of a streams member with its target; mirrors `streams.CurrentAssignmentBuilder`.

A member moves from its assigned tasks to its target in steps:
A. it must revoke tasks that are not in the target, and stays in its epoch until it has confirmed that
B. then it moves to the target's epoch, and gets the tasks that are free
C. it gets tasks that other members still have as soon as they are free

An active task is free if no process runs it and the member's process has no copy of it (standby or warm-up task).
A copy is free if the member's process has neither the active task nor a copy.

From Kafka 4.4 on, the member's own tasks do not count, so that it keeps the state while a task changes its kind. This
adds to a step:
D. an active task that becomes a standby task, and a copy that becomes the other kind of copy, change at once
E. a copy that is to become the active task is not revoked until it does
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.modern.assigned_group import MemberState
from broker_sim.group.streams.tasks import (
    NO_ASSIGNED_TASKS,
    NO_TASKS,
    AssignedTasks,
    TasksTuple,
    common,
    merged,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.group.streams.member import StreamsMember
    from broker_sim.group.streams.streams_group import TaskOwners
    from broker_sim.group.streams.tasks import ActiveTasks, Tasks

    IsFree = Callable[[str, int], bool]


class CurrentAssignmentBuilder(NamedTuple):
    """The input of a member's next step: its target, and the tasks that it and others own."""

    target_epoch: int
    target: TasksTuple
    owners: TaskOwners
    owned: TasksTuple | None
    """The tasks that the member reports as owned; None if it does not report any."""
    keeps_state: bool = False
    """Whether D and E apply, as from Kafka 4.4 on."""

    def build(self, member: StreamsMember) -> StreamsMember:
        """Return the member after its next step; the same object if there is none.

        Raises `ApiError` FENCED_MEMBER_EPOCH for a member in a state written by a later Kafka release.
        """
        if member.state is MemberState.STABLE and member.member_epoch == self.target_epoch:
            return member
        if member.state is MemberState.UNREVOKED:
            if self.owned is None or member.pending_revocation.are_owned(self.owned):
                return member
            return self._towards_target(member, member.member_epoch + 1)
        if member.state is MemberState.UNKNOWN:
            if self.owned != NO_TASKS:
                raise ApiError(
                    ErrorCode.FENCED_MEMBER_EPOCH,
                    "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
                )
            return self._towards_target(member, self.target_epoch)
        return self._towards_target(member, member.member_epoch)

    def _towards_target(self, member: StreamsMember, member_epoch: int) -> StreamsMember:
        """Run A, B or C; `member_epoch` is the epoch in A."""
        assigned = member.assigned
        active, standby, warmup = self._steps(member)
        if self.keeps_state:
            standby.grant(common(standby.new, assigned.active))  # D
            standby.become(warmup, assigned.standby)
            warmup.become(standby, assigned.warmup)
            for copy, current in ((standby, assigned.standby), (warmup, assigned.warmup)):  # E
                copy.revoked = without(copy.revoked, common(current, self.target.active))
        revoked = AssignedTasks(_with_epochs(active.revoked, assigned.active), standby.revoked, warmup.revoked)
        revokes = not revoked.is_empty and (self.owned is None or revoked.are_owned(self.owned))
        if self.keeps_state:
            granted = {} if revokes else active.new
            for copy, current in ((standby, assigned.standby), (warmup, assigned.warmup)):  # E
                copy.kept = merged(copy.kept, without(common(current, self.target.active), granted))
        kept = AssignedTasks(_with_epochs(active.kept, assigned.active), standby.kept, warmup.kept)
        if revokes:
            return replace(
                member,
                state=MemberState.UNREVOKED,
                member_epoch=member_epoch,
                previous_member_epoch=member.member_epoch,
                assigned=kept,
                pending_revocation=revoked,
            )
        new_active = {
            subtopology: dict.fromkeys(partitions, self.target_epoch) for subtopology, partitions in active.new.items()
        }
        new = AssignedTasks(new_active, standby.new, warmup.new)
        waits = active.waits or standby.waits or warmup.waits
        return replace(
            member,
            state=MemberState.UNRELEASED if waits else MemberState.STABLE,
            member_epoch=self.target_epoch,
            previous_member_epoch=member.member_epoch,
            assigned=kept.merged(new),
            pending_revocation=NO_ASSIGNED_TASKS,
        )

    def _steps(self, member: StreamsMember) -> tuple[_Step, _Step, _Step]:
        """Return the steps for active, standby and warm-up tasks."""
        assigned, target = member.assigned, self.target
        if self.keeps_state:
            free = FreeForMember(self.owners, member)
            return (
                _Step(assigned.active, target.active, free.for_active),
                _Step(assigned.standby, target.standby, free.for_standby),
                _Step(assigned.warmup, target.warmup, free.for_warmup),
            )
        is_free = self._is_free_for_copy(member)
        return (
            _Step(assigned.active, target.active, self._is_free_for_active(member)),
            _Step(assigned.standby, target.standby, is_free),
            _Step(assigned.warmup, target.warmup, is_free),
        )

    def _is_free_for_active(self, member: StreamsMember) -> IsFree:
        owners, process_id = self.owners, member.process_id

        def is_free(subtopology: str, partition: int) -> bool:
            return owners.active_process(subtopology, partition) is None and not owners.has_copy(
                process_id, subtopology, partition
            )

        return is_free

    def _is_free_for_copy(self, member: StreamsMember) -> IsFree:
        owners, process_id = self.owners, member.process_id

        def is_free(subtopology: str, partition: int) -> bool:
            return owners.active_process(subtopology, partition) != process_id and not owners.has_copy(
                process_id, subtopology, partition
            )

        return is_free


class FreeForMember:
    """Decides which tasks are free for a member from Kafka 4.4 on, where its own copies do not count."""

    __slots__ = ("_assigned", "_owners", "_process_id")

    def __init__(self, owners: TaskOwners, member: StreamsMember) -> None:
        self._owners, self._process_id, self._assigned = owners, member.process_id, member.assigned

    def for_active(self, subtopology: str, partition: int) -> bool:
        """Return whether the member may get the active task."""
        return (
            self._owners.active_process(subtopology, partition) is None
            and not self._others_have_standby(subtopology, partition)
            and not self._others_have_warmup(subtopology, partition)
        )

    def for_standby(self, subtopology: str, partition: int) -> bool:
        """Return whether the member may get the standby task."""
        runs_it = self._owners.active_process(subtopology, partition) == self._process_id
        return not (
            (runs_it and partition not in self._assigned.active.get(subtopology, ()))
            or self._owners.has_standby(self._process_id, subtopology, partition)
            or self._others_have_warmup(subtopology, partition)
        )

    def for_warmup(self, subtopology: str, partition: int) -> bool:
        """Return whether the member may get the warm-up task."""
        return not (
            self._owners.active_process(subtopology, partition) == self._process_id
            or self._others_have_standby(subtopology, partition)
            or self._owners.has_warmup(self._process_id, subtopology, partition)
        )

    def _others_have_standby(self, subtopology: str, partition: int) -> bool:
        """Return whether another member of the process has the standby task."""
        own = self._assigned.standby.get(subtopology, ())
        return partition not in own and self._owners.has_standby(self._process_id, subtopology, partition)

    def _others_have_warmup(self, subtopology: str, partition: int) -> bool:
        """Return whether another member of the process has the warm-up task."""
        own = self._assigned.warmup.get(subtopology, ())
        return partition not in own and self._owners.has_warmup(self._process_id, subtopology, partition)


class _Step:
    """The next step for one kind of tasks."""

    __slots__ = ("kept", "new", "revoked", "waits")

    def __init__(self, current: Tasks | ActiveTasks, target: Tasks, is_free: IsFree) -> None:
        current_tasks = {subtopology: frozenset(numbers) for subtopology, numbers in current.items()}
        self.kept = common(current_tasks, target)
        """Current tasks that are in the target."""
        self.revoked = without(current_tasks, target)
        """Current tasks that are not in the target."""
        missing = without(target, current_tasks)
        free = {name: frozenset(each for each in numbers if is_free(name, each)) for name, numbers in missing.items()}
        self.new: Tasks = {subtopology: numbers for subtopology, numbers in free.items() if numbers}
        """Free tasks of the target that the member does not have."""
        self.waits = self.new != missing
        """Whether a task of the target is not free yet."""

    def grant(self, tasks: Tasks) -> None:
        """Assign these new tasks at once, even if others must be revoked first."""
        self.new = without(self.new, tasks)
        self.kept = merged(self.kept, tasks)

    def become(self, other: _Step, current: Tasks) -> None:
        """Convert the current tasks of this kind that are new tasks of the other kind."""
        changed = common(other.new, current)
        other.grant(changed)
        self.revoked = without(self.revoked, changed)


def _with_epochs(tasks: Tasks, epochs: ActiveTasks) -> ActiveTasks:
    return {
        subtopology: {number: epochs[subtopology][number] for number in numbers}
        for subtopology, numbers in tasks.items()
    }
