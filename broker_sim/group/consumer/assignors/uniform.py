"""The uniform assignor, and its homogeneous case: all members subscribe to the same topics.

Mirrors `UniformHomogeneousAssignmentBuilder`: each member keeps its partitions up to its quota, and the rest
goes to members below theirs. With 11 partitions and 3 members the quotas are 4, 4 and 3; members that already
have 4 keep them, the others get the extra partitions in the order of the member table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.consumer.assignors.uniform_heterogeneous import assign_heterogeneous
from broker_sim.group.modern.assignment import AssignorError, Draft
from broker_sim.hash_order.hash_codes import uuid_hash
from broker_sim.hash_order.java_order import copied_capacity, hash_order

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.group.consumer.assignors.spec import GroupSpec
    from broker_sim.group.modern.assignment import Partitions


def assign_homogeneous(spec: GroupSpec) -> dict[str, Partitions]:
    """Return the new target of every member; empty if there are no topics."""
    first = next(iter(spec.members.values()))
    topic_ids = hash_order(first.topic_ids, uuid_hash, copied_capacity(first.subscribed_size))
    return _Builder(spec, topic_ids).build() if topic_ids else {}


class _Builder:
    def __init__(self, spec: GroupSpec, topic_ids: Sequence[bytes]) -> None:
        self._spec = spec
        self._subscribed = frozenset(topic_ids)
        self._drafts = {member_id: Draft(m.target) for member_id, m in spec.members.items()}
        self._unfilled: list[tuple[str, int]] = []
        """Members below their quota, and their numbers of missing partitions."""
        total = 0
        self._unassigned: list[tuple[bytes, int]] = []
        for topic_id in topic_ids:
            count = spec.partition_count(topic_id)
            total += count
            self._unassigned.extend(
                (topic_id, number) for number in range(count) if not spec.is_assigned(topic_id, number)
            )
        self._quota, self._extra = divmod(total, len(spec.members))
        """Number of partitions per member, and number of members that get one more."""

    def build(self) -> dict[str, Partitions]:
        """Return the new target of every member."""
        count = len(self._spec.members)
        for index, member_id in enumerate(self._spec.members):
            takes_extra = self._extra > 0
            quota = self._revoke(member_id, self._quota + takes_extra)
            # The last members of the table must take the remaining extra partitions.
            if quota > 0 and takes_extra and count - index > self._extra:
                quota -= 1
                takes_extra = False
            if quota > 0:
                self._unfilled.append((member_id, quota))
            if takes_extra:
                self._extra -= 1
        self._assign_rest()
        return {member_id: draft.finish() for member_id, draft in self._drafts.items()}

    def _revoke(self, member_id: str, quota: int) -> int:
        """Revoke partitions above the quota or not subscribed to; return the number of missing partitions."""
        draft = self._drafts[member_id]
        for topic_id, partitions in self._spec.members[member_id].target.items():
            if topic_id not in self._subscribed:
                del draft.changed[topic_id]
                continue
            for number in partitions[quota:]:
                draft.remove(topic_id, number)
                self._unassigned.append((topic_id, number))
            quota = max(quota - len(partitions), 0)
        return quota

    def _assign_rest(self) -> None:
        at = 0
        for member_id, quota in self._unfilled:
            draft = self._drafts[member_id]
            draft.copy()
            for topic_id, number in self._unassigned[at : at + quota]:
                draft.add(topic_id, number)
            at += quota
        if at < len(self._unassigned):
            raise AssignorError("Partitions were left unassigned")


def assign_uniformly(spec: GroupSpec) -> dict[str, Partitions]:
    """Return the new target of every member. Raises `AssignorError` for a topic that is not there."""
    if not spec.members:
        return {}
    return assign_homogeneous(spec) if spec.homogeneous else assign_heterogeneous(spec)
