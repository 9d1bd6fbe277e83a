"""One group of the consumer protocol: its members, their subscriptions, assignments and targets.

Mirrors `ConsumerGroup`; the part shared with share groups is `ModernGroup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.consumer import records
from broker_sim.group.consumer.member import ConsumerMember
from broker_sim.group.consumer_protocol import PROTOCOL_TYPE
from broker_sim.group.group import CONSUMER
from broker_sim.group.modern.assigned_group import ModernGroup
from broker_sim.group.modern.assignment import NO_PARTITIONS, add_count, epochs_in_order, most_frequent
from broker_sim.group.modern.kind import GroupKind
from broker_sim.group.modern.records import group_tombstones
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import HashTable, TimelineMap, copied_capacity, hash_order, table_capacity
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from broker_sim.group.consumer.records import ResolvedRegex
    from broker_sim.group.group import CommitPartitionValidator
    from broker_sim.group.modern.assignment import Epochs, Partitions, TopicCounts
    from broker_sim.group.records import GroupRecord
    from broker_sim.metadata import MetadataImage


UNOWNED: Final = -1
"""Owner epoch of a partition without an owner."""


class ConsumerGroup(ModernGroup[ConsumerMember]):
    """The state of one group, changed only by replaying records."""

    kind = GroupKind(CONSUMER)
    member_class = ConsumerMember
    regexes: TimelineMap[str, int]

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.inverted_target: dict[bytes, dict[int, str]] = {}
        """The target member of each partition, by topic id and partition."""
        self.resolved: dict[str, ResolvedRegex] = {}
        """The resolved topics of each regular expression that a member subscribes to."""
        self.regexes = TimelineMap(string_hash)
        self.has_subscription_metadata_record = False
        self._assignors: TimelineMap[str, int] = TimelineMap(string_hash)
        self._partition_epochs: dict[bytes, dict[int, int]] = {}
        self.classic_members = 0
        """Number of members that use the classic protocol."""
        self.classic_protocols: dict[str, int] = {}
        """Number of classic members that support each protocol."""

    # -- look-up --------------------------------------------------------------------------------

    def partition_epoch(self, topic_id: bytes, partition: int) -> int:
        """Return the epoch of the member that owns the partition, `UNOWNED` if it has no owner."""
        return self._partition_epochs.get(topic_id, {}).get(partition, UNOWNED)

    def supports_classic_protocols(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Return whether all members of the classic protocol support one of these protocols.

        The group must have members.
        """
        return protocol_type == PROTOCOL_TYPE and any(
            self.classic_protocols.get(name, 0) == self.classic_members for name in protocols
        )

    def preferred_assignor(self) -> str | None:
        """Return the assignor that most members name, None if no member names one."""
        return most_frequent(self._assignors.in_order(), self._assignors)

    def preferred_assignor_with(self, old: ConsumerMember | None, new: ConsumerMember) -> str | None:
        """Return the preferred assignor after `new` has replaced `old`."""
        capacity = table_capacity(int(len(self._assignors) / 0.75 + 1))
        counts: HashTable[str, int] = HashTable(string_hash, capacity)
        for name in self._assignors.in_order():
            counts.put(name, self._assignors[name])
        add_count(counts, None if old is None else old.server_assignor, -1)
        add_count(counts, new.server_assignor, 1)
        return most_frequent(counts.in_order(), counts)

    def topics_with(self, old: ConsumerMember, new: ConsumerMember) -> TopicCounts:
        """Return the group's subscribed topics after `new` has replaced `old`."""
        counts = super().topics_with(old, new)
        regex = old.subscribed_topic_regex
        if regex and regex != new.subscribed_topic_regex and self.regexes.get(regex) == 1:
            self._subtract_regex(counts, regex)
        return counts

    def topics_without(self, members: Iterable[ConsumerMember], regexes: Iterable[str] = ()) -> TopicCounts:
        """Return the group's subscribed topics without these members and regular expressions."""
        counts = super().topics_without(members)
        for regex in regexes:
            self._subtract_regex(counts, regex)
        return counts

    def _subtract_regex(self, counts: TopicCounts, regex: str) -> None:
        resolved = self.resolved.get(regex)
        if resolved is not None:
            counts.add_regex(resolved.topics, -1)

    def regexes_with(self, old: ConsumerMember, new: ConsumerMember) -> dict[str, int]:
        """Return the number of members per regular expression after `new` has replaced `old`."""
        counts = dict(self.regexes)
        add_count(counts, old.subscribed_topic_regex, -1)
        add_count(counts, new.subscribed_topic_regex, 1)
        return counts

    # -- changes --------------------------------------------------------------------------------

    def member_added(self, member: ConsumerMember) -> None:
        """Add the member's topics, regular expression, assignor, partitions and protocols to the counts."""
        super().member_added(member)
        if member.server_assignor is not None:
            count = self._assignors.get(member.server_assignor, 0) + 1
            self._assignors.put(member.server_assignor, count)
        for epochs in (member.assigned, member.pending_revocation):
            for topic_id, numbers in epochs.items():
                owners = self._partition_epochs.setdefault(topic_id, {})
                for number in numbers:
                    owners[number] = member.member_epoch
        add_count(self.regexes, member.subscribed_topic_regex, 1)
        if member.classic is not None:
            self.classic_members += 1
            for name, _ in member.classic.protocols:
                add_count(self.classic_protocols, name, 1)

    def member_removed(self, member: ConsumerMember) -> None:
        """Remove the member from the counts."""
        super().member_removed(member)
        add_count(self._assignors, member.server_assignor, -1)
        self._release(member.assigned, member.member_epoch)
        self._release(member.pending_revocation, member.member_epoch)
        add_count(self.regexes, member.subscribed_topic_regex, -1)
        if member.classic is not None:
            self.classic_members -= 1
            for name, _ in member.classic.protocols:
                add_count(self.classic_protocols, name, -1)

    def _release(self, epochs: Epochs, member_epoch: int) -> None:
        """Remove the owner of these partitions, unless it has changed in the meantime."""
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
                # It may have been assigned to another member just before.
                if owners.get(number) == member_id:
                    del owners[number]
            for number in after - before:
                owners[number] = member_id
            if not owners:
                del self.inverted_target[topic_id]

    def update_regex(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Set the resolved topics of a regular expression; None removes it."""
        old = self.resolved.pop(regex, None)
        if old is not None:
            self.topics.add_regex(old.topics, -1)
        if resolved is not None:
            self.resolved[regex] = resolved
            self.topics.add_regex(resolved.topics, 1)

    # -- for the coordinator: see `Group` -------------------------------------------------------

    def knows_member_epochs(self, member: ConsumerMember) -> bool:
        """Return whether the member uses the consumer protocol."""
        return not member.uses_classic_protocol

    def newer_commit(self, member: ConsumerMember, epoch: int) -> ApiError:  # noqa: ARG002 - streams groups need it
        """Return the error of an offset commit in an epoch newer than the member's."""
        return _stale_epoch(member)

    def older_commit_check(self, member: ConsumerMember, epoch: int) -> CommitPartitionValidator:
        """Return a check per partition: commits in an older epoch are valid if the member has owned it since then."""

        def check(topic: str, topic_id: bytes, partition: int) -> None:  # noqa: ARG001 - streams groups need it
            assignment_epoch = member.assignment_epoch(topic_id, partition)
            if assignment_epoch is None or epoch < assignment_epoch:
                raise _stale_epoch(member)

        return check

    def fetch_in_other_epoch(self, member: ConsumerMember, epoch: int) -> ApiError:  # noqa: ARG002
        """Return the error of an offset fetch in another epoch than the member's."""
        return _stale_epoch(member)

    def tombstones(self, replaced: Mapping[str, str] | None = None) -> list[GroupRecord]:
        """Return the tombstones of the group; `replaced` maps member ids to others to use instead."""
        replacements = replaced or {}
        member_ids = [replacements.get(member_id, member_id) for member_id in self.members.in_order()]
        return group_tombstones(self.kind, self.group_id, member_ids, self.own_tombstones())

    def own_tombstones(self) -> list[GroupRecord]:
        """Return the tombstones of regular expressions and of subscription metadata, written before Kafka 4.1."""
        return [
            *(records.regex_tombstone(self.group_id, expression) for expression in self.resolved),
            records.subscription_metadata_tombstone(self.group_id),
        ]


def _stale_epoch(member: ConsumerMember) -> ApiError:
    """Return the error of a request in a stale epoch: ILLEGAL_GENERATION for classic members."""
    code = ErrorCode.ILLEGAL_GENERATION if member.classic else ErrorCode.STALE_MEMBER_EPOCH
    return ApiError(code, f"The expected member epoch is {member.member_epoch}.")


Response = messages.ConsumerGroupDescribeResponse
CLASSIC_MEMBER = 0
CONSUMER_MEMBER = 1


def describe_group(group: ConsumerGroup, default_assignor: str, image: MetadataImage) -> Response.DescribedGroup:
    """Return the group for ConsumerGroupDescribe."""
    return Response.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or default_assignor,
        members=[
            _describe_member(group.members[member_id], group.targets.get(member_id, NO_PARTITIONS), image)
            for member_id in group.members.in_order()
        ],
    )


def _describe_member(member: ConsumerMember, target: Partitions, image: MetadataImage) -> Response.Member:
    names = member.names_in_order
    return Response.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=hash_order(names, string_hash, copied_capacity(len(names))),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_owned(member, image),
        target_assignment=_assignment(target.items(), image),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _owned(member: ConsumerMember, image: MetadataImage) -> Response.Assignment:
    """Return the partitions that the member owns, including those pending revocation."""
    owned: dict[bytes, list[int]] = {}
    for epochs in (member.assigned, member.pending_revocation):
        for topic_id, numbers in epochs_in_order(epochs):
            owned.setdefault(topic_id, []).extend(numbers)
    return _assignment(owned.items(), image)


def _assignment(partitions: Iterable[tuple[bytes, Sequence[int]]], image: MetadataImage) -> Response.Assignment:
    names = image.topic_names
    return Response.Assignment(
        [
            Response.TopicPartitions(topic_id, names[topic_id], list(numbers))
            for topic_id, numbers in partitions
            if topic_id in names
        ]
    )
