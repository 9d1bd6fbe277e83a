"""One streams group: its members, its topology, and who has which tasks.

Mirrors `StreamsGroup`; what it shares with other groups that are assigned something is in `AssignedGroup`.
Some of it is not in the log, so another coordinator begins it anew: the topology as the topics there are make
it, the epoch of the endpoints, who has asked the application to end, and how far members have come with tasks.
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
from broker_sim.group.streams.tasks import NO_TASKS, TasksTuple, stored_tasks
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from collections.abc import Set as AbstractSet

    from broker_sim.group import record_messages
    from broker_sim.group.group import CommitPartitionValidator
    from broker_sim.group.streams.task_offsets import Offsets, TaskOffsets
    from broker_sim.group.streams.tasks import AssignedTasks
    from broker_sim.group.streams.topics import ConfiguredTopology
    from broker_sim.group.streams.topology import StreamsTopology

    EndpointToPartitions = messages.StreamsGroupHeartbeatResponse.EndpointToPartitions


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


@dataclass(slots=True)
class RefinedTargets:
    """The targets that members move towards, kept for one assignment epoch; mirrors `RefinedAssignment` of Kafka 4.4.

    In 4.4.0 they are the targets of the group, but for a defect: whoever sends a heartbeat with the instance id of a
    static member takes that member's target here, even if the heartbeat is refused. Until the next heartbeat to a
    stable group mends that, the member gives its tasks up, or comes back to none.
    """

    epoch: int = -1
    targets: dict[str, TasksTuple] = field(default_factory=dict)

    def rename(self, member_id: str | None, new_id: str) -> None:
        """Let a member have the target of the static one whose instance id it uses."""
        if member_id is not None and member_id != new_id and member_id in self.targets:
            self.targets[new_id] = self.targets.pop(member_id)


NOT_READY: Final = "NotReady"
ASSIGNOR: Final = "sticky"
"""The name of the assignor of tasks."""


class StreamsGroup(AssignedGroup[StreamsMember, TasksTuple]):
    """The state of one group; its methods change it as records say, or look at it."""

    kind = GroupKind(STREAMS)
    member_class = StreamsMember
    no_target = NO_TASKS

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.topology: StreamsTopology | None = None
        self.validated_topology_epoch = 0
        """The epoch of the topology whose topics were all there; -1 if they were not."""
        self.last_assignment_configs: Mapping[str, str] = {}
        """The assignment configurations that the newest group epoch was made for."""
        self.owners = TaskOwners()
        self.configured_topology: ConfiguredTopology | None = None
        """None until a heartbeat has looked at the topics; see `configure`."""
        self.descriptions = records.NO_DESCRIPTION
        self.task_offsets: dict[str, TaskOffsets] = {}
        """The last report of each member on how far its copies of tasks are; not in the log."""
        self.refined = RefinedTargets()
        self.told_endpoints: dict[str, EndpointToPartitions] = {}
        """The last answer about each member's endpoint: repeated until the member or the topics change."""
        self.endpoint_information_epoch = 0
        """Grows when a member that can be asked for its state gets other tasks."""
        self.shutdown_request_member_id: str | None = None
        """The member that wants all members to end."""

    # -- look-up --------------------------------------------------------------------------------

    @property
    def topology_epoch(self) -> int:
        """The epoch of its topology, -1 without one."""
        return -1 if self.topology is None else self.topology.topology_epoch

    @property
    def state_name(self) -> str:
        """Its state: Empty, NotReady, Assigning, Reconciling or Stable."""
        topology = self.topology
        if self.members and (topology is None or topology.topology_epoch != self.validated_topology_epoch):
            return NOT_READY
        return super().state_name

    def depends_on(self, topics: AbstractSet[str]) -> bool:
        """Return whether the topology has one of these topics."""
        return self.topology is not None and not topics.isdisjoint(self.topology.required_topics())

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """Whether members read the topic: it is a source or a repartition topic."""
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
        """Return the record of that group epoch; what is not given is as it is now."""
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
        """Return the target that a record holds."""
        return TasksTuple(
            stored_tasks(value.active_tasks), stored_tasks(value.standby_tasks), stored_tasks(value.warmup_tasks)
        )

    def value_of_target(self, target: TasksTuple) -> record_messages.StreamsGroupTargetAssignmentMemberValue:
        """Return the value of the record of a target."""
        return records.target_value(target)

    def update_epoch(self, value: record_messages.StreamsGroupMetadataValue) -> None:
        """Take the group epoch, and what it was made for, from its record."""
        super().update_epoch(value)
        self.validated_topology_epoch = value.validated_topology_epoch
        self.descriptions = records.DescriptionEpochs(
            value.stored_description_topology_epoch, value.failed_description_topology_epoch
        )
        self.last_assignment_configs = {config.key: config.value for config in value.last_assignment_configs or ()}

    def member_added(self, member: StreamsMember) -> None:
        """Note the tasks that the member has."""
        self.owners.add(member)
        self.told_endpoints.pop(member.member_id, None)

    def remove_member(self, member_id: str) -> None:
        """Remove the member, which must be there. With the last one a requested shutdown is forgotten."""
        super().remove_member(member_id)
        self.told_endpoints.pop(member_id, None)
        self.task_offsets.pop(member_id, None)
        if not self.members:
            self.shutdown_request_member_id = None

    def member_removed(self, member: StreamsMember) -> None:
        """Note that the member has no tasks any more."""
        self.owners.remove(member)

    def configure(self, topology: ConfiguredTopology) -> None:
        """Take the topology as the topics make it now."""
        self.configured_topology = topology
        self.told_endpoints.clear()

    def request_shutdown(self, member_id: str) -> None:
        """Note that the member wants all members to end, unless another one has said so before."""
        if self.shutdown_request_member_id is None:
            self.shutdown_request_member_id = member_id

    # -- for the coordinator: see `Group` -------------------------------------------------------

    def newer_commit(self, member: StreamsMember, epoch: int) -> ApiError:
        """Return the error of a commit in an epoch that the member has not reached."""
        return _stale(f"Received member epoch {epoch} is newer than current member epoch {member.member_epoch}.")

    def older_commit_check(self, member: StreamsMember, epoch: int) -> CommitPartitionValidator:
        """Return a check of a partition: a member that has had its task since may commit in that older epoch.

        Mirrors `createAssignmentEpochValidator`. Raises `ApiError` STALE_MEMBER_EPOCH without a topology.
        """
        if self.topology is None:
            raise _stale("Topology is not available for offset commit validation.")
        subtopologies = self.topology.source_topic_map()

        def check(topic: str, topic_id: bytes, partition: int) -> None:  # noqa: ARG001 - consumer groups need it
            subtopology = subtopologies.get(topic)
            if subtopology is None:
                raise _stale(f"Topic {topic} is not in the topology.")
            since = None
            for tasks in (member.assigned, member.pending_revocation):
                if since is None:
                    since = tasks.active.get(subtopology, {}).get(partition)
            if since is None:
                raise _stale(f"Task {subtopology}-{partition} is not assigned or pending revocation for member.")
            if epoch < since:
                raise _stale(
                    f"Received member epoch {epoch} is older than assignment epoch {since} for task "
                    f"{subtopology}-{partition}."
                )

        return check

    def fetch_in_other_epoch(self, member: StreamsMember, epoch: int) -> ApiError:
        """Return the error of an offset fetch in another epoch than the member's."""
        current = member.member_epoch
        return _stale(f"The received member epoch {epoch} does not match the expected member epoch {current}.")

    def tombstones(self) -> list[GroupRecord]:
        """Return the records that delete the group; as in Kafka its topology goes last."""
        return [*super().tombstones(), GroupRecord(self.kind.key("Topology", self.group_id), None)]


def _stale(message: str) -> ApiError:
    return ApiError(ErrorCode.STALE_MEMBER_EPOCH, message)


Response = messages.StreamsGroupDescribeResponse


def describe_group(group: StreamsGroup) -> messages.StreamsGroupDescribeResponse.DescribedGroup:
    """Return what StreamsGroupDescribe tells of a group."""
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
    return Response.Assignment(_task_ids(tasks.active), _task_ids(tasks.standby), _task_ids(tasks.warmup))


def _task_offsets(offsets: Offsets) -> list[messages.StreamsGroupDescribeResponse.TaskOffset]:
    return [
        Response.TaskOffset(subtopology, partition, offsets[subtopology][partition])
        for subtopology in sorted(offsets, key=text_order)
        for partition in sorted(offsets[subtopology])
    ]


def _task_ids(tasks: Mapping[str, Collection[int]]) -> list[messages.StreamsGroupDescribeResponse.TaskIds]:
    return [Response.TaskIds(subtopology, sorted(tasks[subtopology])) for subtopology in sorted(tasks, key=text_order)]
