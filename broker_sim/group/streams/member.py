"""A member of a streams group; mirrors `StreamsGroupMember`.

Members are immutable: each change creates a new one with `dataclasses.replace`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.group.modern.assigned_group import LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH, MemberState
from broker_sim.group.streams.tasks import NO_ASSIGNED_TASKS, AssignedTasks, stored_tasks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.group import record_messages
    from broker_sim.group.streams.tasks import ActiveTasks

    TaskIds = record_messages.StreamsGroupCurrentMemberAssignmentValue.TaskIds


FIRST_STATE: Final = 1
"""Number of the state STABLE in records."""


class Endpoint(NamedTuple):
    """The address at which a process serves interactive queries of other instances."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """One member: a thread of a process of the application."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: AssignedTasks = NO_ASSIGNED_TASKS
    pending_revocation: AssignedTasks = NO_ASSIGNED_TASKS
    """Tasks that the member must revoke; no other member gets them until then."""

    @property
    def is_revoking(self) -> bool:
        """Whether the member must revoke tasks before it gets the epoch of its target."""
        return self.state is MemberState.UNREVOKED

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether the member has the target of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def left_temporarily(self) -> StreamsMember:
        """Return the static member after leaving with epoch -2: it keeps its tasks."""
        return replace(
            self,
            member_epoch=LEAVE_GROUP_STATIC_EPOCH,
            assigned=self.assigned.without_epochs(),
            pending_revocation=NO_ASSIGNED_TASKS,
        )

    def without_assignment(self) -> StreamsMember:
        """Return the member after leaving permanently."""
        return replace(
            self,
            member_epoch=LEAVE_GROUP_EPOCH,
            previous_member_epoch=LEAVE_GROUP_EPOCH,
            assigned=NO_ASSIGNED_TASKS,
            pending_revocation=NO_ASSIGNED_TASKS,
        )

    def with_metadata(self, value: record_messages.StreamsGroupMemberMetadataValue) -> StreamsMember:
        """Return the member with the metadata in a record."""
        endpoint = value.user_endpoint
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
            client_tags={tag.key: tag.value for tag in value.client_tags},
        )

    def with_assignment(self, value: record_messages.StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
        """Return the member with the tasks in a record."""
        epoch = value.member_epoch
        return replace(
            self,
            member_epoch=epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState.from_record(value.state, FIRST_STATE),
            assigned=AssignedTasks(
                _active(value.active_tasks, epoch), stored_tasks(value.standby_tasks), stored_tasks(value.warmup_tasks)
            ),
            pending_revocation=AssignedTasks(
                _active(value.active_tasks_pending_revocation, epoch),
                stored_tasks(value.standby_tasks_pending_revocation),
                stored_tasks(value.warmup_tasks_pending_revocation),
            ),
        )


def _active(stored: Iterable[TaskIds], member_epoch: int) -> ActiveTasks:
    """Return active tasks; without epochs in the record, they get the member's epoch."""
    epochs_by_subtopology = {}
    for tasks in stored:
        epochs = tasks.assignment_epochs
        if epochs is None or len(epochs) != len(tasks.partitions):
            epochs = [member_epoch] * len(tasks.partitions)
        epochs_by_subtopology[tasks.subtopology_id] = dict(zip(tasks.partitions, epochs, strict=True))
    return epochs_by_subtopology
