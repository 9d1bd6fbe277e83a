"""What a group is whose members send heartbeats and whose coordinator assigns.

Mirrors what `ModernGroup` and `StreamsGroup` have in common. All of it is made from records: whoever writes
one replays it here. Three epochs tell how far the group is:
* the group epoch grows with every change of what its members ask for, of the members, or of topics
* the assignment epoch is the group epoch that the target was computed for
* a member's epoch is the assignment epoch that it has reconciled to

Deliberate difference: what a group is made of is shown as it is now; Kafka describes and lists it as it is
committed. Whether there is a group is told as it is committed (`GroupTimeline`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import TimelineMap

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

FIRST_EPOCH: Final = 1
LEAVE_GROUP_EPOCH: Final = -1
"""The epoch of a member that leaves for good."""
NO_TARGET_EPOCH: Final = -1

M = TypeVar("M")
T = TypeVar("T")


class TargetMetadata(Protocol):
    """The value of the record that tells of which epoch a target is, of any kind of group."""

    assignment_epoch: int
    assignment_timestamp: int


class AssignedGroup(ABC, Generic[M, T]):
    """A group of members `M` that have targets `T`."""

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.group_epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """When the target was computed (wall clock); 0 if never."""
        self.members: TimelineMap[str, M] = TimelineMap(string_hash)
        self.targets: dict[str, T] = {}
        self._refreshed_epoch: int | None = None

    # -- look-up --------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    @property
    def member_count(self) -> int:
        """How many members it has."""
        return len(self.members)

    def member(self, member_id: str) -> M:
        """Return the member; `ApiError` UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def may_compute_target(self, interval_ms: int, now_ms: int) -> bool:
        """Return whether the shortest time between two targets is over (wall clock)."""
        computed_ms = self.assignment_timestamp_ms
        return not computed_ms or not interval_ms or now_ms >= computed_ms + interval_ms

    @abstractmethod
    def depends_on(self, topics: AbstractSet[str]) -> bool:
        """Return whether a change of one of these topics may change the target."""

    # -- the topics' metadata ---------------------------------------------------------------------

    @property
    def has_metadata_expired(self) -> bool:
        """Whether the topics have to be looked at again; also if what was then seen was not written."""
        return self._refreshed_epoch is None or self.group_epoch < self._refreshed_epoch

    def metadata_refreshed(self, group_epoch: int) -> None:
        """Note that the topics were looked at, which made this the group epoch."""
        self._refreshed_epoch = group_epoch

    def request_metadata_refresh(self) -> None:
        """Ask for a look at the topics with the next heartbeat: one of them has changed."""
        self._refreshed_epoch = None

    # -- changes --------------------------------------------------------------------------------

    def update_target_epoch(self, value: TargetMetadata | None) -> None:
        """Take the epoch and the time of the target from its record; None if the record was deleted."""
        if value is None:
            self.assignment_epoch, self.assignment_timestamp_ms = NO_TARGET_EPOCH, 0
        else:
            self.assignment_epoch = value.assignment_epoch
            self.assignment_timestamp_ms = value.assignment_timestamp

    def update_target(self, member_id: str, target: T) -> None:
        """Set a member's target."""
        self.targets[member_id] = target

    def remove_target(self, member_id: str) -> None:
        """Remove a member's target."""
        self.targets.pop(member_id, None)
