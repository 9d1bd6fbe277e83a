"""One streams group: its members, its topology, and the owners of its tasks.

Mirrors `StreamsGroup`; the part shared with other groups is `AssignedGroup`.
Some state is not in the log, so a new coordinator starts without it: the configured topology, the endpoint
epoch, a requested shutdown, and the task offsets of members.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.group import STREAMS
from broker_sim.group.java_text import text_order
from broker_sim.group.modern.assigned_group import AssignedGroup
from broker_sim.group.modern.kind import GroupKind
from broker_sim.group.records import GroupRecord
from broker_sim.group.streams import records
from broker_sim.group.streams.member import StreamsMember
from broker_sim.group.streams.task_offsets import NO_OFFSETS
from broker_sim.group.streams.tasks import NO_TASKS, TasksTuple, sorted_task_ids, stored_tasks
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from broker_sim.group import record_messages
    from broker_sim.group.group import CommitPartitionValidator
    from broker_sim.group.streams.task_offsets import Offsets, TaskOffsets
    from broker_sim.group.streams.tasks import AssignedTasks, Tasks
    from broker_sim.group.streams.topics.configured_topology import ConfiguredTopology
    from broker_sim.group.streams.topology import StreamsTopology

    EndpointToPartitions = messages.StreamsGroupHeartbeatResponse.EndpointToPartitions


class TaskOwners:
    """The processes of each task: the one that runs it, and those with a copy of its state."""

    __slots__ = ("_active", "_standby", "_warmup")

    def __init__(self) -> None:
        self._active: dict[tuple[str, int], str] = {}
        self._standby: set[tuple[str, int, str]] = set()
        self._warmup: set[tuple[str, int, str]] = set()

    def active_process(self, subtopology: str, partition: int) -> str | None:
        """Return the process that runs the task, or None."""
        return self._active.get((subtopology, partition))

    def has_standby(self, process_id: str, subtopology: str, partition: int) -> bool:
        """Return whether the process has the task as a standby task."""
        return (subtopology, partition, process_id) in self._standby

    def has_warmup(self, process_id: str, subtopology: str, partition: int) -> bool:
        """Return whether the process has the task as a warm-up task."""
        return (subtopology, partition, process_id) in self._warmup

    def has_copy(self, process_id: str, subtopology: str, partition: int) -> bool:
        """Return whether the process has the task as a standby or a warm-up task."""
        task = (process_id, subtopology, partition)
        return self.has_standby(*task) or self.has_warmup(*task)

    def add(self, member: StreamsMember) -> None:
        """Add the member's tasks, including those pending revocation."""
        for tasks in (member.assigned, member.pending_revocation):
            for subtopology, epochs in tasks.active.items():
                for partition in epochs:
                    self._active[subtopology, partition] = member.process_id
            self._standby |= _copies(tasks.standby, member.process_id)
            self._warmup |= _copies(tasks.warmup, member.process_id)

    def remove(self, member: StreamsMember) -> None:
        """Remove the member's tasks, except active ones that another process runs by now."""
        for tasks in (member.assigned, member.pending_revocation):
            for subtopology, epochs in tasks.active.items():
                for partition in epochs:
                    if self._active.get((subtopology, partition)) == member.process_id:
                        del self._active[subtopology, partition]
            self._standby -= _copies(tasks.standby, member.process_id)
            self._warmup -= _copies(tasks.warmup, member.process_id)


def _copies(tasks: Tasks, process_id: str) -> set[tuple[str, int, str]]:
    return {(subtopology, number, process_id) for subtopology, numbers in tasks.items() for number in numbers}


@dataclass(slots=True)
class RefinedTargets:
    """The targets towards which members reconcile in one assignment epoch; mirrors `RefinedAssignment` of Kafka 4.4.

    In 4.4.0 they equal the targets of the group, except for a defect: a heartbeat with the instance id of a static
    member takes over that member's target here, even if it is rejected. Until the next heartbeat to a stable group
    corrects this, the static member revokes its tasks, or returns without any.
    """

    epoch: int = -1
    targets: dict[str, TasksTuple] = field(default_factory=dict)

    def rename(self, member_id: str | None, new_id: str) -> None:
        """Give a member the target of the static member whose instance id it uses."""
        if member_id is not None and member_id != new_id and member_id in self.targets:
            self.targets[new_id] = self.targets.pop(member_id)


NOT_READY: Final = "NotReady"
ASSIGNOR: Final = "sticky"
"""Name of the task assignor."""


class StreamsGroup(AssignedGroup[StreamsMember, TasksTuple]):
    """The state of one group; except for what is not in the log, changed only by replaying records."""

    kind = GroupKind(STREAMS)
    member_class = StreamsMember
    no_target = NO_TASKS

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.topology: StreamsTopology | None = None
        self.validated_topology_epoch = 0
        """Epoch of the topology if all its topics exist, otherwise -1."""
        self.last_assignment_configs: Mapping[str, str] = {}
        """Assignment configurations as of the newest group epoch."""
        self.owners = TaskOwners()
        self.configured_topology: ConfiguredTopology | None = None
        """None until a heartbeat has checked the topics; see `configure`."""
        self.descriptions = records.NO_DESCRIPTION
        self.task_offsets: dict[str, TaskOffsets] = {}
        """Task offsets that each member has last reported; not in the log."""
        self.refined = RefinedTargets()
        self.cached_endpoints: dict[str, EndpointToPartitions] = {}
        """Endpoint entries by member id, repeated in responses until the member or the topics change."""
        self.endpoint_information_epoch = 0
        """Increases when the tasks of a member with an endpoint change."""
        self.shutdown_request_member_id: str | None = None
        """The member that has requested a shutdown of the application."""

    # -- look-up --------------------------------------------------------------------------------

    @property
    def topology_epoch(self) -> int:
        """Epoch of the topology, -1 if there is none."""
        return -1 if self.topology is None else self.topology.topology_epoch

    @property
    def state_name(self) -> str:
        """The group's state: Empty, NotReady, Assigning, Reconciling or Stable."""
        topology = self.topology
        if self.members and (topology is None or topology.topology_epoch != self.validated_topology_epoch):
            return NOT_READY
        return super().state_name

    def depends_on(self, topics: AbstractSet[str]) -> bool:
        """Return whether the topology uses one of these topics."""
        return self.topology is not None and not topics.isdisjoint(self.topology.required_topics())

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """Whether the group has members and the topic is a source or repartition topic."""
        if not self.members or self.topology is None:
            return False
        return topic in self.topology.source_topic_map()

    def metadata_record(
        self,
        epoch: int,
        *,
        metadata_hash: int | None = None,
        validated_epoch: int | None = None,
        configs: Mapping[str, str] | None = None,
        descriptions: records.DescriptionEpochs | None = None,
    ) -> GroupRecord:
        """Return the record of that group epoch; arguments of None keep their current values."""
        return records.group_metadata(
            self.group_id,
            epoch,
            self.metadata_hash if metadata_hash is None else metadata_hash,
            self.validated_topology_epoch if validated_epoch is None else validated_epoch,
            self.last_assignment_configs if configs is None else configs,
            self.descriptions if descriptions is None else descriptions,
        )

    # -- changes --------------------------------------------------------------------------------

    def target_of_record(self, value: record_messages.StreamsGroupTargetAssignmentMemberValue) -> TasksTuple:
        """Return the target in a record."""
        return TasksTuple(
            stored_tasks(value.active_tasks), stored_tasks(value.standby_tasks), stored_tasks(value.warmup_tasks)
        )

    def value_of_target(self, target: TasksTuple) -> record_messages.StreamsGroupTargetAssignmentMemberValue:
        """Return the record value of a target."""
        return records.target_value(target)

    def update_epoch(self, value: record_messages.StreamsGroupMetadataValue) -> None:
        """Set the group epoch and the values that belong to it from its record."""
        super().update_epoch(value)
        self.validated_topology_epoch = value.validated_topology_epoch
        self.descriptions = records.DescriptionEpochs(
            value.stored_description_topology_epoch, value.failed_description_topology_epoch
        )
        self.last_assignment_configs = {config.key: config.value for config in value.last_assignment_configs or ()}

    def member_added(self, member: StreamsMember) -> None:
        """Add the member's tasks to the owners."""
        self.owners.add(member)
        self.cached_endpoints.pop(member.member_id, None)

    def remove_member(self, member_id: str) -> None:
        """Remove the member, which must be in the group; the last one cancels a requested shutdown."""
        super().remove_member(member_id)
        self.cached_endpoints.pop(member_id, None)
        self.task_offsets.pop(member_id, None)
        if not self.members:
            self.shutdown_request_member_id = None

    def member_removed(self, member: StreamsMember) -> None:
        """Remove the member's tasks from the owners."""
        self.owners.remove(member)

    def configure(self, topology: ConfiguredTopology) -> None:
        """Set the topology as configured for the current topics."""
        self.configured_topology = topology
        self.cached_endpoints.clear()

    def request_shutdown(self, member_id: str) -> None:
        """Record the member's shutdown request, unless another member has requested it before."""
        if self.shutdown_request_member_id is None:
            self.shutdown_request_member_id = member_id

    # -- for the coordinator: see `Group` -------------------------------------------------------

    def newer_commit(self, member: StreamsMember, epoch: int) -> ApiError:
        """Return the error of an offset commit in an epoch newer than the member's."""
        return _stale(f"Received member epoch {epoch} is newer than current member epoch {member.member_epoch}.")

    def older_commit_check(self, member: StreamsMember, epoch: int) -> CommitPartitionValidator:
        """Return a check per partition: commits in an older epoch are valid if the member has had the task since then.

        Mirrors `createAssignmentEpochValidator`. Raises `ApiError` STALE_MEMBER_EPOCH if there is no topology.
        """
        if self.topology is None:
            raise _stale("Topology is not available for offset commit validation.")
        subtopologies = self.topology.source_topic_map()

        def check(topic: str, topic_id: bytes, partition: int) -> None:  # noqa: ARG001 - consumer groups need it
            subtopology = subtopologies.get(topic)
            if subtopology is None:
                raise _stale(f"Topic {topic} is not in the topology.")
            assignment_epoch = None
            for tasks in (member.assigned, member.pending_revocation):
                if assignment_epoch is None:
                    assignment_epoch = tasks.active.get(subtopology, {}).get(partition)
            if assignment_epoch is None:
                raise _stale(f"Task {subtopology}-{partition} is not assigned or pending revocation for member.")
            if epoch < assignment_epoch:
                raise _stale(
                    f"Received member epoch {epoch} is older than assignment epoch {assignment_epoch} for task "
                    f"{subtopology}-{partition}."
                )

        return check

    def fetch_in_other_epoch(self, member: StreamsMember, epoch: int) -> ApiError:
        """Return the error of an offset fetch in another epoch than the member's."""
        current = member.member_epoch
        return _stale(f"The received member epoch {epoch} does not match the expected member epoch {current}.")

    def tombstones(self) -> list[GroupRecord]:
        """Return the tombstones of the group; as in Kafka, that of its topology comes last."""
        return [*super().tombstones(), GroupRecord(self.kind.key("Topology", self.group_id), None)]


def _stale(message: str) -> ApiError:
    return ApiError(ErrorCode.STALE_MEMBER_EPOCH, message)


Response = messages.StreamsGroupDescribeResponse


def describe_group(group: StreamsGroup) -> messages.StreamsGroupDescribeResponse.DescribedGroup:
    """Return the group for StreamsGroupDescribe."""
    configured, topology = group.configured_topology, group.topology
    assert topology is not None, "a group has a topology from its first record on"
    return Response.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        topology=(configured.describe() if configured is not None and configured.is_ready else topology.describe()),
        members=[
            _describe_member(
                group.members[member_id],
                group.targets.get(member_id, NO_TASKS),
                group.task_offsets.get(member_id, NO_OFFSETS),
            )
            for member_id in group.members.in_order()
        ],
        assignor_name=ASSIGNOR,
    )


def _describe_member(
    member: StreamsMember, target: TasksTuple, offsets: TaskOffsets
) -> messages.StreamsGroupDescribeResponse.Member:
    endpoint = member.user_endpoint
    return Response.Member(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else Response.Endpoint(*endpoint),
        client_tags=[
            Response.KeyValue(key, member.client_tags[key]) for key in hash_order(member.client_tags, string_hash)
        ],
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(target),
        task_offsets=_task_offsets(offsets.offsets),
        task_end_offsets=_task_offsets(offsets.end_offsets),
    )


def _assignment(tasks: AssignedTasks | TasksTuple) -> messages.StreamsGroupDescribeResponse.Assignment:
    return Response.Assignment(
        sorted_task_ids(Response.TaskIds, tasks.active),
        sorted_task_ids(Response.TaskIds, tasks.standby),
        sorted_task_ids(Response.TaskIds, tasks.warmup),
    )


def _task_offsets(offsets: Offsets) -> list[messages.StreamsGroupDescribeResponse.TaskOffset]:
    return [
        Response.TaskOffset(subtopology, partition, offsets[subtopology][partition])
        for subtopology in sorted(offsets, key=text_order)
        for partition in sorted(offsets[subtopology])
    ]
