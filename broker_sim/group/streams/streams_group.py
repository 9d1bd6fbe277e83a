"""One streams group: its members, its topology, and who has which tasks.

Mirrors `StreamsGroup`; what it shares with other groups that are assigned something is in `AssignedGroup`.
Some of it is not in the log, so another coordinator begins it anew: the topology as the topics there are make
it, the epoch of the endpoints, and who has asked the application to end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ERROR_TEXTS, ApiError, ErrorCode
from broker_sim.group.group import STREAMS, OffsetExpiration
from broker_sim.group.modern.assigned_group import AssignedGroup
from broker_sim.group.streams import records
from broker_sim.group.streams.commit_checks import older_epoch_check
from broker_sim.group.streams.member import StreamsMember
from broker_sim.group.streams.task_owners import TaskOwners
from broker_sim.group.streams.tasks import TasksTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from broker_sim.group.group import CommitPartitionValidator
    from broker_sim.group.offset_commit import OffsetCommit
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.streams.topics import ConfiguredTopology
    from broker_sim.group.streams.topology import StreamsTopology
    from broker_sim.protocol import messages

    EndpointToPartitions = messages.StreamsGroupHeartbeatResponse.EndpointToPartitions

PROTOCOL_TYPE: Final = "streams"
EMPTY: Final = "Empty"
NOT_READY: Final = "NotReady"
ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"
STABLE: Final = "Stable"
UNKNOWN_EPOCH: Final = -1
MEMBER_EPOCH_VERSION: Final = 9
"""The version of OffsetCommit from which on members may use it."""


class StreamsGroup(AssignedGroup[StreamsMember, TasksTuple]):
    """The state of one group; its methods change it as records say, or look at it."""

    group_type = STREAMS
    protocol_type = PROTOCOL_TYPE
    should_expire = True

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
        self.told_endpoints: dict[str, EndpointToPartitions] = {}
        """What was told last of each member's endpoint: told again until the member or the topics change."""
        self.endpoint_information_epoch = 0
        """Grows when a member that can be asked for its state gets other tasks."""
        self.shutdown_request_member_id: str | None = None
        """The member that wants all members to end."""

    # -- look-up --------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        """Its state: Empty, NotReady, Assigning, Reconciling or Stable."""
        if not self.members:
            return EMPTY
        topology = self.topology
        if topology is None or topology.topology_epoch != self.validated_topology_epoch:
            return NOT_READY
        if self.group_epoch > self.assignment_epoch:
            return ASSIGNING
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return STABLE
        return RECONCILING

    def depends_on(self, topics: AbstractSet[str]) -> bool:
        """Return whether the topology has one of these topics."""
        return self.topology is not None and not topics.isdisjoint(self.topology.required_topics())

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """Whether members read the topic: it is a source or a repartition topic."""
        if not self.members or self.topology is None:
            return False
        return topic in self.topology.source_topic_map()

    # -- changes --------------------------------------------------------------------------------

    def update_member(self, member: StreamsMember) -> None:
        """Add the member or replace its state."""
        old = self.members.get(member.member_id)
        self.members.put(member.member_id, member)
        if old is not None:
            self.owners.remove(old)
        self.owners.add(member)
        self.told_endpoints.pop(member.member_id, None)

    def remove_member(self, member_id: str) -> None:
        """Remove the member. With the last one the wish to end is forgotten."""
        old = self.members.pop(member_id, None)
        if old is not None:
            self.owners.remove(old)
        self.told_endpoints.pop(member_id, None)
        if not self.members:
            self.shutdown_request_member_id = None

    def configure(self, topology: ConfiguredTopology) -> None:
        """Take the topology as the topics make it now."""
        self.configured_topology = topology
        self.told_endpoints.clear()

    def request_shutdown(self, member_id: str) -> None:
        """Note that the member wants all members to end, unless another one has said so before."""
        if self.shutdown_request_member_id is None:
            self.shutdown_request_member_id = member_id

    # -- for the coordinator: see `Group` -------------------------------------------------------

    def validate_offset_commit(self, commit: OffsetCommit, is_transactional: bool) -> CommitPartitionValidator | None:
        """Check the member; one in an older epoch may commit for tasks that it has had since then."""
        epoch = commit.generation_id_or_member_epoch
        # A commit from outside of the group, such as that of a tool.
        if epoch < 0 and not self.members:
            return None
        # A transaction that does not name the member.
        names_member = commit.member_id or commit.group_instance_id is not None
        if is_transactional and epoch == UNKNOWN_EPOCH and not names_member:
            return None
        member = self.member(commit.member_id)
        if not is_transactional and commit.api_version < MEMBER_EPOCH_VERSION:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"OffsetCommit version {MEMBER_EPOCH_VERSION} or above must be used by members using "
                "the streams group protocol",
            )
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise ApiError(
                ErrorCode.STALE_MEMBER_EPOCH,
                f"Received member epoch {epoch} is newer than current member epoch {member.member_epoch}.",
            )
        return older_epoch_check(self.topology, member, epoch)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Check the member's epoch; who names neither member nor epoch may fetch."""
        if member_id is None and member_epoch < 0:
            return
        if member_id is None:  # Kafka 4.3 looks null up in a hash table, which fails
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        known = self.member(member_id).member_epoch
        if member_epoch != known:
            raise ApiError(
                ErrorCode.STALE_MEMBER_EPOCH,
                f"The received member epoch {member_epoch} does not match the expected member epoch {known}.",
            )

    def validate_offset_delete(self) -> None:
        """Allow it: topics that members read are refused one by one."""

    def validate_delete_group(self) -> None:
        """Check that it is empty: NON_EMPTY_GROUP."""
        if self.members:
            code = ErrorCode.NON_EMPTY_GROUP
            raise ApiError(code, ERROR_TEXTS[code])

    def tombstones(self) -> list[GroupRecord]:
        """Return the records that delete the group."""
        return records.group_tombstones(self.group_id, self.members.in_order())

    def describe(self) -> None:
        """Return that DescribeGroups, which is for classic groups, does not show it."""

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return that each offset's retention runs from its commit."""
        return OffsetExpiration(None)
