"""Which processes have which tasks of a group; mirrors the maps of `StreamsGroup` from tasks to process ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.group.streams.assigned_tasks import AssignedTasks
    from broker_sim.group.streams.member import StreamsMember


class TaskOwners:
    """The processes by task: one that runs it, and those that have a copy of its state."""

    __slots__ = ("_active", "_standby", "_warmup")

    def __init__(self) -> None:
        self._active: dict[tuple[str, int], str] = {}
        self._standby: set[tuple[str, int, str]] = set()
        self._warmup: set[tuple[str, int, str]] = set()

    def active_process(self, subtopology: str, partition: int) -> str | None:
        """Return the process that runs the task, None without one."""
        return self._active.get((subtopology, partition))

    def has_copy(self, process_id: str, subtopology: str, partition: int) -> bool:
        """Return whether the process has the task as a standby or a warm-up task."""
        task = (subtopology, partition, process_id)
        return task in self._standby or task in self._warmup

    def add(self, member: StreamsMember) -> None:
        """Note what the member has, also what it has to give up."""
        for tasks in (member.assigned, member.pending_revocation):
            for subtopology, epochs in tasks.active.items():
                for partition in epochs:
                    self._active[subtopology, partition] = member.process_id
            self._standby |= _standby_of(tasks, member.process_id)
            self._warmup |= _warmup_of(tasks, member.process_id)

    def remove(self, member: StreamsMember) -> None:
        """Note that the member has nothing any more, unless another process has got it meanwhile."""
        for tasks in (member.assigned, member.pending_revocation):
            for subtopology, epochs in tasks.active.items():
                for partition in epochs:
                    if self._active.get((subtopology, partition)) == member.process_id:
                        del self._active[subtopology, partition]
            self._standby -= _standby_of(tasks, member.process_id)
            self._warmup -= _warmup_of(tasks, member.process_id)


def _standby_of(tasks: AssignedTasks, process_id: str) -> set[tuple[str, int, str]]:
    return {
        (subtopology, partition, process_id)
        for subtopology, partitions in tasks.standby.items()
        for partition in partitions
    }


def _warmup_of(tasks: AssignedTasks, process_id: str) -> set[tuple[str, int, str]]:
    return {
        (subtopology, partition, process_id)
        for subtopology, partitions in tasks.warmup.items()
        for partition in partitions
    }
