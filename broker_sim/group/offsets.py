"""The committed offsets of one partition's groups, and those of transactions that are not over yet.

Mirrors `OffsetMetadataManager.Offsets` and its `pendingTransactionalOffsets`.

Two views, as Kafka's timeline has: the latest, which expiry and deletion work on, and the committed one
of OffsetFetch, which shows only what the in-sync replicas have. Values are kept until the record of the
next one is below the high watermark.

A transaction's offsets are in the log from TxnOffsetCommit on, but count only when its marker commits
them. Only the latest view of them is kept: require_stable, deletion and expiry work on that.
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
    """One partition of a commit."""

    topic: str
    topic_id: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


class OffsetCommit(NamedTuple):
    """An OffsetCommit or TxnOffsetCommit: who commits, in which version of the API, and what."""

    group_id: str
    member_id: str
    group_instance_id: str | None
    generation_id_or_member_epoch: int
    api_version: int
    offsets: Sequence[OffsetToCommit]
    retention_time_ms: int = NO_RETENTION


class CommittedOffset(NamedTuple):
    """The offset that a group has committed for one partition; mirrors `OffsetAndMetadata`."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = -1
    """Wall clock; -1 unless the request (versions 2 to 4) named a retention of its own."""
    topic_id: bytes = bytes(16)
    record_offset: int = -1
    """Offset of its record in the log. A transaction's stands before the marker that committed it."""


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


OffsetKey = tuple[str, str, int]
"""A group, a topic and a partition."""


class TransactionalOffsets:
    """The offsets by producer id, and which producers have some open for a partition."""

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
        """Take in a record of the producer's transaction, which is at that offset in the log."""
        name = (key.group, key.topic, key.partition)
        self._producers.setdefault(producer_id, {})[name] = offset_from_record(value, record_offset)
        partitions = self._open.setdefault(key.group, {})
        partitions.setdefault((key.topic, key.partition), set()).add(producer_id)

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Forget what all transactions have for the partition: a tombstone came after it."""
        for producer_id in self._open.get(group_id, {}).get((topic, partition), ()):
            del self._producers[producer_id][group_id, topic, partition]
        self._close(group_id, (topic, partition))

    def end(self, producer_id: int) -> dict[OffsetKey, CommittedOffset]:
        """Forget the producer's transaction, whose marker came, and return its offsets."""
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
        """Whether a transaction has offsets of the group."""
        return group_id in self._open

    def contains(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction has an offset of that partition."""
        return (topic, partition) in self._open.get(group_id, {})

    def partitions_of(self, group_id: str) -> list[tuple[str, int]]:
        """Return the topics and partitions of the group that transactions have offsets of."""
        return list(self._open.get(group_id, {}))

    def items(self) -> Iterator[tuple[OffsetKey, CommittedOffset]]:
        """Iterate over all offsets, transaction by transaction."""
        for offsets in self._producers.values():
            yield from offsets.items()
