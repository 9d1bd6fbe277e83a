"""The view that an assignor has of a group; mirrors `GroupSpecImpl`, `AssignmentMemberSpec`, `TopologyDescriber`.

Deliberate difference: what no assignor of Kafka looks at is left out, such as racks and client tags.
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
"""The name of an assignment configuration that no assignor of Kafka looks at; members without a tag are told so."""


class TaskId(NamedTuple):
    """One task."""

    subtopology_id: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology_id}_{self.partition}"


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member: its process, which may have several members, and its tasks.

    They are those of its last target, from Kafka 4.4 on those that it has.
    """

    process_id: str
    tasks: TasksTuple
    offsets: Offsets = field(default_factory=dict)
    """The offsets of tasks that the member has reported."""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group: its members in the order of Kafka's table, and the assignment configurations."""

    members: Mapping[str, MemberSpec]
    configs: Mapping[str, str]
    is_4_4: bool = False
    """Whether tasks are assigned as by Kafka 4.4 and newer."""

    @property
    def standby_replicas(self) -> int:
        """Number of standby tasks that each stateful task should have."""
        return int(self.configs[NUM_STANDBY_REPLICAS]) if self.configs else 0


class SubtopologyTasks(NamedTuple):
    """The tasks of one subtopology."""

    number_of_tasks: int
    """Number of tasks, for the partitions from 0 on."""
    is_stateful: bool
    """Whether it has changelog topics: its tasks may have standby tasks."""


TopologyDescriber: TypeAlias = Mapping[str, SubtopologyTasks]
"""All subtopologies by their ids, in the order of the ids."""
