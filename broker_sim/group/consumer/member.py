"""A member of a group of the consumer protocol; mirrors `ConsumerGroupMember`.

Members are immutable: each change creates a new one with `dataclasses.replace`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.group.modern.assigned_group import LEAVE_GROUP_EPOCH, LEAVE_GROUP_STATIC_EPOCH, MemberState
from broker_sim.group.modern.assignment import NO_EPOCHS, Epochs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from broker_sim.group import record_messages


FIRST_STATE: Final = 0
"""Number of the state STABLE in records."""


class ClassicMetadata(NamedTuple):
    """The session and protocols of a member of the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Names and metadata of the supported protocols, in order of preference."""


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member; `subscribed_topic_regex` is "" if it has no regular expression."""

    member_id: str
    member_epoch: int = 0
    previous_member_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: frozenset[str] = frozenset()
    names_in_order: tuple[str, ...] = field(default=(), compare=False)
    """Subscribed topic names in the order of the request or record."""
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: Epochs = field(default_factory=lambda: NO_EPOCHS)
    pending_revocation: Epochs = field(default_factory=lambda: NO_EPOCHS)
    """Partitions that the member must revoke, but may still own."""
    classic: ClassicMetadata | None = None
    """Metadata of a member that uses the classic protocol, otherwise None."""

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether the member uses the classic protocol (JoinGroup, SyncGroup, Heartbeat)."""
        return self.classic is not None

    @property
    def is_revoking(self) -> bool:
        """Whether the member must revoke partitions before it gets the epoch of its target."""
        return self.state is MemberState.UNREVOKED

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        """Return whether the member's assignment equals the target of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == assignment_epoch

    def with_topic_names(self, names: Sequence[str]) -> ConsumerMember:
        """Return the member with this subscription."""
        return replace(self, subscribed_topic_names=frozenset(names), names_in_order=tuple(dict.fromkeys(names)))

    def with_epoch(self, member_epoch: int) -> ConsumerMember:
        """Return the member with this epoch; the current epoch becomes the previous one."""
        return replace(self, member_epoch=member_epoch, previous_member_epoch=self.member_epoch)

    def assignment_epoch(self, topic_id: bytes, partition: int) -> int | None:
        """Return the epoch in which the member got the partition, None if it does not own it."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        if epoch is None:
            epoch = self.pending_revocation.get(topic_id, {}).get(partition)
        return epoch

    def left_temporarily(self) -> ConsumerMember:
        """Return the static member after leaving with epoch -2: it keeps its assignment."""
        return replace(
            self,
            member_epoch=LEAVE_GROUP_STATIC_EPOCH,
            pending_revocation=NO_EPOCHS,
            assigned={topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in self.assigned.items()},
        )

    def without_assignment(self) -> ConsumerMember:
        """Return the member after leaving permanently."""
        return replace(
            self,
            member_epoch=LEAVE_GROUP_EPOCH,
            previous_member_epoch=LEAVE_GROUP_EPOCH,
            assigned=NO_EPOCHS,
            pending_revocation=NO_EPOCHS,
        )

    def with_metadata(self, value: record_messages.ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        """Return the member with the subscription in a record."""
        classic = value.classic_member_metadata
        return replace(
            self.with_topic_names(value.subscribed_topic_names),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            subscribed_topic_regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=None
            if classic is None
            else ClassicMetadata(
                classic.session_timeout_ms, tuple((p.name, bytes(p.metadata)) for p in classic.supported_protocols)
            ),
        )

    def with_assignment(self, value: record_messages.ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        """Return the member with the assignment in a record."""
        default_epoch = max(value.member_epoch, 0)
        return replace(
            self,
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState.from_record(value.state, FIRST_STATE),
            assigned=_epochs(value.assigned_partitions, default_epoch),
            pending_revocation=_epochs(value.partitions_pending_revocation, default_epoch),
        )


def _epochs(
    topics: Iterable[record_messages.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions], default_epoch: int
) -> Epochs:
    """Return the partitions of a record, with `default_epoch` for records from before Kafka 4.2."""
    epochs_by_topic: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [default_epoch] * len(topic.partitions)
        epochs_by_topic[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return epochs_by_topic
