"""One process of a Kafka Streams application while tasks are assigned; mirrors `ProcessState`.

A process has a member for each of its threads. It is to have no task twice: standby tasks of a task that
it runs itself are no help when it dies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.modern.assignment import AssignorError
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import HashTable
from broker_sim.hash_order.priority_queue import PriorityQueue

if TYPE_CHECKING:
    from broker_sim.group.streams.assignors.spec import TaskId


class ProcessState:
    """The members of a process and their tasks."""

    __slots__ = ("_by_load", "_tasks", "active", "standby", "task_counts")

    def __init__(self) -> None:
        self.task_counts: HashTable[str, int] = HashTable(string_hash)
        """How many tasks each member has."""
        self.active: dict[str, list[TaskId]] = {}
        """Active tasks by member, as they were added."""
        self.standby: dict[str, list[TaskId]] = {}
        """Standby tasks by member, as they were added."""
        self._tasks: set[TaskId] = set()
        self._by_load: PriorityQueue[str] | None = None

    def add_member(self, member_id: str) -> None:
        """Add a member without tasks."""
        self.task_counts.put(member_id, 0)

    @property
    def load(self) -> float:
        """How many tasks a member has on average."""
        return len(self._tasks) / len(self.task_counts)

    def has_task(self, task: TaskId) -> bool:
        """Return whether one of the members has the task, of either kind."""
        return task in self._tasks

    def add_task(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Give that member the task; returns how many tasks it has now."""
        self._by_load = None  # it is ordered by counts, one of which changes here
        return self._add(member_id, task, is_active=is_active)

    def add_task_to_least_loaded_member(self, task: TaskId, *, is_active: bool) -> int:
        """Give the member with fewest tasks the task; returns how many tasks it has now."""
        if self._by_load is None:
            self._by_load = PriorityQueue(self.task_counts.__getitem__)
            for member_id in self.task_counts.in_order():
                self._by_load.add(member_id)
        least = self._by_load.poll()
        if least is None:
            raise AssignorError(f"No members available to assign task {task}")
        count = self._add(least, task, is_active=is_active)
        self._by_load.add(least)
        return count

    def _add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        self._tasks.add(task)
        kind = self.active if is_active else self.standby
        kind.setdefault(member_id, []).append(task)
        count = self.task_counts[member_id] + 1
        self.task_counts.put(member_id, count)
        return count
