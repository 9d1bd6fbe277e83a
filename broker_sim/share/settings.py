"""The share group configurations that leaders of share partitions use.

Mirrors `ShareGroupConfigProvider` and the static configurations of `ShareGroupConfig`. A group's own configurations
(KIP-1204) are read at each use: they can change while the group is served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.config import DEAD_LETTER_COPY, DEAD_LETTER_TOPIC, OffsetReset, group_number, parse_offset_reset
from broker_sim.metadata import GROUP_RESOURCE
from broker_sim.metadata.feature_names import SHARE_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata import MetadataImage

READ_COMMITTED: Final = "read_committed"
DEAD_LETTERS_VERSION: Final = 2
"""Lowest level of `share.version` with dead letters."""


class ShareGroupSettings:
    """The configurations of all share groups on one broker."""

    __slots__ = ("_config", "_image")

    def __init__(self, config: BrokerConfig, image: Callable[[], MetadataImage]) -> None:
        self._config = config
        self._image = image

    def record_lock_duration_ms(self, group_id: str) -> int:
        """Return the duration of acquisition locks in ms."""
        return self._group_number(
            group_id, "share.record.lock.duration.ms", self._config.group_share_record_lock_duration_ms
        )

    def delivery_count_limit(self, group_id: str) -> int:
        """Return the maximum number of deliveries of a record."""
        return self._group_number(group_id, "share.delivery.count.limit", self._config.group_share_delivery_count_limit)

    def has_dead_letters(self, group_id: str) -> bool:
        """Return whether dead letters are enabled in the cluster (KIP-1191) and the group has a topic for them."""
        return self._image().features.get(SHARE_VERSION, 0) >= DEAD_LETTERS_VERSION and bool(
            self.dead_letter_topic(group_id)
        )

    def dead_letter_topic(self, group_id: str) -> str:
        """Return the name of the group's dead-letter topic, empty if it has none."""
        return self._group_value(group_id, DEAD_LETTER_TOPIC) or ""

    def copies_dead_letters(self, group_id: str) -> bool:
        """Return whether dead letters copy the keys and values of their records, not only headers."""
        value = self._group_value(group_id, DEAD_LETTER_COPY)
        return value is not None and value.lower() == "true"

    def partition_max_record_locks(self, group_id: str) -> int:
        """Return the maximum number of records in flight per partition."""
        return self._group_number(
            group_id, "share.partition.max.record.locks", self._config.group_share_partition_max_record_locks
        )

    def is_renew_acknowledge_enabled(self, group_id: str) -> bool:
        """Return whether members may renew their locks (KIP-1222)."""
        value = self._group_value(group_id, "share.renew.acknowledge.enable")
        return value is None or value.lower() == "true"

    def reads_committed(self, group_id: str) -> bool:
        """Return whether the group reads committed records only."""
        return self._group_value(group_id, "share.isolation.level") == READ_COMMITTED

    def auto_offset_reset(self, group_id: str) -> OffsetReset:
        """Return where the group starts in a partition that it has never read."""
        return parse_offset_reset(self._group_value(group_id, "share.auto.offset.reset") or "latest")

    def _group_number(self, group_id: str, name: str, default: int) -> int:
        """Return a number set on the group, clamped to this broker's limits; `default` if not set."""
        value = self._group_value(group_id, name)
        return default if value is None else group_number(self._config, name, value)

    def _group_value(self, group_id: str, name: str) -> str | None:
        """Return a value set on the group, None if not set."""
        return self._image().configs_of_resource(GROUP_RESOURCE, group_id).get(name)
