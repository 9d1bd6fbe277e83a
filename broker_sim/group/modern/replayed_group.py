"""Which group a record of a kind of groups is replayed into; mirrors `getOrMaybeCreatePersistedConsumerGroup`.

Kafka has the same for streams groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from broker_sim.group.group import Group
from broker_sim.group.records import group_id_of

if TYPE_CHECKING:
    from broker_sim.group.group_timeline import GroupTimeline
    from broker_sim.group.records import GroupRecord


class NewGroup(Group, Protocol):
    """A group that is made of its id alone."""

    def __init__(self, group_id: str) -> None: ...


G = TypeVar("G", bound=NewGroup)


def replayed_group(groups: GroupTimeline, record: GroupRecord, kind: type[G]) -> G | None:
    """Return the group of that kind that a record is of, a new one if needed.

    None if the record changes nothing: it removes what is not there, or a group of another kind has the id.
    """
    group_id = group_id_of(record)
    group = groups.get(group_id)
    if isinstance(group, kind):
        return group
    # A simple group, which only has offsets, becomes one of this kind.
    if record.value is None or (group is not None and not group.is_empty):
        return None
    made = kind(group_id)
    groups.put(group_id, made)
    return made
