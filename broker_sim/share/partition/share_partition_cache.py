"""The share partitions that a broker serves; mirrors `SharePartitionCache`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.share.partition.share_partition import SharePartition
    from broker_sim.share.share_state import SharePartitionKey


class SharePartitionCache:
    """Share partitions by key, and by group."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[SharePartitionKey, None]] = {}
        self._partitions: dict[SharePartitionKey, SharePartition] = {}

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[SharePartition]:
        return iter(self._partitions.values())

    def get(self, key: SharePartitionKey) -> SharePartition | None:
        """Return the share partition, if it is served."""
        return self._partitions.get(key)

    def add(self, share_partition: SharePartition) -> None:
        """Serve it from now on."""
        key = share_partition.key
        self._partitions[key] = share_partition
        self._groups.setdefault(key.group_id, {})[key] = None

    def remove(self, key: SharePartitionKey) -> SharePartition | None:
        """Serve it no more; return it if it was served."""
        share_partition = self._partitions.pop(key, None)
        if share_partition is not None:
            keys = self._groups[key.group_id]
            del keys[key]
            if not keys:
                del self._groups[key.group_id]
        return share_partition

    def keys_of_group(self, group_id: str) -> list[SharePartitionKey]:
        """Return the keys of one group."""
        return list(self._groups.get(group_id, ()))
