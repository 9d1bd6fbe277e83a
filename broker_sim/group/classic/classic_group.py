"""One classic group: its members, its generation and its state; mirrors `ClassicGroup`.

The state and its checks, without waits and I/O; `Rebalance` drives its transitions.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from struct import error
from typing import TYPE_CHECKING, ClassVar, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.consumer_protocol import PROTOCOL_TYPE, VERSION
from broker_sim.group.group import CLASSIC, OffsetExpiration
from broker_sim.group.records import GroupRecord
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import HashTable, hash_order
from broker_sim.protocol import messages
from broker_sim.protocol.codec import decode
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.messages import ConsumerProtocolSubscription

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Sequence

    from broker_sim_purgatory import Clock

    from broker_sim.group.classic.classic_member import ClassicMember, JoinResponder, MemberProtocol
    from broker_sim.group.delayed_timeout import DelayedTimeout
    from broker_sim.group.offsets import OffsetCommit
    from broker_sim.runtime.delayed_request import DelayedRequest


class ClassicGroupState(Enum):
    """State of a classic group; the values are the names in ListGroups and DescribeGroups."""

    EMPTY = "Empty"
    """No members, but offsets may be left."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are joining the next generation."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All members have joined; the leader's assignment is pending."""
    STABLE = "Stable"
    """All members have their assignments."""
    DEAD = "Dead"
    """The group is removed, or has moved to another coordinator."""

    # Hash by identity: joins look states up, and the hash of Enum is a Python call.
    __hash__ = object.__hash__

    def can_follow(self, state: ClassicGroupState) -> bool:
        """Return whether the transition from `state` to this one is valid."""
        return state in _PREVIOUS[self]


EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState

_PREVIOUS: Final = {
    EMPTY: frozenset({PREPARING_REBALANCE}),
    PREPARING_REBALANCE: frozenset({STABLE, COMPLETING_REBALANCE, EMPTY}),
    COMPLETING_REBALANCE: frozenset({PREPARING_REBALANCE}),
    STABLE: frozenset({COMPLETING_REBALANCE}),
    DEAD: frozenset(ClassicGroupState),
}


def choose_protocol(members: Iterable[ClassicMember], candidates: Container[str]) -> str:
    """Return the candidate with the most votes; each member votes for its first one. Mirrors `selectProtocol`.

    Ties are resolved by the order of a Java hash map, as in Kafka.
    """
    votes = Counter(member.vote(candidates) for member in members)
    max_votes = max(votes.values())
    return next(name for name in hash_order(votes, string_hash) if votes[name] == max_votes)


class ClassicGroup:
    """A group of the classic protocol; a `broker_sim.group.group.Group`.

    Operations on one member do not look at the others, except when a generation begins or ends.
    """

    __slots__ = (
        "_clock",
        "_supported_protocols",
        "awaiting_join_count",
        "generation_id",
        "group_id",
        "join_operation",
        "leader_id",
        "members",
        "new_member_added",
        "pending_join_members",
        "pending_sync_members",
        "previous_state",
        "protocol_name",
        "protocol_type_or_none",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
        "sync_operation",
    )

    group_type: ClassVar[str] = CLASSIC
    should_expire: ClassVar[bool] = True

    def __init__(
        self,
        group_id: str,
        clock: Clock,
        *,
        state: ClassicGroupState = EMPTY,
        generation_id: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        leader_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self._clock = clock
        self.state = state
        self.previous_state = DEAD
        self.state_timestamp_ms: int | None = clock.wall_clock_ms()
        """Wall-clock time of the last state change; None if an old record does not have it."""
        self.generation_id = generation_id
        self.protocol_type_or_none = protocol_type
        self.protocol_name = protocol_name
        self.leader_id = leader_id
        self.members: HashTable[str, ClassicMember] = HashTable(string_hash)
        self.static_members: dict[str, str] = {}
        """Member ids by group instance id."""
        self.pending_join_members: dict[str, DelayedTimeout] = {}
        """Member ids that were assigned but have not joined yet (KIP-394), with their timeouts."""
        self.pending_sync_members: set[str] = set()
        self.awaiting_join_count = 0
        self.new_member_added = False
        """Whether a member has joined since the current initial delay began."""
        self.subscribed_topics: frozenset[str] | None = None
        """All topics that members subscribe to; None if they cannot be determined."""
        self.join_operation: DelayedRequest | None = None
        """The pending wait for joins, if any."""
        self.sync_operation: DelayedRequest | None = None
        """The pending wait for syncs, if any."""
        self._supported_protocols: Counter[str] = Counter()
        """Number of members that support each protocol, so that a join need not look at all members."""

    # -- properties --------------------------------------------------------------------------------

    @property
    def protocol_type(self) -> str:
        """The protocol type, such as `consumer`; "" if the group has never had members."""
        return self.protocol_type_or_none or ""

    @property
    def state_name(self) -> str:
        """The state's name in ListGroups."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether the state is Empty, which includes groups with pending members only."""
        return self.state is EMPTY

    @property
    def member_count(self) -> int:
        """Number of members, excluding pending ones."""
        return len(self.members)

    @property
    def has_all_members_joined(self) -> bool:
        """Whether the joins of all members are parked, and none is pending."""
        return len(self.members) == self.awaiting_join_count and not self.pending_join_members

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether the members are consumers, whose subscriptions can be parsed."""
        return self.protocol_type_or_none == PROTOCOL_TYPE

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance can begin now."""
        return PREPARING_REBALANCE.can_follow(self.state)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of all members; O(members)."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_leader(self, member_id: str) -> bool:
        """Return whether that member is the leader."""
        return self.leader_id == member_id

    def supports_protocols(self, protocol_type: str, protocols: Sequence[MemberProtocol]) -> bool:
        """Return whether a member with this protocol type and these protocols may join."""
        if self.state is EMPTY:
            return bool(protocol_type) and bool(protocols)
        return self.protocol_type_or_none == protocol_type and any(
            self._supported_protocols[protocol.name] == len(self.members) for protocol in protocols
        )

    # -- members -----------------------------------------------------------------------------------

    def add(self, member: ClassicMember, protocol_type: str, respond: JoinResponder | None = None) -> None:
        """Add a member, and park its join if `respond` is given. The first member sets the protocol type."""
        member_id = member.member_id
        if not self.members:
            self.protocol_type_or_none = protocol_type
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member_id
        if self.leader_id is None:
            self.leader_id = member_id
        self.members.put(member_id, member)
        self._supported_protocols.update(member.protocol_names)
        self._park_join(member, respond)
        self.pending_join_members.pop(member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member or pending member, if there is one; if it was the leader, elect another."""
        member: ClassicMember | None = self.members.pop(member_id, None)
        if member is not None:
            self._supported_protocols.subtract(member.protocol_names)
            if member.is_awaiting_join:
                self.awaiting_join_count -= 1
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if self.is_leader(member_id):
            self.leader_id = next(iter(self.members.in_order()), None)
        self.pending_join_members.pop(member_id, None)
        self.pending_sync_members.discard(member_id)

    def replace_static_member(self, group_instance_id: str, old_member_id: str, new_member_id: str) -> ClassicMember:
        """Replace a static member by a successor with a new member id, and return it."""
        old: ClassicMember = self.members.pop(old_member_id)
        new = old.successor(new_member_id)
        assert not old.is_awaiting_join, "the old member's join must be answered first"
        self.members.put(new_member_id, new)
        if self.is_leader(old_member_id):
            self.leader_id = new_member_id
        self.static_members[group_instance_id] = new_member_id
        return new

    def update_member(
        self,
        member: ClassicMember,
        protocols: Sequence[MemberProtocol],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        respond: JoinResponder | None,
    ) -> None:
        """Update a member from its new join, and park the join if `respond` is given."""
        self._supported_protocols.subtract(member.protocol_names)
        member.protocols = tuple(protocols)
        self._supported_protocols.update(member.protocol_names)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self._park_join(member, respond)

    def _park_join(self, member: ClassicMember, respond: JoinResponder | None) -> None:
        self.awaiting_join_count += (respond is not None) - member.is_awaiting_join
        member.respond_to_join = respond

    def answer_join(self, member: ClassicMember, response: messages.JoinGroupResponse) -> None:
        """Answer the member's parked join, if there is one."""
        respond = member.respond_to_join
        if respond is not None:
            self._park_join(member, None)
            respond(response)

    @staticmethod
    def answer_sync(member: ClassicMember, response: messages.SyncGroupResponse) -> bool:
        """Answer the member's parked sync; return whether there was one."""
        respond = member.respond_to_sync
        if respond is None:
            return False
        member.respond_to_sync = None
        respond(response)
        return True

    def answer_error(self, member: ClassicMember, error_code: ErrorCode) -> None:
        """Answer the member's parked join and sync with that error."""
        response = messages.JoinGroupResponse(error_code=error_code, member_id=member.member_id)
        self.answer_join(member, response)
        self.answer_sync(member, messages.SyncGroupResponse(error_code=error_code))

    def elect_joined_leader(self) -> bool:
        """Elect a member with a parked join if the leader has none; return whether the leader has one now."""
        leader = self.members.get(self.leader_id or "")
        if leader is None or leader.is_awaiting_join:
            return leader is not None
        joined_members = (member for member in self.members.values_in_order() if member.is_awaiting_join)
        successor = next(joined_members, leader)
        self.leader_id = successor.member_id
        return successor is not leader

    # -- generations -------------------------------------------------------------------------------

    def transition_to(self, state: ClassicGroupState) -> None:
        """Change the state; the transition must be valid."""
        assert state.can_follow(self.state), f"{self.group_id}: from {self.state} to {state}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = self._clock.wall_clock_ms()

    def select_protocol(self) -> str:
        """Return the protocol that the current members choose; there must be members."""
        size = len(self.members)
        candidates = {name for name, count in self._supported_protocols.items() if count == size}
        return choose_protocol(self.members.values_in_order(), candidates)

    def init_next_generation(self) -> None:
        """Begin the next generation with the current members."""
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.update_subscribed_topics()
        self.transition_to(COMPLETING_REBALANCE if self.members else EMPTY)
        self.pending_sync_members.clear()

    def update_subscribed_topics(self) -> None:
        """Parse the topics from the members' subscriptions, if possible."""
        self.subscribed_topics = None
        if self.uses_consumer_protocol:
            self.subscribed_topics = topics_of_members(self.members.values(), self.protocol_name)

    # -- checks ------------------------------------------------------------------------------------

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """Return the member. Raises `ApiError`: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID if it was replaced."""
        if group_instance_id is not None:
            current_id = self.static_members.get(group_instance_id)
            if current_id is not None and current_id != member_id:
                raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
            if current_id is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def validate_offset_commit(self, commit: OffsetCommit, is_transactional: bool) -> None:
        """Check that the member may commit offsets.

        An empty group accepts commits without a generation; transactional commits need no member, and are
        accepted during a rebalance.
        """
        generation_id = commit.generation_id_or_member_epoch
        if self.state is DEAD:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation_id < 0 and self.state is EMPTY:
            return
        if generation_id >= 0 or commit.member_id or commit.group_instance_id is not None:
            self.validate_member(commit.member_id, commit.group_instance_id)
            if generation_id != self.generation_id:
                raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        elif not is_transactional:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if self.state is COMPLETING_REBALANCE and not is_transactional:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)

    def validate_offset_fetch(
        self,
        member_id: str | None,  # noqa: ARG002 - only other group types need it
        member_epoch: int,  # noqa: ARG002
    ) -> None:
        """Check that offsets may be fetched. Raises `ApiError` GROUP_ID_NOT_FOUND if the group is dead."""
        if self.state is DEAD:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is in dead state.")

    def validate_offset_delete(self) -> None:
        """Check that offsets may be deleted. Non-consumer groups must be empty: their topics in use are unknown."""
        self.validate_offset_fetch(None, -1)
        if self.state is not EMPTY and not self.uses_consumer_protocol:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)

    def validate_delete_group(self) -> None:
        """Check that the group may be deleted: it must be empty."""
        self.validate_offset_fetch(None, -1)
        if self.state is not EMPTY:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic; True for consumers with unparsable subscriptions."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return since when offsets expire: since the group is empty, or since their commit; None if they do not."""
        if self.protocol_type_or_none is None:
            return OffsetExpiration(None)
        if self.state is EMPTY:
            return OffsetExpiration(self.state_timestamp_ms)
        if self.state is STABLE and self.subscribed_topics is not None:
            return OffsetExpiration(None)
        return None

    def describe(self) -> messages.DescribeGroupsResponse.DescribedGroup:
        """Return the group for DescribeGroups; protocol and metadata are included only while it is stable."""
        response = messages.DescribeGroupsResponse
        name = self.protocol_name if self.state is STABLE else None
        return response.DescribedGroup(
            group_id=self.group_id,
            group_state=self.state_name,
            protocol_type=self.protocol_type,
            protocol_data=name or "",
            members=[member.describe(name) for member in self.members.values_in_order()],
        )

    def tombstones(self) -> Sequence[GroupRecord]:
        """Return the tombstone of the group."""
        return [GroupRecord(record_messages.GroupMetadataKey(self.group_id), None)]


FIRST_VERSION: Final = 0
"""All versions begin with the fields of this one, so that newer versions can be parsed too."""


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics in the subscriptions; None if one of them cannot be parsed.

    Mirrors `ClassicGroup.computeSubscribedTopics`.
    """
    topics: set[str] = set()
    for subscription in set(subscriptions):
        try:
            VERSION.unpack_from(subscription)
            decoded = decode(ConsumerProtocolSubscription, FIRST_VERSION, subscription, VERSION.size)
        except (error, ProtocolError):
            return None
        topics.update(decoded.topics)
    return frozenset(topics)


def topics_of_members(members: Collection[ClassicMember], protocol_name: str | None) -> frozenset[str] | None:
    """Return the topics that the members subscribe to with that protocol; None if they cannot be determined."""
    if not members:
        return frozenset()
    if protocol_name is None:
        return None
    return subscribed_topics(member.metadata(protocol_name) for member in members)
