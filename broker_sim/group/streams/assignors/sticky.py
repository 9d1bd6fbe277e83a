"""Assigns tasks to their previous members as far as that is balanced; mirrors `StickyTaskAssignor`.

The assignment balances first the active tasks, then all tasks.

Active tasks:
A. a task stays with its previous member, unless that has reached its quota
B. otherwise it goes to a member that has its state: that had it as a standby task, or has reported offsets of it
C. the rest go, by subtopology, to the least loaded member of the least loaded process

Standby tasks, up to the configured number per stateful task, and never in a process that has the task:
D. one goes to the member that had the active task, if it has lost that
E. then to members that had it as a standby task, or have reported offsets of it, the highest first
F. the rest go as in C, while there are processes

Ties are resolved by the order of Kafka's tables and heaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.group.java_text import text_order
from broker_sim.group.modern.assignment import AssignorError
from broker_sim.group.streams.assignors.spec import TaskId
from broker_sim.group.streams.tasks import Tasks, TasksTuple
from broker_sim.hash_order.hash_codes import INT_MASK, string_hash
from broker_sim.hash_order.java_order import HashTable, hash_order, table_capacity
from broker_sim.hash_order.priority_queue import PriorityQueue

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker_sim.group.streams.assignors.spec import GroupSpec, MemberSpec, TopologyDescriber


class ProcessState:
    """One process of a Kafka Streams application during an assignment; mirrors `ProcessState`.

    It has a member for each of its threads. It should have no task twice: a standby task in the process of the
    active one is lost with it.
    """

    __slots__ = ("_by_load", "_tasks", "active", "standby", "task_counts")

    def __init__(self) -> None:
        self.task_counts: HashTable[str, int] = HashTable(string_hash)
        """Number of tasks of each member."""
        self.active: dict[str, list[TaskId]] = {}
        """Active tasks by member, in the order in which they were added."""
        self.standby: dict[str, list[TaskId]] = {}
        """Standby tasks by member, in the order in which they were added."""
        self._tasks: set[TaskId] = set()
        self._by_load: PriorityQueue[str] | None = None

    def add_member(self, member_id: str) -> None:
        """Add a member without tasks."""
        self.task_counts.put(member_id, 0)

    @property
    def load(self) -> float:
        """Average number of tasks per member."""
        return len(self._tasks) / len(self.task_counts)

    def has_task(self, task: TaskId) -> bool:
        """Return whether one of the members has the task, as active or standby."""
        return task in self._tasks

    def add_task(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Assign the task to that member; return the member's number of tasks."""
        self._by_load = None  # its order depends on the counts, one of which changes
        return self._add(member_id, task, is_active=is_active)

    def add_task_to_least_loaded_member(self, task: TaskId, *, is_active: bool) -> int:
        """Assign the task to the member with the fewest tasks; return that member's number of tasks."""
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


class _Member(NamedTuple):
    process: ProcessState
    member_id: str

    @property
    def task_count(self) -> int:
        """The member's number of tasks."""
        return self.process.task_counts[self.member_id]


class _Quota:
    """The maximum number of tasks per member; recomputed without a member and its tasks once that is full."""

    __slots__ = ("_members", "_tasks", "per_member")

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.per_member = self._share()

    def record(self, task_count: int) -> None:
        """Record a member's new number of tasks."""
        if task_count == self.per_member:
            self._members -= 1
            self._tasks -= task_count
            self.per_member = self._share()

    def _share(self) -> int:
        return -(-self._tasks // self._members) if self._members else 0


def assign(spec: GroupSpec, topology: TopologyDescriber) -> dict[str, TasksTuple]:
    """Return the new target of every member. Raises `AssignorError` if there are tasks but no members."""
    assignment = _Assignment(spec, topology)
    assignment.assign_active(_task_ids(topology, stateful_only=False))
    if spec.standby_replicas > 0:
        assignment.assign_standby(_task_ids(topology, stateful_only=True))
    return assignment.targets()


def _task_ids(topology: TopologyDescriber, *, stateful_only: bool) -> list[TaskId]:
    return [
        TaskId(subtopology_id, partition)
        for subtopology_id, tasks in topology.items()
        if tasks.is_stateful or not stateful_only
        for partition in range(tasks.number_of_tasks)
    ]


class _Assignment:
    """One assignment: the previous owners of tasks, and the new targets."""

    __slots__ = (
        "_active_quota",
        "_had_active",
        "_had_state",
        "_is_4_4",
        "_members",
        "_processes",
        "_quota",
        "_replicas",
    )

    def __init__(self, spec: GroupSpec, topology: TopologyDescriber) -> None:
        self._replicas = spec.standby_replicas
        self._is_4_4 = spec.is_4_4
        active = sum(tasks.number_of_tasks for tasks in topology.values())
        stateful = sum(tasks.number_of_tasks for tasks in topology.values() if tasks.is_stateful)
        self._active_quota = _Quota(active, len(spec.members))
        self._quota = _Quota(active + stateful * self._replicas, len(spec.members))
        self._processes: HashTable[str, ProcessState]
        self._processes = HashTable(string_hash, table_capacity(len(spec.members)))
        self._members: list[_Member] = []
        self._had_active: dict[TaskId, _Member] = {}
        candidates: dict[TaskId, list[_Candidate]] = {}
        for member_id, member_spec in spec.members.items():
            process = self._processes.get(member_spec.process_id)
            if process is None:
                process = ProcessState()
                # Kafka 4.4 uses `computeIfAbsent`, which results in another order of processes.
                (self._processes.add if self._is_4_4 else self._processes.put)(member_spec.process_id, process)
            process.add_member(member_id)
            member = _Member(process, member_id)
            self._members.append(member)
            for task in _tasks_of(member_spec.tasks.active):
                self._had_active[task] = member
            for task, was_standby, offset in _copies(member_spec):
                candidates.setdefault(task, []).append(_Candidate(member, was_standby, offset))
        self._had_state = {task: _ranked(each) for task, each in candidates.items()}

    # -- active tasks -----------------------------------------------------------------------------

    def assign_active(self, tasks: Iterable[TaskId]) -> None:
        """Run steps A, B and C."""
        by_partition = sorted(tasks, key=_by_partition)
        after_a = [task for task in by_partition if not self._keeps(self._had_active.get(task), task)]
        rest = []
        for task in after_a:
            previous = self._least_loaded(self._had_state.get(task, ()), None)
            if not self._keeps(previous, task):
                rest.append(task)
        queue = self._process_queue()
        for task in sorted(rest, key=_by_subtopology):
            process = queue.poll()
            if process is None:
                raise AssignorError(f"No process available to assign active task {task}.")
            self._record_active(process.add_task_to_least_loaded_member(task, is_active=True))
            queue.add(process)

    def _keeps(self, member: _Member | None, task: TaskId) -> bool:
        """Assign the task to the member if it is not None and below its quota; return whether it was assigned."""
        if member is None or member.task_count >= self._active_quota.per_member:
            return False
        self._record_active(member.process.add_task(member.member_id, task, is_active=True))
        return True

    def _record_active(self, task_count: int) -> None:
        self._active_quota.record(task_count)
        self._quota.record(task_count)

    # -- standby tasks ----------------------------------------------------------------------------

    def assign_standby(self, tasks: Iterable[TaskId]) -> None:
        """Run steps D, E and F."""
        missing = []
        for task in sorted(tasks, key=_by_partition, reverse=True):
            replicas = self._replicas
            while replicas and self._keeps_standby(task):
                replicas -= 1
            missing.append((task, replicas))
        missing.sort(key=lambda entry: _by_subtopology(entry[0]), reverse=True)
        queue = self._process_queue()
        for task, replicas in missing:
            for _ in range(replicas):
                if not self._assign_to_least_loaded(queue, task):
                    break

    def _keeps_standby(self, task: TaskId) -> bool:
        """Run steps D and E for one standby task; return whether it was assigned."""
        active = self._had_active.get(task)
        if active is not None and not active.process.has_task(task) and self._add_standby(active, task):
            return True
        previous = self._least_loaded(self._had_state.get(task, ()), task)
        return previous is not None and self._add_standby(previous, task)

    def _add_standby(self, member: _Member, task: TaskId) -> bool:
        if member.task_count >= self._quota.per_member:
            return False
        self._quota.record(member.process.add_task(member.member_id, task, is_active=False))
        return True

    def _assign_to_least_loaded(self, queue: PriorityQueue[ProcessState], task: TaskId) -> bool:
        """Run step F for one standby task; return whether there was a process without the task.

        The processes with the task return to the queue from the last one to the first.
        """
        polled = []
        process = queue.poll()
        while process is not None and process.has_task(task):
            polled.append(process)
            process = queue.poll()
        if process is not None:
            self._quota.record(process.add_task_to_least_loaded_member(task, is_active=False))
            queue.add(process)
        for polled_process in reversed(polled):
            queue.add(polled_process)
        return process is not None

    # -- both ---------------------------------------------------------------------------------------

    def _least_loaded(self, members: Sequence[_Member], task: TaskId | None) -> _Member | None:
        """Return the member that gets its previous task, None if there is none.

        A later member is preferred only if both its process and itself are less loaded. Members whose process has
        `task` are skipped (None disables this); before Kafka 4.4, the result is None if the first is one of them.
        """
        candidate: _Member | None = None
        for member in members:
            if task is not None and member.process.has_task(task):
                if candidate is None and not self._is_4_4:
                    return None
                continue
            if candidate is None or (
                member.process.load < candidate.process.load and member.task_count < candidate.task_count
            ):
                candidate = member
        return candidate

    def _process_queue(self) -> PriorityQueue[ProcessState]:
        queue: PriorityQueue[ProcessState] = PriorityQueue(lambda process: process.load)
        for process in self._processes.values_in_order():
            queue.add(process)
        return queue

    def targets(self) -> dict[str, TasksTuple]:
        """Return the new tasks of each member."""
        return {
            member_id: TasksTuple(
                active=_in_table_order(process.active.get(member_id, ())),
                standby=_in_table_order(process.standby.get(member_id, ())),
            )
            for process, member_id in self._members
        }


class _Candidate(NamedTuple):
    member: _Member
    was_standby: bool
    offset: int


def _ranked(candidates: Iterable[_Candidate]) -> list[_Member]:
    """Return the members with state of a task: former standby tasks first, then by offset (descending)."""
    ranked = sorted(candidates, key=lambda candidate: (not candidate.was_standby, -candidate.offset))
    return [candidate.member for candidate in ranked]


def _copies(member: MemberSpec) -> Iterable[tuple[TaskId, bool, int]]:
    """Yield the tasks of which a member has state, whether as standby task, and their offsets."""
    for task in _tasks_of(member.tasks.standby):
        yield task, True, member.offsets.get(task.subtopology_id, {}).get(task.partition, 0)
    for subtopology_id, offsets in member.offsets.items():
        for partition, offset in offsets.items():
            if partition not in member.tasks.standby.get(subtopology_id, ()):
                yield TaskId(subtopology_id, partition), False, offset


def _tasks_of(tasks: Tasks) -> Iterable[TaskId]:
    for subtopology_id, partitions in tasks.items():
        for partition in partitions:
            yield TaskId(subtopology_id, partition)


def _by_partition(task: TaskId) -> tuple[int, bytes]:
    return task.partition, text_order(task.subtopology_id)


def _by_subtopology(task: TaskId) -> tuple[bytes, int]:
    return text_order(task.subtopology_id), task.partition


def _task_hash(task: TaskId) -> int:
    """Return the hash code of the record `TaskId`."""
    return (31 * string_hash(task.subtopology_id) + task.partition) & INT_MASK


def _in_table_order(tasks: Sequence[TaskId]) -> Tasks:
    """Return the tasks by subtopology, in the order of the table that Kafka builds from a set of tasks."""
    partitions: dict[str, set[int]] = {}
    for subtopology_id, partition in hash_order(tasks, _task_hash):
        partitions.setdefault(subtopology_id, set()).add(partition)
    grouped = hash_order(partitions, string_hash)
    ordered = hash_order(grouped, string_hash, table_capacity(int(len(grouped) / 0.75 + 1)))
    return {subtopology_id: frozenset(partitions[subtopology_id]) for subtopology_id in ordered}
