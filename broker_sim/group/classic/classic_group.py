"""One classic group: its members, its generation and its state; mirrors `ClassicGroup`.

Its state and its checks, without waits and without I/O; `Rebalance` moves it on.
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

    from broker_sim.group.classic.classic_member import ClassicMember, DelayedHeartbeat, JoinResponder, MemberProtocol
    from broker_sim.group.offsets import OffsetCommit
    from broker_sim.runtime.delayed_request import DelayedRequest


class ClassicGroupState(Enum):
    """A state by the name that ListGroups and DescribeGroups show."""

    EMPTY = "Empty"
    """No members, but perhaps offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are joining the next generation."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All have joined; the leader's assignment is awaited."""
    STABLE = "Stable"
    """All have their assignments."""
    DEAD = "Dead"
    """No longer on this coordinator."""

    # Each is there once. Enum hashes the name instead, by a call in Python, and joins look states up.
    __hash__ = object.__hash__

    def can_follow(self, state: ClassicGroupState) -> bool:
        """Return whether a group may come from `state` to this one."""
        return state in _PREVIOUS[self]


_PREVIOUS: Final = {
    ClassicGroupState.EMPTY: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.PREPARING_REBALANCE: frozenset(
        {ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.EMPTY}
    ),
    ClassicGroupState.COMPLETING_REBALANCE: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.STABLE: frozenset({ClassicGroupState.COMPLETING_REBALANCE}),
    ClassicGroupState.DEAD: frozenset(ClassicGroupState),
}


class ProtocolSupporters:
    """The number of members that support each protocol, so that no join has to look at all of them."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, protocols: Iterable[MemberProtocol]) -> None:
        """Count a member's protocols."""
        for protocol in protocols:
            self._counts[protocol.name] += 1

    def remove(self, protocols: Iterable[MemberProtocol]) -> None:
        """Count them no longer."""
        for protocol in protocols:
            self._counts[protocol.name] -= 1

    def are_all(self, name: str, member_count: int) -> bool:
        """Return whether all members know the protocol."""
        return self._counts[name] == member_count

    def candidates(self, member_count: int) -> set[str]:
        """Return the protocols that all members know."""
        return {name for name, count in self._counts.items() if count == member_count}


def choose_protocol(members: Iterable[ClassicMember], candidates: Container[str]) -> str:
    """Return the candidate that most members name first; all must name one of them. Mirrors `selectProtocol`.

    Where several have as many votes, Kafka takes the first in the order of a Java hash map; so does
    this.
    """
    votes = Counter(member.vote(candidates) for member in members)
    most = max(votes.values())
    return next(name for name in hash_order(votes, string_hash) if votes[name] == most)


EMPTY, PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE, DEAD = ClassicGroupState


class ClassicGroup:
    """A group of the classic protocol; a `broker_sim.group.group.Group`.

    No operation on one member looks at the others, except where a generation begins or ends.
    """

    __slots__ = (
        "_clock",
        "_supporters",
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
        """Time of its last change of state (wall clock); None if an old record does not have it."""
        self.generation_id = generation_id
        self.protocol_type_or_none = protocol_type
        self.protocol_name = protocol_name
        self.leader_id = leader_id
        self.members: HashTable[str, ClassicMember] = HashTable(string_hash)
        self.static_members: dict[str, str] = {}
        """Member ids by group instance id."""
        self.pending_join_members: dict[str, DelayedHeartbeat] = {}
        """Ids that were given out and have not joined yet (KIP-394), and how long they may."""
        self.pending_sync_members: set[str] = set()
        self.awaiting_join_count = 0
        self.new_member_added = False
        """Whether somebody has come since the current initial delay began."""
        self.subscribed_topics: frozenset[str] | None = None
        """All topics that members want; None where the coordinator cannot know."""
        self.join_operation: DelayedRequest | None = None
        """The wait for joins, while there is one."""
        self.sync_operation: DelayedRequest | None = None
        """The wait for syncs, while there is one."""
        self._supporters = ProtocolSupporters()

    # -- what it is --------------------------------------------------------------------------------

    @property
    def protocol_type(self) -> str:
        """The protocol of its members, such as `consumer`; "" for a group that has had no members."""
        return self.protocol_type_or_none or ""

    @property
    def state_name(self) -> str:
        """Its state as ListGroups calls it."""
        return self.state.value

    @property
    def is_empty(self) -> bool:
        """Whether it is in the state Empty; a group whose members are pending is."""
        return self.state is EMPTY

    @property
    def member_count(self) -> int:
        """Number of members, without pending ones."""
        return len(self.members)

    @property
    def has_all_members_joined(self) -> bool:
        """Whether all members' joins are parked, and no one is pending."""
        return len(self.members) == self.awaiting_join_count and not self.pending_join_members

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether its members are consumers, whose subscriptions can be read."""
        return self.protocol_type_or_none == PROTOCOL_TYPE

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance can begin now."""
        return PREPARING_REBALANCE.can_follow(self.state)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of a member; O(members)."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_leader(self, member_id: str) -> bool:
        """Return whether that member assigns."""
        return self.leader_id == member_id

    def supports_protocols(self, protocol_type: str, protocols: Sequence[MemberProtocol]) -> bool:
        """Return whether somebody of that type, with those protocols, can be a member."""
        if self.state is EMPTY:
            return bool(protocol_type) and bool(protocols)
        return self.protocol_type_or_none == protocol_type and any(
            self._supporters.are_all(protocol.name, len(self.members)) for protocol in protocols
        )

    # -- members -----------------------------------------------------------------------------------

    def add(self, member: ClassicMember, protocol_type: str, respond: JoinResponder | None = None) -> None:
        """Add a member, whose join is parked if `respond` is given. The first sets the type."""
        member_id = member.member_id
        if not self.members:
            self.protocol_type_or_none = protocol_type
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members
            self.static_members[member.group_instance_id] = member_id
        if self.leader_id is None:
            self.leader_id = member_id
        self.members.put(member_id, member)
        self._supporters.add(member.protocols)
        self._park_join(member, respond)
        self.pending_join_members.pop(member_id, None)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending one; does nothing for others. Another becomes the leader."""
        member: ClassicMember | None = self.members.pop(member_id, None)
        if member is not None:
            self._supporters.remove(member.protocols)
            if member.is_awaiting_join:
                self.awaiting_join_count -= 1
            if member.group_instance_id is not None:
                del self.static_members[member.group_instance_id]
        if self.is_leader(member_id):
            self.leader_id = next(iter(self.members.in_order()), None)
        self.pending_join_members.pop(member_id, None)
        self.pending_sync_members.discard(member_id)

    def replace_static_member(self, group_instance_id: str, old_member_id: str, new_member_id: str) -> ClassicMember:
        """Give a static member's place to its successor, and return that."""
        old: ClassicMember = self.members.pop(old_member_id)
        new = old.successor(new_member_id)
        assert not old.is_awaiting_join, "answer the old member first"
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
        """Take over what a member's new join says, and park that join if `respond` is given."""
        self._supporters.remove(member.protocols)
        member.protocols = tuple(protocols)
        self._supporters.add(member.protocols)
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
        """Answer the member's parked sync; returns whether there was one."""
        respond = member.respond_to_sync
        if respond is None:
            return False
        member.respond_to_sync = None
        respond(response)
        return True

    def answer_error(self, member: ClassicMember, error_code: ErrorCode) -> None:
        """Answer the member's parked requests, of either kind, with that error."""
        response = messages.JoinGroupResponse(error_code=error_code, member_id=member.member_id)
        self.answer_join(member, response)
        self.answer_sync(member, messages.SyncGroupResponse(error_code=error_code))

    def elect_joined_leader(self) -> bool:
        """Return whether a member whose join is parked leads; elect one if the leader has none."""
        leader = self.members.get(self.leader_id or "")
        if leader is None or leader.is_awaiting_join:
            return leader is not None
        joined = (each for each in self.members.values_in_order() if each.is_awaiting_join)
        successor = next(joined, leader)
        self.leader_id = successor.member_id
        return successor is not leader

    # -- generations -------------------------------------------------------------------------------

    def transition_to(self, state: ClassicGroupState) -> None:
        """Change the state."""
        assert state.can_follow(self.state), f"{self.group_id}: from {self.state} to {state}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = self._clock.wall_clock_ms()

    def select_protocol(self) -> str:
        """Return the protocol that the members would choose now; there must be members."""
        candidates = self._supporters.candidates(len(self.members))
        return choose_protocol(self.members.values_in_order(), candidates)

    def init_next_generation(self) -> None:
        """Begin the next generation with the members there are."""
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.update_subscribed_topics()
        self.transition_to(COMPLETING_REBALANCE if self.members else EMPTY)
        self.pending_sync_members.clear()

    def update_subscribed_topics(self) -> None:
        """Read the topics out of the members' subscriptions, as far as these can be read."""
        self.subscribed_topics = None
        if self.uses_consumer_protocol:
            self.subscribed_topics = topics_of_members(self.members.values(), self.protocol_name)

    # -- checks ------------------------------------------------------------------------------------

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ClassicMember:
        """Return the member. Raises UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if it was replaced."""
        if group_instance_id is not None:
            known_id = self.static_members.get(group_instance_id)
            if known_id is not None and known_id != member_id:
                raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
            if known_id is None:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    def validate_offset_commit(self, commit: OffsetCommit, is_transactional: bool) -> None:
        """Check that this member may commit.

        An empty group takes commits without a generation; those of transactions need no member, and
        do not mind a rebalance.
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
        member_id: str | None,  # noqa: ARG002 - only other kinds of groups ask
        member_epoch: int,  # noqa: ARG002
    ) -> None:
        """Check that offsets may be fetched: GROUP_ID_NOT_FOUND once it is dead."""
        if self.state is DEAD:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is in dead state.")

    def validate_offset_delete(self) -> None:
        """Check that offsets may be deleted; only consumers' subscriptions tell which are in use."""
        self.validate_offset_fetch(None, -1)
        if self.state is not EMPTY and not self.uses_consumer_protocol:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)

    def validate_delete_group(self) -> None:
        """Check that the group may be deleted: only an empty one."""
        self.validate_offset_fetch(None, -1)
        if self.state is not EMPTY:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """Return whether a member wants the topic; of consumers that cannot be read, each does."""
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return from when on offsets expire: since it is empty, or since their commit."""
        if self.protocol_type_or_none is None:
            return OffsetExpiration(None)
        if self.state is EMPTY:
            return OffsetExpiration(self.state_timestamp_ms)
        if self.state is STABLE and self.subscribed_topics is not None:
            return OffsetExpiration(None)
        return None

    def describe(self) -> messages.DescribeGroupsResponse.DescribedGroup:
        """Return what DescribeGroups answers; what members chose is shown while it is stable."""
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
        """Return the record that deletes the group."""
        return [GroupRecord(record_messages.GroupMetadataKey(self.group_id), None)]


FIRST_VERSION: Final = 0
"""All versions begin with the fields of this one, so newer ones than ours can be read too."""


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """Return all topics that the subscriptions name; None if one of them is not a subscription.

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
    """Return the topics of consumers that use that protocol; None if they cannot be known."""
    if not members:
        return frozenset()
    if protocol_name is None:
        return None
    return subscribed_topics(member.metadata(protocol_name) for member in members)
