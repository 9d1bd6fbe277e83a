"""Offsets of transactions that are not over yet; mirrors `pendingTransactionalOffsets` of `OffsetMetadataManager`.

A transaction's offsets are in the log from TxnOffsetCommit on, but count only when its marker commits
them. Only the latest view is kept: require_stable, deletion and expiry, which ask, work on that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.group.offsets import offset_from_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.group import record_messages
    from broker_sim.group.offsets import CommittedOffset

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
