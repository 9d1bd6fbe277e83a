"""A member's next step towards its target; mirrors `streams.CurrentAssignmentBuilder`.

A member goes from what it has to its target in steps:
A. it is to give up what is not in the target, and stays in its epoch until it says that it has
B. then it moves to the epoch of the target, and gets what nobody else has
C. what others still have it gets later, as soon as it is free

A task is free for an active one if no process runs it, and the member's own process has no copy of it. It is
free for a copy if the member's own process has nothing of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.modern.assigned_group import MemberState
from broker_sim.group.streams.tasks import NO_ASSIGNED_TASKS, NO_TASKS, AssignedTasks, TasksTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

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
        assigned, target = member.assigned, self.target
        active = _Step(assigned.active, target.active, self._is_free_for_active(member))
        is_free = self._is_free_for_copy(member)
        standby = _Step(assigned.standby, target.standby, is_free)
        warmup = _Step(assigned.warmup, target.warmup, is_free)
        kept = AssignedTasks(_with_epochs(active.kept, assigned.active), standby.kept, warmup.kept)
        revoked = AssignedTasks(_with_epochs(active.revoked, assigned.active), standby.revoked, warmup.revoked)
        if not revoked.is_empty and (self.owned is None or revoked.are_owned(self.owned)):
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


class _Step:
    """The next step of one kind of tasks."""

    __slots__ = ("kept", "new", "revoked", "waits")

    def __init__(self, current: Tasks | ActiveTasks, target: Tasks, is_free: IsFree) -> None:
        self.kept: dict[str, frozenset[int]] = {}
        """Tasks that are in the target, too."""
        self.revoked: dict[str, frozenset[int]] = {}
        """Tasks that are not in the target."""
        self.new: dict[str, frozenset[int]] = {}
        """New tasks of the target that are free."""
        self.waits = False
        """Whether a new task of the target is not free."""
        for subtopology in target.keys() | current.keys():
            self._add(subtopology, current.get(subtopology, ()), target.get(subtopology, ()), is_free)

    def _add(self, subtopology: str, current: Collection[int], target: Collection[int], is_free: IsFree) -> None:
        retained = frozenset(current) & frozenset(target)
        missing = frozenset(target) - retained
        new = frozenset(number for number in missing if is_free(subtopology, number))
        self.waits = self.waits or new != missing
        for tasks, numbers in ((self.kept, retained), (self.revoked, frozenset(current) - retained), (self.new, new)):
            if numbers:
                tasks[subtopology] = numbers


def _with_epochs(tasks: Tasks, epochs: ActiveTasks) -> ActiveTasks:
    return {
        subtopology: {number: epochs[subtopology][number] for number in numbers}
        for subtopology, numbers in tasks.items()
    }
