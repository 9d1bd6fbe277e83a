"""What a share partition needs of its broker, and the configurations of its group.

Mirrors `ShareGroupConfigProvider` and the static configurations of `ShareGroupConfig`. A group's own
configurations (KIP-1204) are read when they are needed: they can change while it is served.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from broker_sim.config import OffsetReset, group_number, parse_offset_reset
from broker_sim.metadata import GROUP_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import Clock, Timer

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata import MetadataImage
    from broker_sim.share.share_state import Persister, SharePartitionKey

READ_COMMITTED: Final = "read_committed"


class ShareGroupSettings:
    """The configurations of share groups, as one broker knows them."""

    __slots__ = ("_config", "_image")

    def __init__(self, config: BrokerConfig, image: Callable[[], MetadataImage]) -> None:
        self._config = config
        self._image = image

    def record_lock_duration_ms(self, group_id: str) -> int:
        """Return for how long a member may keep a record."""
        own = self._own_number(group_id, "share.record.lock.duration.ms")
        return self._config.group_share_record_lock_duration_ms if own is None else own

    def delivery_count_limit(self, group_id: str) -> int:
        """Return how often a record is delivered at most."""
        own = self._own_number(group_id, "share.delivery.count.limit")
        return self._config.group_share_delivery_count_limit if own is None else own

    def partition_max_record_locks(self, group_id: str) -> int:
        """Return how many records of a partition may be in flight."""
        own = self._own_number(group_id, "share.partition.max.record.locks")
        return self._config.group_share_partition_max_record_locks if own is None else own

    def is_renew_acknowledge_enabled(self, group_id: str) -> bool:
        """Return whether members may keep records for longer (KIP-1222)."""
        own = self._own(group_id, "share.renew.acknowledge.enable")
        return own is None or own.lower() == "true"

    def reads_committed(self, group_id: str) -> bool:
        """Return whether records of aborted transactions are left out."""
        return self._own(group_id, "share.isolation.level") == READ_COMMITTED

    def auto_offset_reset(self, group_id: str) -> OffsetReset:
        """Return where a group begins that has no start offset yet."""
        return parse_offset_reset(self._own(group_id, "share.auto.offset.reset") or "latest")

    def _own_number(self, group_id: str, name: str) -> int | None:
        """Return a number that is set on the group itself, within this broker's limits."""
        own = self._own(group_id, name)
        return None if own is None else group_number(self._config, name, own)

    def _own(self, group_id: str, name: str) -> str | None:
        """Return what is set on the group itself."""
        return self._image().configs_of_resource(GROUP_RESOURCE, group_id).get(name)


class OffsetLookup(Protocol):
    """Finds the offsets of a log that this broker leads, in the leader epoch of the share partition."""

    def __call__(self, timestamp: int) -> int:
        """Return the offset of a time (ms), -1 being the latest and -2 the earliest. Raises ApiError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePartitionEnvironment:
    """The same for all share partitions of a broker."""

    persister: Persister
    timer: Timer
    """Ends the locks on records."""
    clock: Clock
    settings: ShareGroupSettings
    complete_delayed_share_fetch: Callable[[SharePartitionKey], int]
    """Tries the share fetches that wait for a share partition; returns how many that completes."""
    announce: Callable[[SharePartitionKey], object]
    """Does the same after the running handler has returned."""
