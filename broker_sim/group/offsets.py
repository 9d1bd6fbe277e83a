"""The committed offsets of one partition's groups; mirrors `OffsetMetadataManager.Offsets`.

Two views, as Kafka's timeline has: the latest, which expiry and deletion work on, and the committed one
of OffsetFetch, which shows only what the in-sync replicas have. Values are kept until the record of the
next one is below the high watermark.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.hash_order.hash_codes import integer_hash, string_hash
from broker_sim.hash_order.java_order import TimelineMap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.group import record_messages


class CommittedOffset(NamedTuple):
    """What a group has committed for one partition; mirrors `OffsetAndMetadata`."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = -1
    """Wall clock; -1 unless the request (versions 2 to 4) named a retention of its own."""
    topic_id: bytes = bytes(16)
    record_offset: int = -1
    """Where its record is in the log. A transaction's stands before the marker that committed it."""


def offset_from_record(value: record_messages.OffsetCommitValue, record_offset: int) -> CommittedOffset:
    """Return what the record at that offset of the log holds; mirrors `OffsetAndMetadata.fromRecord`."""
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
        record_offset,
    )


class _Version(NamedTuple):
    """A value, None for a removal, from the record or marker at that offset of the log."""

    log_offset: int
    value: CommittedOffset | None


_Partition = tuple[str, int]


class OffsetStore:
    """The offsets by group, topic and partition, each with its versions, oldest first."""

    __slots__ = ("_groups", "_removed")

    def __init__(self) -> None:
        self._groups: dict[str, dict[_Partition, list[_Version]]] = {}
        self._removed: deque[tuple[int, str, _Partition]] = deque()

    def replay(
        self,
        key: record_messages.OffsetCommitKey,
        value: record_messages.OffsetCommitValue | None,
        record_offset: int,
        high_watermark: int,
    ) -> None:
        """Take in a record that is at `record_offset` in the log; None removes the offset."""
        committed = None if value is None else offset_from_record(value, record_offset)
        self._put(key.group, (key.topic, key.partition), committed, record_offset, high_watermark)

    def materialise(
        self, key: tuple[str, str, int], committed: CommittedOffset, marker_offset: int, high_watermark: int
    ) -> bool:
        """Take in what the marker at that offset commits for a group, topic and partition.

        Returns False, and changes nothing, where a commit after the transaction's own is there already.
        """
        existing = self.get(*key)
        if existing is not None and existing.record_offset > committed.record_offset:
            return False
        group_id, topic, partition = key
        self._put(group_id, (topic, partition), committed, marker_offset, high_watermark)
        return True

    def _put(
        self, group_id: str, name: _Partition, committed: CommittedOffset | None, log_offset: int, high_watermark: int
    ) -> None:
        versions = self._groups.setdefault(group_id, {}).setdefault(name, [])
        versions.append(_Version(log_offset, committed))
        if committed is None:
            self._removed.append((log_offset, group_id, name))
        while len(versions) > 1 and versions[1].log_offset < high_watermark:
            del versions[0]
        self._forget_removed(high_watermark)

    def _forget_removed(self, high_watermark: int) -> None:
        """Forget what was removed by records that are below the high watermark."""
        while self._removed and self._removed[0][0] < high_watermark:
            log_offset, group_id, name = self._removed.popleft()
            partitions = self._groups.get(group_id, {})
            versions = partitions.get(name)
            if versions is not None and versions[-1].log_offset == log_offset:
                del partitions[name]
                if not partitions:
                    del self._groups[group_id]

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return the latest offset, or None."""
        versions = self._groups.get(group_id, {}).get((topic, partition))
        return versions[-1].value if versions else None

    def get_committed(self, group_id: str, topic: str, partition: int, high_watermark: int) -> CommittedOffset | None:
        """Return the newest offset whose record is below the high watermark, or None."""
        versions = self._groups.get(group_id, {}).get((topic, partition))
        return _value_below(versions, high_watermark) if versions else None

    def latest_of(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Iterate over the latest offsets of a group by topic and partition."""
        for (topic, partition), versions in self._groups.get(group_id, {}).items():
            value = versions[-1].value
            if value is not None:
                yield topic, partition, value

    def committed_of(self, group_id: str, high_watermark: int) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Iterate over the group's offsets whose records are below the high watermark.

        Topics and their partitions come in the order of Kafka's hash tables.
        """
        by_topic: TimelineMap[str, TimelineMap[int, CommittedOffset]] = TimelineMap(string_hash)
        for (topic, partition), versions in self._groups.get(group_id, {}).items():
            value = _value_below(versions, high_watermark)
            if value is not None:
                if topic not in by_topic:
                    by_topic.put(topic, TimelineMap(integer_hash))
                by_topic[topic].put(partition, value)
        for topic in by_topic.in_order():
            for partition in by_topic[topic].in_order():
                yield topic, partition, by_topic[topic][partition]

    def group_ids(self) -> list[str]:
        """Return the groups that have offsets in either view."""
        return list(self._groups)

    def count(self) -> int:
        """Return how many offsets there are, in the latest view."""
        return sum(
            versions[-1].value is not None for partitions in self._groups.values() for versions in partitions.values()
        )


def _value_below(versions: list[_Version], high_watermark: int) -> CommittedOffset | None:
    for version in reversed(versions):
        if version.log_offset < high_watermark:
            return version.value
    return None
