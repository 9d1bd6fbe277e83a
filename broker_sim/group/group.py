"""A group of any kind as the coordinator sees it; mirrors `org.apache.kafka.coordinator.group.Group`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from broker_sim.group.offsets import OffsetCommit
    from broker_sim.group.records import GroupRecord
    from broker_sim.protocol import messages


class GroupClient(NamedTuple):
    """The client of a request, as a description of its group shows it, and the API's version."""

    client_id: str
    client_host: str
    api_version: int
    hidden_topics: Callable[[Iterable[str]], AbstractSet[str]] = frozenset[str]().intersection
    """Returns those of the topics that the client may not describe."""


CLASSIC = "classic"
CONSUMER = "consumer"
SHARE = "share"
STREAMS = "streams"
UNKNOWN_MEMBER_ID = ""
"""Member id in a first join, before the coordinator has given one."""
KNOWN_MEMBER_ID_VERSION = 4
"""The version of JoinGroup from which on a dynamic member is given its id first (KIP-394)."""
NO_TIMEOUT = -1
"""The rebalance timeout in a request that does not set one."""


class OffsetExpiration(NamedTuple):
    """The time from which the retention of a group's offsets runs; mirrors `OffsetExpirationConditionImpl`.

    `base_timestamp_ms` (wall clock) is None where each offset's retention runs from its commit.
    """

    base_timestamp_ms: int | None


class CommitPartitionValidator(Protocol):
    """Checks one partition of a commit, after the commit as a whole."""

    def __call__(self, topic: str, topic_id: bytes, partition: int) -> None:
        """Raise ApiError STALE_MEMBER_EPOCH where the member may not commit for the partition."""


class Group(Protocol):
    """A group of members of any kind. Checks raise `ApiError`."""

    @property
    def should_expire(self) -> bool:
        """Whether it is deleted once it has neither members nor offsets for long enough."""

    @property
    def group_id(self) -> str:
        """Its id."""

    @property
    def group_type(self) -> str:
        """`classic`, `consumer`, `share` or `streams`, as ListGroups calls it."""

    @property
    def protocol_type(self) -> str:
        """`consumer` for consumers, "" for a simple group; ListGroups and DescribeGroups show it."""

    @property
    def state_name(self) -> str:
        """Its state as ListGroups calls it, such as `Stable`."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""

    @property
    def member_count(self) -> int:
        """Number of members."""

    def validate_offset_commit(self, commit: OffsetCommit, is_transactional: bool) -> CommitPartitionValidator | None:
        """Check that this member may commit: UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION and others.

        Returns the check of its partitions, None without one.
        """

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Check that this member may fetch offsets: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH."""

    def validate_offset_delete(self) -> None:
        """Check that offsets may be deleted: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""

    def validate_delete_group(self) -> None:
        """Check that the group may be deleted: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""

    def is_subscribed_to_topic(self, topic: str) -> bool:
        """Whether a member is subscribed, so that the topic's offsets must stay."""

    def describe(self) -> messages.DescribeGroupsResponse.DescribedGroup | None:
        """Return what DescribeGroups answers; None for a group of another protocol."""

    def tombstones(self) -> Sequence[GroupRecord]:
        """Return the records that delete the group, without its offsets."""

    def offset_expiration(self) -> OffsetExpiration | None:
        """Return from when on offsets expire, or None while they do not."""
