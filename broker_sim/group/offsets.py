"""The committed offsets of a shard's groups, and the pending offsets of open transactions.

Mirrors `OffsetMetadataManager.Offsets` and its `pendingTransactionalOffsets`.

Like Kafka's timeline, there are two views: the latest, used by expiration and deletion, and the committed view
of OffsetFetch, which only shows replicated records. A value is kept until the record of the next one is below
the high watermark.

The offsets of a transaction are written by TxnOffsetCommit, but become visible only when its marker commits them.
They only have the latest view, which require_stable, deletion and expiration use.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.hash_order.hash_codes import integer_hash, string_hash
from broker_sim.hash_order.java_order import TimelineMap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.group import record_messages


NO_RETENTION: Final = -1


class OffsetToCommit(NamedTuple):
    """The offset of one partition in a commit request."""

    topic: str
    topic_id: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


class OffsetCommit(NamedTuple):
    """An OffsetCommit or TxnOffsetCommit request for one group."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id_or_member_epoch: int
    api_version: int
    offsets: Sequence[OffsetToCommit]
    retention_time_ms: int = NO_RETENTION


class CommittedOffset(NamedTuple):
    """An offset committed by a group for one partition; mirrors `OffsetAndMetadata`."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = -1
    """Wall-clock time; -1 unless the request (versions 2 to 4) set its own retention."""
    topic_id: bytes = bytes(16)
    record_offset: int = -1
    """Log offset of its record; in a transaction, it is below that of the marker."""


def offset_from_record(value: record_messages.OffsetCommitValue, record_offset: int) -> CommittedOffset:
    """Return the offset in the record at that log offset; mirrors `OffsetAndMetadata.fromRecord`."""
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
    """A value set by the record or marker at that log offset; None if it was removed."""

    log_offset: int
    value: CommittedOffset | None


_Partition = tuple[str, int]


class OffsetStore:
    """Offsets by group, topic and partition, each with its versions, oldest first."""

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
        """Apply the record at `record_offset`; a value of None removes the offset."""
        committed = None if value is None else offset_from_record(value, record_offset)
        self._put(key.group, (key.topic, key.partition), committed, record_offset, high_watermark)

    def materialize(
        self, key: tuple[str, str, int], committed: CommittedOffset, marker_offset: int, high_watermark: int
    ) -> bool:
        """Apply a transaction's offset that the marker at `marker_offset` commits.

        Returns False, and changes nothing, if a later commit exists.
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
        self._drop_removed(high_watermark)

    def _drop_removed(self, high_watermark: int) -> None:
        """Drop offsets whose removal is committed."""
        while self._removed and self._removed[0][0] < high_watermark:
            log_offset, group_id, name = self._removed.popleft()
            partitions = self._groups.get(group_id, {})
            versions = partitions.get(name)
            if versions is not None and versions[-1].log_offset == log_offset:
                del partitions[name]
                if not partitions:
                    del self._groups[group_id]

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        """Return the offset in the latest view, or None."""
        versions = self._groups.get(group_id, {}).get((topic, partition))
        return versions[-1].value if versions else None

    def get_committed(self, group_id: str, topic: str, partition: int, high_watermark: int) -> CommittedOffset | None:
        """Return the offset in the committed view, or None."""
        versions = self._groups.get(group_id, {}).get((topic, partition))
        return _value_below(versions, high_watermark) if versions else None

    def latest_of(self, group_id: str) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yield the topics, partitions and offsets of a group in the latest view."""
        for (topic, partition), versions in self._groups.get(group_id, {}).items():
            value = versions[-1].value
            if value is not None:
                yield topic, partition, value

    def committed_of(self, group_id: str, high_watermark: int) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yield the topics, partitions and offsets of a group in the committed view.

        Topics and partitions are in the order of Kafka's hash tables.
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
        """Return the ids of groups with offsets in either view."""
        return list(self._groups)

    def count(self) -> int:
        """Return the number of offsets in the latest view."""
        return sum(
            versions[-1].value is not None for partitions in self._groups.values() for versions in partitions.values()
        )


def _value_below(versions: list[_Version], high_watermark: int) -> CommittedOffset | None:
    for version in reversed(versions):
        if version.log_offset < high_watermark:
            return version.value
    return None


OffsetKey = tuple[str, str, int]
"""Group id, topic and partition."""


class TransactionalOffsets:
    """Pending offsets by producer id, and the producers with pending offsets by partition."""

    __slots__ = ("_open", "_producers")

    def __init__(self) -> None:
        self._producers: dict[int, dict[OffsetKey, CommittedOffset]] = {}
        self._open: dict[str, dict[tuple[str, int], set[int]]] = {}

    def replay(
        self,
        producer_id: int,
        key: record_messages.OffsetCommitKey,
        value: record_messages.OffsetCommitValue,
        record_offset: int,
    ) -> None:
        """Apply the record at `record_offset`, which belongs to the producer's transaction."""
        name = (key.group, key.topic, key.partition)
        self._producers.setdefault(producer_id, {})[name] = offset_from_record(value, record_offset)
        partitions = self._open.setdefault(key.group, {})
        partitions.setdefault((key.topic, key.partition), set()).add(producer_id)

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Remove all transactions' offsets of the partition, because of a later tombstone."""
        for producer_id in self._open.get(group_id, {}).get((topic, partition), ()):
            del self._producers[producer_id][group_id, topic, partition]
        self._close(group_id, (topic, partition))

    def end(self, producer_id: int) -> dict[OffsetKey, CommittedOffset]:
        """Remove and return the offsets of the producer's transaction, whose marker is written."""
        offsets = self._producers.pop(producer_id, {})
        for group_id, topic, partition in offsets:
            producers = self._open[group_id][topic, partition]
            producers.remove(producer_id)
            if not producers:
                self._close(group_id, (topic, partition))
        return offsets

    def _close(self, group_id: str, name: tuple[str, int]) -> None:
        partitions = self._open.get(group_id, {})
        partitions.pop(name, None)
        if not partitions:
            self._open.pop(group_id, None)

    def has_group(self, group_id: str) -> bool:
        """Whether an open transaction has offsets of the group."""
        return group_id in self._open

    def contains(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has an offset of the partition."""
        return (topic, partition) in self._open.get(group_id, {})

    def partitions_of(self, group_id: str) -> list[tuple[str, int]]:
        """Return the group's topics and partitions with offsets in open transactions."""
        return list(self._open.get(group_id, {}))

    def items(self) -> Iterator[tuple[OffsetKey, CommittedOffset]]:
        """Yield all pending offsets, transaction by transaction."""
        for offsets in self._producers.values():
            yield from offsets.items()
