"""One member of a classic group; mirrors `ClassicGroupMember`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from broker_sim.group.delayed_timeout import DelayedTimeout

    JoinResponder = Callable[[messages.JoinGroupResponse], object]
    SyncResponder = Callable[[messages.SyncGroupResponse], object]


EMPTY_ASSIGNMENT: Final = b""


class MemberProtocol(NamedTuple):
    """A protocol that a member supports, such as `range`, and the member's metadata for it."""

    name: str
    metadata: bytes


class ClassicMember:
    """A member, with its protocols and parked requests.

    `respond_to_join` and `respond_to_sync` are None unless a request of that kind is parked.
    """

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "group_instance_id",
        "heartbeat",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "respond_to_join",
        "respond_to_sync",
        "session_timeout_ms",
    )

    def __init__(
        self,
        member_id: str,
        *,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Sequence[MemberProtocol],
        assignment: bytes = EMPTY_ASSIGNMENT,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = tuple(protocols)
        self.assignment = assignment
        self.is_new = False
        """Whether its first join is still parked, during which its session may expire."""
        self.respond_to_join: JoinResponder | None = None
        self.respond_to_sync: SyncResponder | None = None
        self.heartbeat: DelayedTimeout | None = None
        """The delayed operation that expires its session; each request of the member postpones it."""

    @property
    def protocol_names(self) -> list[str]:
        """The names of its protocols, in its order of preference."""
        return [protocol.name for protocol in self.protocols]

    @property
    def is_static(self) -> bool:
        """Whether this is a static member (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def is_awaiting_join(self) -> bool:
        """Whether a JoinGroup of the member is parked."""
        return self.respond_to_join is not None

    @property
    def is_awaiting_sync(self) -> bool:
        """Whether a SyncGroup of the member is parked."""
        return self.respond_to_sync is not None

    @property
    def has_satisfied_heartbeat(self) -> bool:
        """Whether its session cannot expire, because a parked request takes the place of heartbeats.

        The first join does not count, because the coordinator does not notice when that client disconnects.
        """
        return not self.is_new and (self.is_awaiting_join or self.is_awaiting_sync)

    def successor(self, member_id: str) -> ClassicMember:
        """Return a copy of this member with another member id and without parked requests."""
        return ClassicMember(
            member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            protocols=self.protocols,
            assignment=self.assignment,
        )

    def metadata(self, protocol_name: str | None) -> bytes:
        """Return the member's metadata for that protocol, which it must support."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise AssertionError(f"member {self.member_id} does not support protocol {protocol_name}")

    def describe(self, protocol_name: str | None) -> messages.DescribeGroupsResponse.DescribedGroupMember:
        """Return the member for DescribeGroups, with its metadata for that protocol unless None."""
        return messages.DescribeGroupsResponse.DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol_name is None else self.metadata(protocol_name),
            member_assignment=self.assignment,
        )

    def vote(self, candidates: Container[str]) -> str:
        """Return the member's first protocol that is a candidate.

        Raises ApiError with UNKNOWN_SERVER_ERROR if there is none. As in Kafka, a protocol that a member
        names twice counts twice, so that a candidate may not be supported by all members.
        """
        for protocol in self.protocols:
            if protocol.name in candidates:
                return protocol.name
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
