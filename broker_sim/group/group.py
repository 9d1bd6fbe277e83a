"""The interface of groups of all types; mirrors `org.apache.kafka.coordinator.group.Group`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from broker_sim.group.offsets import OffsetCommit
    from broker_sim.group.records import GroupRecord
    from broker_sim.protocol import messages


class GroupClient(NamedTuple):
    """The client of a request, as shown in group descriptions, and the request's API version."""

    client_id: str
    client_host: str
    api_version: int
    hidden_topics: Callable[[Iterable[str]], AbstractSet[str]] = frozenset[str]().intersection
    """Returns the subset of topics that the client may not describe."""


CLASSIC = "classic"
CONSUMER = "consumer"
SHARE = "share"
STREAMS = "streams"
UNKNOWN_MEMBER_ID = ""
"""Member id in a first join, before the coordinator has assigned one."""
KNOWN_MEMBER_ID_VERSION = 4
"""First version of JoinGroup in which a dynamic member must rejoin with its assigned id (KIP-394)."""
NO_TIMEOUT = -1
"""Rebalance timeout in a request that does not set one."""


class OffsetExpiration(NamedTuple):
    """The start of the retention of a group's offsets; mirrors `OffsetExpirationConditionImpl`.

    If `base_timestamp_ms` (wall clock) is None, each offset's retention starts at its commit.
    """

    base_timestamp_ms: int | None


class CommitPartitionValidator(Protocol):
    """Checks one partition of an offset commit, after the commit as a whole."""

    def __call__(self, topic: str, topic_id: bytes, partition: int) -> None:
        """Raise ApiError STALE_MEMBER_EPOCH if the member may not commit for the partition."""


class Group(Protocol):
    """A group of any type. Checks raise `ApiError`."""

    @property
    def should_expire(self) -> bool:
        """Whether the group is deleted when it has no members and its offsets have expired."""

    @property
    def group_id(self) -> str:
        """The group id."""

    @property
    def group_type(self) -> str:
        """The type in ListGroups: `classic`, `consumer`, `share` or `streams`."""

    @property
    def protocol_type(self) -> str:
        """The protocol type in ListGroups and DescribeGroups: `consumer` for consumers, "" for a simple group."""

    @property
    def state_name(self) -> str:
        """The state in ListGroups, such as `Stable`."""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    @property
    def member_count(self) -> int:
        """Number of members."""

    def validate_offset_commit(self, commit: OffsetCommit, is_transactional: bool) -> CommitPartitionValidator | None:
        """Check that the member may commit: UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION and others.

        Returns a check for each partition, or None if none is needed.
        """

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Check that the member may fetch offsets: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH."""

    def validate_offset_delete(self) -> None:
        """Check that offsets may be deleted: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""

    def validate_delete_group(self) -> None:
        """Check that the group may be deleted: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """Whether a member subscribes to the topic, so that its offsets must be kept."""

    def describe(self) -> messages.DescribeGroupsResponse.DescribedGroup | None:
        """Return the group for DescribeGroups; None if it is not a classic group."""

    def tombstones(self) -> Sequence[GroupRecord]:
        """Return the tombstones of the group, without those of its offsets."""

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return the start of the offsets' retention, or None while they do not expire."""
