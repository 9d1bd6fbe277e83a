"""A member's next step towards its target; mirrors `streams.CurrentAssignmentBuilder`.

A member goes from what it has to its target in steps:
A. it is to give up what is not in the target, and stays in its epoch until it says that it has
B. then it moves to the epoch of the target, and gets what nobody else has
C. what others still have it gets later, as soon as it is free

A task is free for an active one if no process runs it, and the member's own process has no copy of it. It is
free for a copy if the member's own process has nothing of it.

From Kafka 4.4 on, what the member itself has does not count there: its state stays where it is while a task changes
its kind. Then there is more to a step:
D. an active task that becomes a standby task, and a copy that becomes one of the other kind, do so at once
E. a copy that is to become the active task is not given up: it stays until it does
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

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


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """A member's target, and the tasks that it and others own."""

    target_epoch: int
    target: TasksTuple
    owners: TaskOwners
    owned: TasksTuple | None
    """The tasks that the member says that it owns; None if it says nothing."""
    keeps_state: bool = False
    """Whether D and E are done, as from Kafka 4.4 on."""

    def next_step(self, member: StreamsMember) -> StreamsMember:
        """Return the member after its next step, or the same member.

        Raises `ApiError` FENCED_MEMBER_EPOCH for a member in a state of a later Kafka.
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
        """Do A, B or C; `member_epoch` is the epoch of A."""
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
        """Return the steps of active, standby and warm-up tasks."""
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
    """The tasks that are free for a member from Kafka 4.4 on: its own copies of a task are not in its way."""

    __slots__ = ("_assigned", "_owners", "_process_id")

    def __init__(self, owners: TaskOwners, member: StreamsMember) -> None:
        self._owners, self._process_id, self._assigned = owners, member.process_id, member.assigned

    def for_active(self, subtopology: str, partition: int) -> bool:
        """Return whether the task may become an active one of the member."""
        return (
            self._owners.active_process(subtopology, partition) is None
            and not self._others_have_standby(subtopology, partition)
            and not self._others_have_warmup(subtopology, partition)
        )

    def for_standby(self, subtopology: str, partition: int) -> bool:
        """Return whether the task may become a standby task of the member."""
        runs_it = self._owners.active_process(subtopology, partition) == self._process_id
        return not (
            (runs_it and partition not in self._assigned.active.get(subtopology, ()))
            or self._owners.has_standby(self._process_id, subtopology, partition)
            or self._others_have_warmup(subtopology, partition)
        )

    def for_warmup(self, subtopology: str, partition: int) -> bool:
        """Return whether the task may become a warm-up task of the member."""
        return not (
            self._owners.active_process(subtopology, partition) == self._process_id
            or self._others_have_standby(subtopology, partition)
            or self._owners.has_warmup(self._process_id, subtopology, partition)
        )

    def _others_have_standby(self, subtopology: str, partition: int) -> bool:
        """Return whether another member of the process has the task as a standby task."""
        own = self._assigned.standby.get(subtopology, ())
        return partition not in own and self._owners.has_standby(self._process_id, subtopology, partition)

    def _others_have_warmup(self, subtopology: str, partition: int) -> bool:
        """Return whether another member of the process has the task as a warm-up task."""
        own = self._assigned.warmup.get(subtopology, ())
        return partition not in own and self._owners.has_warmup(self._process_id, subtopology, partition)


class _Step:
    """The next step of one kind of tasks."""

    __slots__ = ("kept", "new", "revoked", "waits")

    def __init__(self, current: Tasks | ActiveTasks, target: Tasks, is_free: IsFree) -> None:
        had = {subtopology: frozenset(numbers) for subtopology, numbers in current.items()}
        self.kept = common(had, target)
        """Tasks that are in the target, too."""
        self.revoked = without(had, target)
        """Tasks that are not in the target."""
        missing = without(target, had)
        free = {name: frozenset(each for each in numbers if is_free(name, each)) for name, numbers in missing.items()}
        self.new: Tasks = {subtopology: numbers for subtopology, numbers in free.items() if numbers}
        """New tasks of the target that are free."""
        self.waits = self.new != missing
        """Whether a new task of the target is not free."""

    def grant(self, tasks: Tasks) -> None:
        """Give these of the new tasks now, even if others have to be given up first."""
        self.new = without(self.new, tasks)
        self.kept = merged(self.kept, tasks)

    def become(self, other: _Step, current: Tasks) -> None:
        """Turn the current tasks of this kind that are new ones of the other kind into those."""
        changed = common(other.new, current)
        other.grant(changed)
        self.revoked = without(self.revoked, changed)


def _with_epochs(tasks: Tasks, epochs: ActiveTasks) -> ActiveTasks:
    return {
        subtopology: {number: epochs[subtopology][number] for number in numbers}
        for subtopology, numbers in tasks.items()
    }
