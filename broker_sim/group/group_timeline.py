"""The groups of a shard in two views; mirrors the `TimelineHashMap` of groups in `GroupMetadataManager`.

Operations use the newest view. DescribeGroups, ConsumerGroupDescribe, ListGroups and OffsetFetch use the committed
view: it contains a group from when the record that creates it is committed until the record that deletes it is. So
a group may be "not found" for a moment after its first JoinGroup was answered, and for as long as a follower in the
ISR does not fetch.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.group.group import Group
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import TimelineMap

if TYPE_CHECKING:
    from broker_sim.coordinator.result import ShardRuntime


class _Change(NamedTuple):
    """A change of one group id, with the group before it. It is committed when `log_offset` is."""

    log_offset: int
    before: Group | None


class GroupTimeline(TimelineMap[str, Group]):
    """The newest view: groups by id. Write with `put`, `remove` and `revert` only."""

    __slots__ = ("_changed", "_changes", "_runtime")

    def __init__(self, runtime: ShardRuntime) -> None:
        super().__init__(string_hash)
        self._runtime = runtime
        self._changes: dict[str, list[_Change]] = {}
        """Uncommitted changes by group id, oldest first."""
        self._changed: deque[tuple[int, str]] = deque()
        """Log offsets and group ids of all uncommitted changes, oldest first."""

    def put(self, group_id: str, group: Group) -> None:
        """Add a group, replacing any other with its id."""
        self._save_current(group_id)
        super().put(group_id, group)

    def remove(self, group_id: str) -> Group | None:
        """Remove and return a group; None if there is none."""
        if group_id not in self:
            return None
        self._save_current(group_id)
        return self.pop(group_id)

    def revert(self, group_id: str) -> None:
        """Undo the newest change of a group id, whose record could not be appended."""
        before = self._changes[group_id].pop().before
        # Otherwise entries would accumulate with each retry for as long as nothing can be appended.
        for place in reversed(range(len(self._changed))):
            if self._changed[place][1] == group_id:
                del self._changed[place]
                break
        if not self._changes[group_id]:
            del self._changes[group_id]
        if before is None:
            self.pop(group_id, None)
        else:
            super().put(group_id, before)

    def committed(self, group_id: str) -> Group | None:
        """Return the group in the committed view, or None."""
        high_watermark = self._runtime.high_watermark
        for change in self._changes.get(group_id, ()):
            if change.log_offset >= high_watermark:
                return change.before
        return self.get(group_id)

    def all_committed(self) -> list[Group]:
        """Return all groups in the committed view, in the order of Kafka's table; those being removed come last."""
        self._drop_committed_changes()
        if not self._changes:
            return [self[group_id] for group_id in self.in_order()]
        groups = map(self.committed, dict.fromkeys([*self.in_order(), *self._changes]))
        return [group for group in groups if group is not None]

    def _save_current(self, group_id: str) -> None:
        """Save the current group of the id before it changes."""
        self._drop_committed_changes()
        log_offset = self._runtime.change_offset
        self._changes.setdefault(group_id, []).append(_Change(log_offset, self.get(group_id)))
        self._changed.append((log_offset, group_id))

    def _drop_committed_changes(self) -> None:
        high_watermark = self._runtime.high_watermark
        while self._changed and self._changed[0][0] < high_watermark:
            log_offset, group_id = self._changed.popleft()
            changes = self._changes.get(group_id, [])
            if changes and changes[0].log_offset <= log_offset:
                del changes[0]
            if not changes:
                self._changes.pop(group_id, None)
