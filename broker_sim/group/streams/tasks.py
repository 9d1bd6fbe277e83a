"""The tasks of a member; mirrors `TasksTuple`.

A task is a subtopology and a partition: it reads that partition of all source topics of the subtopology.
An active task processes records, a standby task keeps a copy of the state of an active one, and a warm-up
task prepares such a copy, to become active.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.group import record_messages

    StoredTasks = (
        record_messages.StreamsGroupCurrentMemberAssignmentValue.TaskIds
        | record_messages.StreamsGroupTargetAssignmentMemberValue.TaskIds
    )

Tasks: TypeAlias = Mapping[str, frozenset[int]]
"""Partitions by subtopology; no subtopology is without partitions."""


@dataclass(frozen=True, slots=True)
class TasksTuple:
    """The tasks of one member by their kind. Also mirrors `MemberAssignment`, what an assignor returns.

    Two are equal if they have the same tasks, in whatever order.
    """

    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)


NO_TASKS: Final = TasksTuple()


def stored_tasks(stored: Iterable[StoredTasks]) -> Tasks:
    """Return the tasks of one kind as a record has them."""
    return {tasks.subtopology_id: frozenset(tasks.partitions) for tasks in stored}
