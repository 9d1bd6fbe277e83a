"""Members of groups with the classic and the consumer protocol, each with a connection of its own.

A broker reads no further request from a connection while one is parked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from broker_sim.protocol import messages
from broker_sim_integration.clients.groups import (
    COMMIT_VERSION,
    LEAVE_VERSION,
    NO_GENERATION,
    Offset,
    leave,
    start_commit,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim_integration.clients.raw_client import Pending, RawConnection, Reply

JOIN_VERSION = 9
SYNC_VERSION = 5
HEARTBEAT_VERSION = 4
CONSUMER_HEARTBEAT_VERSION = 1
SESSION_TIMEOUT_MS = 10_000
REBALANCE_TIMEOUT_MS = 60_000
LEAVES: Final = -1
"""Epoch of a consumer protocol heartbeat by which a member leaves."""
LEAVES_STATIC: Final = -2
"""Epoch of a heartbeat by which a static member leaves temporarily."""


@dataclass(slots=True)
class ClassicMember:
    """A member of a group with the classic protocol, with a connection of its own.

    It takes over the member id and generation of responses; a scenario may change both.
    """

    client: RawConnection
    group: str
    member_id: str = ""
    generation: int = NO_GENERATION
    instance_id: str | None = None
    protocols: Mapping[str, bytes] = field(default_factory=lambda: {"range": b"any"})
    protocol_type: str = "consumer"
    protocol_name: str | None = None
    """The protocol that the group has chosen."""
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS

    def start_join(self, version: int = JOIN_VERSION) -> Pending[messages.JoinGroupResponse]:
        """Send JoinGroup; pass the result to `joined`."""
        request = messages.JoinGroupRequest
        return self.client.send(
            request(
                group_id=self.group,
                session_timeout_ms=self.session_timeout_ms,
                rebalance_timeout_ms=self.rebalance_timeout_ms,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                protocol_type=self.protocol_type,
                protocols=[
                    request.JoinGroupRequestProtocol(name, metadata) for name, metadata in self.protocols.items()
                ],
            ),
            version,
            messages.JoinGroupResponse,
        )

    def joined(self, pending: Pending[messages.JoinGroupResponse]) -> Reply[messages.JoinGroupResponse]:
        """Wait for the response to a join; take over its member id and generation."""
        reply = pending.result()
        if reply.message.member_id:
            self.member_id = reply.message.member_id
        if not reply.message.error_code:
            self.generation = reply.message.generation_id
            self.protocol_name = reply.message.protocol_name
        return reply

    def join(self, version: int = JOIN_VERSION) -> Reply[messages.JoinGroupResponse]:
        """Join and wait; a member without an id may get only the id (MEMBER_ID_REQUIRED)."""
        return self.joined(self.start_join(version))

    def start_sync(
        self, assignments: Mapping[str, bytes] | None = None, *, version: int = SYNC_VERSION
    ) -> Pending[messages.SyncGroupResponse]:
        """Send SyncGroup; the leader sends an assignment for each member id."""
        request = messages.SyncGroupRequest
        return self.client.send(
            request(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                protocol_type=self.protocol_type,
                protocol_name=self.protocol_name,
                assignments=[
                    request.SyncGroupRequestAssignment(member, assigned)
                    for member, assigned in (assignments or {}).items()
                ],
            ),
            version,
            messages.SyncGroupResponse,
        )

    def sync(
        self, assignments: Mapping[str, bytes] | None = None, *, version: int = SYNC_VERSION
    ) -> Reply[messages.SyncGroupResponse]:
        """Send SyncGroup and wait for the response."""
        return self.start_sync(assignments, version=version).result()

    def heartbeat(self, version: int = HEARTBEAT_VERSION) -> Reply[messages.HeartbeatResponse]:
        """Send a heartbeat and wait for the response."""
        request = messages.HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        return self.client.request(request, version, messages.HeartbeatResponse)

    def leave(self, version: int = LEAVE_VERSION) -> Reply[messages.LeaveGroupResponse]:
        """Leave the group and wait for the response."""
        return leave(self.client, self.group, (self.member_id, self.instance_id), version=version)

    def commit(self, *offsets: Offset, version: int = COMMIT_VERSION) -> Reply[messages.OffsetCommitResponse]:
        """Commit offsets as this member in its generation and wait for the response."""
        return _commit_as(self, self.generation, offsets, version)


@dataclass(slots=True)
class ConsumerMember:
    """A member of a group with the consumer protocol (KIP-848), with a connection of its own.

    It takes over the epoch and assignment of responses; a scenario may change them.
    """

    client: RawConnection
    group: str
    member_id: str
    epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS
    topics: Sequence[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: dict[bytes, list[int]] = field(default_factory=dict)
    """The partitions of its last assignment, by topic id."""

    def join(self, *, version: int = CONSUMER_HEARTBEAT_VERSION) -> Reply[messages.ConsumerGroupHeartbeatResponse]:
        """Send the first heartbeat, with all fields, and take over the response."""
        self.epoch = 0
        self.owned = {}
        return self.full_heartbeat(version=version)

    def full_heartbeat(
        self, *, version: int = CONSUMER_HEARTBEAT_VERSION
    ) -> Reply[messages.ConsumerGroupHeartbeatResponse]:
        """Send a heartbeat with all fields, and take over the response."""
        request = self._request()
        request.instance_id = self.instance_id
        request.rack_id = self.rack_id
        request.rebalance_timeout_ms = self.rebalance_timeout_ms
        request.subscribed_topic_names = None if self.topics is None else list(self.topics)
        if self.regex is not None:
            request.subscribed_topic_regex = self.regex
        request.server_assignor = self.assignor
        request.topic_partitions = self._owned(request)
        return self._exchange(request, version)

    def heartbeat(
        self, *, owned: bool = False, version: int = CONSUMER_HEARTBEAT_VERSION
    ) -> Reply[messages.ConsumerGroupHeartbeatResponse]:
        """Send a heartbeat without changes, or only with the member's partitions."""
        request = self._request()
        if owned:
            request.topic_partitions = self._owned(request)
        return self._exchange(request, version)

    def leave(
        self, epoch: int = LEAVES, *, version: int = CONSUMER_HEARTBEAT_VERSION
    ) -> Reply[messages.ConsumerGroupHeartbeatResponse]:
        """Leave the group, temporarily with `LEAVES_STATIC`."""
        request = self._request()
        request.member_epoch = epoch
        request.instance_id = self.instance_id
        return self.client.request(request, version, messages.ConsumerGroupHeartbeatResponse)

    def commit(self, *offsets: Offset, version: int = COMMIT_VERSION) -> Reply[messages.OffsetCommitResponse]:
        """Commit offsets as this member in its epoch and wait for the response."""
        return _commit_as(self, self.epoch, offsets, version)

    def _request(self) -> messages.ConsumerGroupHeartbeatRequest:
        return messages.ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=self.epoch
        )

    def _owned(
        self, request: messages.ConsumerGroupHeartbeatRequest
    ) -> list[messages.ConsumerGroupHeartbeatRequest.TopicPartitions]:
        return [request.TopicPartitions(topic_id, list(partitions)) for topic_id, partitions in self.owned.items()]

    def _exchange(
        self, request: messages.ConsumerGroupHeartbeatRequest, version: int
    ) -> Reply[messages.ConsumerGroupHeartbeatResponse]:
        reply = self.client.request(request, version, messages.ConsumerGroupHeartbeatResponse)
        message = reply.message
        if not message.error_code:
            self.epoch = message.member_epoch
            if message.assignment is not None:
                self.owned = {
                    bytes(topic.topic_id): list(topic.partitions) for topic in message.assignment.topic_partitions
                }
        return reply


def _commit_as(
    member: ClassicMember | ConsumerMember, generation: int, offsets: Sequence[Offset], version: int
) -> Reply[messages.OffsetCommitResponse]:
    return start_commit(
        member.client,
        member.group,
        *offsets,
        member_id=member.member_id,
        generation=generation,
        instance_id=member.instance_id,
        version=version,
    ).result()
