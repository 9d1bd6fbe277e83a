"""The keys that operations of groups are watched under; mirrors `DelayedOperationKey` of Kafka 3."""

from typing import NamedTuple


class GroupKey(NamedTuple):
    """Operations of a group as a whole: joins, syncs."""

    group_id: str

    def __str__(self) -> str:
        return self.group_id


class MemberKey(NamedTuple):
    """Operations of one member: its heartbeat."""

    group_id: str
    member_id: str

    def __str__(self) -> str:
        return f"{self.group_id}-{self.member_id}"
