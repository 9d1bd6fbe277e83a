"""The input of the task assignor; mirrors `GroupSpecImpl`, `AssignmentMemberSpec`, `TopologyDescriber`.

Deliberate difference: fields that no assignor of Kafka uses are left out, such as racks and client tags.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from broker_sim.group.streams.task_offsets import Offsets
    from broker_sim.group.streams.tasks import TasksTuple

NUM_STANDBY_REPLICAS: Final = "num.standby.replicas"
RACK_TAGS: Final = "rack.aware.assignment.tags"
"""Name of an assignment configuration that no assignor uses; members without a tag get a status."""


class TaskId(NamedTuple):
    """A task: a subtopology and a partition."""

    subtopology_id: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology_id}_{self.partition}"


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member: its process, which may have several members, and its tasks.

    The tasks are those of its previous target, or from Kafka 4.4 on its assigned ones.
    """

    process_id: str
    tasks: TasksTuple
    offsets: Offsets = field(default_factory=dict)
    """Task offsets that the member has reported."""


class GroupSpec(NamedTuple):
    """A group: its members in the order of Kafka's table, and the assignment configurations."""

    members: Mapping[str, MemberSpec]
    configs: Mapping[str, str]
    is_4_4: bool = False
    """Whether to assign as Kafka 4.4 and newer."""

    @property
    def standby_replicas(self) -> int:
        """Number of standby tasks per stateful task."""
        return int(self.configs[NUM_STANDBY_REPLICAS]) if self.configs else 0


class SubtopologyTasks(NamedTuple):
    """The tasks of one subtopology."""

    number_of_tasks: int
    """Number of tasks; their partitions count from 0."""
    is_stateful: bool
    """Whether the subtopology has changelog topics, so that its tasks may have standby tasks."""


TopologyDescriber: TypeAlias = Mapping[str, SubtopologyTasks]
"""All subtopologies by id, sorted by id."""
