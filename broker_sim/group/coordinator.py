"""The group coordinator of one broker; mirrors `GroupCoordinatorService` and `CoordinatorRuntime`.

Each partition of `__consumer_offsets` that the broker leads is a `GroupShard`. A new leader loads it
from the log before it answers; the old one drops it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim.coordinator.led_partitions import LedPartitions
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.classic.classic_groups import ClassicGroups
from broker_sim.group.consumer.consumer_groups import ConsumerGroups
from broker_sim.group.migration import Migration
from broker_sim.group.offset_metadata import expired_records, tombstones_of_deleted_topics
from broker_sim.group.shard import GroupShard
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.group.environment import GroupEnvironment
    from broker_sim.group.records import GroupRecord
    from broker_sim.group.write_buffer import TransactionMarker
    from broker_sim.log import VerificationGuard
    from broker_sim.metadata import ImageChanges, MetadataImage

__all__ = ["GroupCoordinator"]

log = get_logger(__name__)


class GroupCoordinator:
    """The shards that this broker leads. Thread rule: the broker's loop."""

    def __init__(self, environment: GroupEnvironment) -> None:
        self.environment = environment
        self.partitions: LedPartitions[GroupShard] = LedPartitions(
            GROUP_METADATA_TOPIC, environment.broker_id, environment.call_later, self
        )
        self._log = log.bind(environment.clock, node=f"broker-{environment.broker_id}")

    # -- look-up --------------------------------------------------------------------------------

    def partition_for(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that the group is in, or will be."""
        environment = self.environment
        return self.partitions.partition_for(
            group_id, environment.config.offsets_topic_num_partitions
        )

    def shard(self, group_id: str) -> GroupShard:
        """Return the shard of the group.

        Raises `ApiError`: INVALID_GROUP_ID for an empty id, NOT_COORDINATOR,
        COORDINATOR_LOAD_IN_PROGRESS.
        """
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        return self.shard_of_any_group(group_id)

    def shard_of_any_group(self, group_id: str) -> GroupShard:
        """Do the same for APIs that accept an empty group id: commits and fetches of offsets."""
        default_count = self.environment.config.offsets_topic_num_partitions
        return self.partitions.find(group_id, default_count)

    def shards(self) -> list[GroupShard]:
        """Return the shards that are loaded, by partition."""
        return self.partitions.loaded()

    def verify_transaction(
        self,
        group_id: str,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        api_version: int,
        on_result: Callable[[ErrorCode, VerificationGuard | None], object],
    ) -> None:
        """Ask the transaction's coordinator for the group's partition; see `VerifyTransaction`."""
        self.environment.verify_transaction(
            self.partition_for(group_id),
            transactional_id,
            producer_id,
            producer_epoch,
            api_version,
            on_result,
        )

    def complete_transaction(
        self,
        partition: int,
        marker: TransactionMarker,
        on_done: Callable[[ErrorCode], object],
    ) -> None:
        """End a transaction in a partition of `__consumer_offsets`: its offsets count now, or are dropped.

        `on_done(NONE)` is called when the in-sync replicas have the marker; otherwise `on_done` gets what
        WriteTxnMarkers answers, such as NOT_LEADER_OR_FOLLOWER, or REQUEST_TIMED_OUT after
        `offsets.commit.timeout.ms`.
        """
        try:
            shard = self.partitions.get(partition)
        except ApiError:
            on_done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        shard.complete_transaction(marker, on_done)

    @property
    def is_loading(self) -> bool:
        """Whether a partition is being loaded."""
        return self.partitions.is_loading

    # -- roles ----------------------------------------------------------------------------------

    def load(self, partition: int, leader_epoch: int) -> GroupShard:
        """Return the shard that the partition's log holds; see `PartitionOwner`."""
        shard = self._new_shard(partition, leader_epoch)
        records = 0
        for batch in self.environment.storage.read(partition):
            records += shard.load(batch)
        self._log.info(
            "groups_loaded",
            partition=partition,
            leader_epoch=leader_epoch,
            records=records,
            groups=len(shard.groups),
            offsets=shard.offsets.count(),
        )
        return shard

    def loaded(self, shard: GroupShard) -> None:
        """Let the groups of the shard begin to work."""
        shard.on_loaded()
        self._expire_later(shard)

    def reelected(self, shard: GroupShard, leader_epoch: int) -> bool:
        """Keep the shard: what it has is what the log has."""
        shard.leader_epoch = leader_epoch
        return True

    def unloaded(self, shard: GroupShard) -> None:
        """Let the groups of the shard stop to work."""
        self._log.info("groups_unloaded", partition=shard.partition, groups=len(shard.groups))
        shard.on_unloaded()

    def _expire_later(self, shard: GroupShard) -> None:
        environment = self.environment
        environment.call_later(
            environment.config.offsets_retention_check_interval_ms, self._expire, shard
        )

    def _expire(self, shard: GroupShard) -> None:
        """Delete expired offsets and groups, every `offsets.retention.check.interval.ms`."""
        if not shard.is_active:
            return
        records = expired_records(shard)
        if records:
            self._log.info("offsets_expired", partition=shard.partition, tombstones=len(records))
            self._write_in_background(shard, records)
        self._expire_later(shard)

    def _write_in_background(self, shard: GroupShard, records: list[GroupRecord]) -> None:
        """Write records that nobody waits for; what failed is tried again at the next occasion."""

        def done(error_code: ErrorCode) -> None:
            if error_code:
                self._log.info(
                    "tombstones_failed", partition=shard.partition, error=error_code.name
                )

        shard.write(records, done)

    def _new_shard(self, partition: int, leader_epoch: int) -> GroupShard:
        shard = GroupShard(
            partition, leader_epoch, self.environment, partial(self.partitions.reload, partition)
        )
        shard.classic = ClassicGroups(shard)
        shard.consumer = ConsumerGroups(shard)
        shard.migration = Migration(shard)
        return shard

    def on_image(self, changes: ImageChanges, image: MetadataImage) -> None:
        """Follow new metadata: roles first, then what changes for the groups."""
        self.partitions.follow(changes, image)
        for shard in self.shards():
            if changes.deleted_topics:
                records = tombstones_of_deleted_topics(shard, changes.deleted_topics)
                if records:
                    self._write_in_background(shard, records)
            shard.classic.on_image(changes, image)
            shard.consumer.on_image(changes, image)

    def shutdown(self) -> None:
        """Forget all groups without a word, as a broker that dies."""
        for shard in self.partitions.drop_all():
            shard.is_active = False
