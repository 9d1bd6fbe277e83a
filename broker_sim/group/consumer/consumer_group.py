"""One group of the consumer protocol: its members, what they subscribe to, own and are to get.

Mirrors `ConsumerGroup`; what it shares with share groups is in `ModernGroup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.consumer import records
from broker_sim.group.consumer.commit_checks import older_epoch_check, stale_epoch
from broker_sim.group.consumer_protocol import PROTOCOL_TYPE
from broker_sim.group.group import CONSUMER, OffsetExpiration
from broker_sim.group.modern.assignment import NO_PARTITIONS
from broker_sim.group.modern.counting import add_count, is_homogeneous, most_wanted
from broker_sim.group.modern.modern_group import ModernGroup
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import HashTable, TimelineMap, table_capacity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from broker_sim.group.consumer.member import ConsumerMember
    from broker_sim.group.consumer.subscription import ResolvedRegex
    from broker_sim.group.group import CommitPartitionValidator
    from broker_sim.group.modern.assignment import Epochs, Partitions
    from broker_sim.group.modern.topic_counts import TopicCounts
    from broker_sim.group.offset_commit import OffsetCommit
    from broker_sim.group.records import GroupRecord

UNOWNED: Final = -1
MEMBER_EPOCH_VERSION: Final = 9
"""The version of OffsetCommit from which on members of the consumer protocol may use it."""


class ConsumerGroup(ModernGroup["ConsumerMember"]):
    """The state of one group; its methods change it as records say, or look at it."""

    group_type = CONSUMER
    protocol_type = PROTOCOL_TYPE
    should_expire = True

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.inverted_target: dict[bytes, dict[int, str]] = {}
        """The member that each partition is meant for, by topic id and partition."""
        self.resolved: dict[str, ResolvedRegex] = {}
        """The topics of each expression that a member subscribes to."""
        self.regexes: TimelineMap[str, int] = TimelineMap(string_hash)
        """How many members subscribe to each expression."""
        self.has_subscription_metadata_record = False
        self.static_members: dict[str, str] = {}
        """The ids of static members by their instance ids."""
        self._assignors: TimelineMap[str, int] = TimelineMap(string_hash)
        self._partition_epochs: dict[bytes, dict[int, int]] = {}
        self.classic_members = 0
        """How many members use the classic protocol."""
        self.classic_protocols: dict[str, int] = {}
        """How many members support each protocol of the classic kind."""

    # -- look-up --------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        """Its state: Empty, Assigning, Reconciling or Stable."""
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    def static_member_id(self, instance_id: str | None) -> str | None:
        """Return the id of the static member with that instance id, or None."""
        return None if instance_id is None else self.static_members.get(instance_id)

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """Return the static member with that instance id, or None."""
        member_id = self.static_member_id(instance_id)
        return None if member_id is None else self.member(member_id)

    def target_of(self, member: ConsumerMember) -> Partitions:
        """Return the member's target; that of a static member is the one of its instance id."""
        member_id: str | None = member.member_id
        if member.instance_id is not None:
            member_id = self.static_member_id(member.instance_id)
        return NO_PARTITIONS if member_id is None else self.targets.get(member_id, NO_PARTITIONS)

    def partition_epoch(self, topic_id: bytes, partition: int) -> int:
        """Return the epoch of the member that owns the partition, -1 without one."""
        return self._partition_epochs.get(topic_id, {}).get(partition, UNOWNED)

    def supports_classic_protocols(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Return whether all members of the classic protocol support one of these protocols.

        The group must have members.
        """
        return protocol_type == PROTOCOL_TYPE and any(
            self.classic_protocols.get(name, 0) == self.classic_members for name in protocols
        )

    def preferred_assignor(self) -> str | None:
        """Return the assignor that most members ask for, None if nobody asks for one."""
        return most_wanted(self._assignors.in_order(), self._assignors)

    def next_preferred_assignor(self, old: ConsumerMember, new: ConsumerMember) -> str | None:
        """Return the same once `new` has taken the place of `old`."""
        capacity = table_capacity(int(len(self._assignors) / 0.75 + 1))
        counts: HashTable[str, int] = HashTable(string_hash, capacity)
        for name in self._assignors.in_order():
            counts.put(name, self._assignors[name])
        add_count(counts, old.server_assignor, -1)
        add_count(counts, new.server_assignor, 1)
        return most_wanted(counts.in_order(), counts)

    def next_topics(self, old: ConsumerMember, new: ConsumerMember) -> TopicCounts:
        """Return the topics that the group subscribes to once `new` has taken the place of `old`."""
        counts = self.topics.copied()
        counts.add_names(old.subscribed_topic_names, -1)
        counts.add_names(new.subscribed_topic_names, 1)
        regex = old.subscribed_topic_regex
        if regex and regex != new.subscribed_topic_regex and self.regexes.get(regex) == 1:
            self._forget_regex(counts, regex)
        return counts

    def topics_without(self, members: Iterable[ConsumerMember], regexes: Iterable[str]) -> TopicCounts:
        """Return the topics that the group subscribes to without these members and expressions."""
        counts = self.topics.copied()
        for member in members:
            counts.add_names(member.subscribed_topic_names, -1)
        for regex in regexes:
            self._forget_regex(counts, regex)
        return counts

    def _forget_regex(self, counts: TopicCounts, regex: str) -> None:
        resolved = self.resolved.get(regex)
        if resolved is not None:
            counts.add_regex(resolved.topics, -1)

    def next_regexes(self, old: ConsumerMember, new: ConsumerMember) -> dict[str, int]:
        """Return how many members subscribe to each expression once `new` is in the place of `old`."""
        counts = dict(self.regexes)
        add_count(counts, old.subscribed_topic_regex, -1)
        add_count(counts, new.subscribed_topic_regex, 1)
        return counts

    # -- changes --------------------------------------------------------------------------------

    def update_member(self, member: ConsumerMember) -> None:
        """Add the member or replace its state."""
        old = self.members.get(member.member_id)
        self.members.put(member.member_id, member)
        if old is not None:
            self._forget(old)
        self.topics.add_names(member.subscribed_topic_names, 1)
        if member.server_assignor is not None:
            count = self._assignors.get(member.server_assignor, 0) + 1
            self._assignors.put(member.server_assignor, count)
        for epochs in (member.assigned, member.pending_revocation):
            for topic_id, numbers in epochs.items():
                owners = self._partition_epochs.setdefault(topic_id, {})
                for number in numbers:
                    owners[number] = member.member_epoch
        add_count(self.regexes, member.subscribed_topic_regex, 1)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if member.classic is not None:
            self.classic_members += 1
            for name, _ in member.classic.protocols:
                add_count(self.classic_protocols, name, 1)
        self.is_homogeneous = is_homogeneous(self.regexes, self.topics, len(self.members))

    def remove_member(self, member_id: str) -> None:
        """Remove the member."""
        old = self.members.pop(member_id, None)
        if old is not None:
            self._forget(old)
            if old.instance_id is not None:
                self.static_members.pop(old.instance_id, None)
        self.is_homogeneous = is_homogeneous(self.regexes, self.topics, len(self.members))

    def _forget(self, member: ConsumerMember) -> None:
        """Take back what the member stands for in the counts."""
        self.topics.add_names(member.subscribed_topic_names, -1)
        add_count(self._assignors, member.server_assignor, -1)
        self._release(member.assigned, member.member_epoch)
        self._release(member.pending_revocation, member.member_epoch)
        add_count(self.regexes, member.subscribed_topic_regex, -1)
        if member.classic is not None:
            self.classic_members -= 1
            for name, _ in member.classic.protocols:
                add_count(self.classic_protocols, name, -1)

    def _release(self, epochs: Epochs, member_epoch: int) -> None:
        """Note that nobody owns these partitions, unless another member has got them meanwhile."""
        for topic_id, numbers in epochs.items():
            owners = self._partition_epochs.get(topic_id)
            if owners is None:
                continue
            for number in numbers:
                if owners.get(number) == member_epoch:
                    del owners[number]
            if not owners:
                del self._partition_epochs[topic_id]

    def update_target(self, member_id: str, target: Partitions) -> None:
        """Set a member's target."""
        self._invert(member_id, target)
        super().update_target(member_id, target)

    def remove_target(self, member_id: str) -> None:
        """Remove a member's target."""
        self._invert(member_id, NO_PARTITIONS)
        super().remove_target(member_id)

    def _invert(self, member_id: str, target: Partitions) -> None:
        old = self.targets.get(member_id, NO_PARTITIONS)
        for topic_id in {**old, **target}:
            owners = self.inverted_target.setdefault(topic_id, {})
            before, after = frozenset(old.get(topic_id, ())), frozenset(target.get(topic_id, ()))
            for number in before - after:
                # It may have been given to another member just before.
                if owners.get(number) == member_id:
                    del owners[number]
            for number in after - before:
                owners[number] = member_id
            if not owners:
                del self.inverted_target[topic_id]

    def update_regex(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Set the topics of an expression; None forgets it."""
        old = self.resolved.pop(regex, None)
        if old is not None:
            self.topics.add_regex(old.topics, -1)
        if resolved is not None:
            self.resolved[regex] = resolved
            self.topics.add_regex(resolved.topics, 1)

    # -- for the coordinator: see `Group` -------------------------------------------------------

    def validate_offset_commit(self, commit: OffsetCommit, is_transactional: bool) -> CommitPartitionValidator | None:
        """Check the member; one in an older epoch may commit what it has owned since then (KIP-1251)."""
        epoch = commit.generation_id_or_member_epoch
        # A commit from outside of the group, such as that of a tool.
        if epoch < 0 and not self.members:
            return None
        # A transaction that does not name the member.
        names_member = commit.member_id or commit.group_instance_id is not None
        if is_transactional and epoch == UNOWNED and not names_member:
            return None
        member = self.member(commit.member_id)
        if not is_transactional and not member.uses_classic_protocol and commit.api_version < MEMBER_EPOCH_VERSION:
            raise ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"OffsetCommit version {MEMBER_EPOCH_VERSION} or above must be used by members using "
                "the consumer group protocol",
            )
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise stale_epoch(member)
        return older_epoch_check(member, epoch)

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Check the member's epoch; who names neither member nor epoch may fetch."""
        if member_id is None and member_epoch < 0:
            return
        if member_id is None:  # Kafka 4.3 looks null up in a hash table, which fails
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        member = self.member(member_id)
        if member_epoch != member.member_epoch:
            raise stale_epoch(member)

    def validate_offset_delete(self) -> None:
        """Allow it: topics that are subscribed to are refused one by one."""

    def validate_delete_group(self) -> None:
        """Check that it is empty: NON_EMPTY_GROUP."""
        if self.members:
            raise ApiError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self, replaced: Mapping[str, str] | None = None) -> list[GroupRecord]:
        """Return the records that delete the group; `replaced` has other ids for some members."""
        other = replaced or {}
        member_ids = [other.get(member_id, member_id) for member_id in self.members.in_order()]
        return records.group_tombstones(self.group_id, member_ids, self.resolved)

    def describe(self) -> None:
        """Return that DescribeGroups, which is for classic groups, does not show it."""

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return that each offset's retention runs from its commit."""
        return OffsetExpiration(None)
