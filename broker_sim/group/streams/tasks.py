"""The tasks of a member; mirrors `TasksTuple` and `TasksTupleWithEpochs`.

A task is a subtopology and a partition: it reads that partition of all source topics of the subtopology.
An active task processes records, a standby task keeps a copy of its state, and a warm-up task builds such a copy
in order to become active.

Each assigned active task has the member epoch in which it was assigned: the member may commit its offsets in that
epoch and all later ones (KIP-1251).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from broker_sim.group.java_text import text_order

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from broker_sim.group import record_messages

    StoredTasks = (
        record_messages.StreamsGroupCurrentMemberAssignmentValue.TaskIds
        | record_messages.StreamsGroupTargetAssignmentMemberValue.TaskIds
    )


Tasks: TypeAlias = Mapping[str, frozenset[int]]
"""Partitions by subtopology; no subtopology has an empty set."""


@dataclass(frozen=True, slots=True)
class TasksTuple:
    """The tasks of one member by kind. Also mirrors `MemberAssignment`, the result of an assignor.

    Equality ignores order.
    """

    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)


NO_TASKS: Final = TasksTuple()
TaskIds = TypeVar("TaskIds")


def sorted_task_ids(
    task_ids: Callable[[str, list[int]], TaskIds], tasks: Mapping[str, Collection[int]]
) -> list[TaskIds]:
    """Return `task_ids(subtopology, partitions)` of each subtopology, sorted by id, with sorted partitions."""
    return [task_ids(subtopology, sorted(tasks[subtopology])) for subtopology in sorted(tasks, key=text_order)]


def stored_tasks(stored: Iterable[StoredTasks]) -> Tasks:
    """Return the tasks of one kind in a record."""
    return {tasks.subtopology_id: frozenset(tasks.partitions) for tasks in stored}


ActiveTasks: TypeAlias = Mapping[str, Mapping[int, int]]
"""Member epochs in which tasks were assigned, by subtopology and partition."""


@dataclass(frozen=True, slots=True)
class AssignedTasks:
    """The assigned tasks of one member by kind. Equality ignores order."""

    active: ActiveTasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether there are no tasks."""
        return not (self.active or self.standby or self.warmup)

    def are_owned(self, owned: TasksTuple) -> bool:
        """Return whether `owned` has any of these tasks; mirrors `containsAny`."""
        return (
            _overlap(owned.active, self.active)
            or _overlap(owned.standby, self.standby)
            or _overlap(owned.warmup, self.warmup)
        )

    def merged(self, other: AssignedTasks) -> AssignedTasks:
        """Return the union of these and the other tasks."""
        active = {subtopology: dict(epochs) for subtopology, epochs in self.active.items()}
        for subtopology, epochs in other.active.items():
            active.setdefault(subtopology, {}).update(epochs)
        return AssignedTasks(active, merged(self.standby, other.standby), merged(self.warmup, other.warmup))

    def tasks(self) -> TasksTuple:
        """Return the tasks without the epochs."""
        active = {subtopology: frozenset(epochs) for subtopology, epochs in self.active.items()}
        return TasksTuple(active, self.standby, self.warmup)

    def without_epochs(self) -> AssignedTasks:
        """Return the same tasks, with epoch 0 for active ones, so that commits in any epoch are valid."""
        active = {subtopology: dict.fromkeys(epochs, 0) for subtopology, epochs in self.active.items()}
        return AssignedTasks(active, self.standby, self.warmup)


NO_ASSIGNED_TASKS: Final = AssignedTasks()


def _overlap(owned: Tasks, assigned: Tasks | ActiveTasks) -> bool:
    return any(not partitions.isdisjoint(assigned.get(subtopology, ())) for subtopology, partitions in owned.items())


def merged(left: Tasks, right: Tasks) -> Tasks:
    """Return the union of both."""
    tasks = dict(left)
    for subtopology, partitions in right.items():
        tasks[subtopology] = tasks.get(subtopology, frozenset()) | partitions
    return tasks


def common(left: Tasks | ActiveTasks, right: Tasks | ActiveTasks) -> Tasks:
    """Return the intersection of both."""
    tasks = {name: frozenset(numbers) & frozenset(right.get(name, ())) for name, numbers in left.items()}
    return {name: numbers for name, numbers in tasks.items() if numbers}


def without(left: Tasks, right: Tasks) -> Tasks:
    """Return the tasks of `left` that are not in `right`."""
    tasks = {name: numbers - right.get(name, frozenset()) for name, numbers in left.items()}
    return {name: numbers for name, numbers in tasks.items() if numbers}
