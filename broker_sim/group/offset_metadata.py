"""Commit, fetch, deletion and expiration of a shard's offsets; mirrors `OffsetMetadataManager`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.coordinator.result import Result
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.java_text import java_length
from broker_sim.group.offset_fetch import OffsetView, is_of_topic
from broker_sim.group.offsets import NO_RETENTION, OffsetStore, TransactionalOffsets
from broker_sim.group.records import GroupRecord
from broker_sim.metadata import NO_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.result import ShardRuntime
    from broker_sim.group.group import CommitPartitionValidator, Group
    from broker_sim.group.group_timeline import GroupTimeline
    from broker_sim.group.metrics import GroupCounters
    from broker_sim.group.offset_fetch import OffsetQuery
    from broker_sim.group.offsets import OffsetCommit
    from broker_sim.metadata import TopicState
    from broker_sim.protocol import messages
    from broker_sim.runtime.event_log import EventLogger

GROUP_NOT_FOUND_VERSION: Final = 9
MINUTE_MS: Final = 60_000


class OffsetMetadataManager:
    """The offsets of the groups of one shard."""

    def __init__(
        self,
        broker: BrokerContext,
        counters: GroupCounters,
        runtime: ShardRuntime,
        groups: GroupTimeline,
        get_or_create_group: Callable[[str], object],
        log: EventLogger,
    ) -> None:
        """`get_or_create_group(group_id)` creates a simple group if there is none."""
        self.offsets = OffsetStore()
        self.transactional_offsets = TransactionalOffsets()
        self._broker = broker
        self._counters = counters
        self._runtime = runtime
        self._groups = groups
        self._get_or_create_group = get_or_create_group
        self._log = log

    def _find(self, group_id: str) -> Group:
        """Return the group. Raises ApiError GROUP_ID_NOT_FOUND with Kafka's message."""
        group = self._groups.get(group_id)
        if group is None:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    # -- commits --------------------------------------------------------------------------------

    def commit(self, commit: OffsetCommit) -> Result[list[ErrorCode]]:
        """Commit offsets; the response has an error code for each (OFFSET_METADATA_TOO_LARGE).

        If there is no group, a commit without a generation creates a simple group. Raises ApiError: errors of the
        group, GROUP_ID_NOT_FOUND, or ILLEGAL_GENERATION before version 9.
        """
        group = self._groups.get(commit.group_id)
        validator = None
        if group is not None:
            validator = group.validate_offset_commit(commit, False)
        elif commit.generation_id_or_member_epoch < 0:
            self._log.info("simple_group_created", group=commit.group_id)
        elif commit.api_version >= GROUP_NOT_FOUND_VERSION:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND)
        else:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        return self._records_of(commit, validator, is_transactional=False)

    def commit_transactional(self, commit: OffsetCommit) -> Result[list[ErrorCode]]:
        """Commit offsets in a transaction. Raises ApiError: errors of the group, ILLEGAL_GENERATION.

        As in Kafka before 4.4, records of transactional offsets have no topic id.
        """
        group = self._groups.get(commit.group_id)
        if group is None and commit.generation_id_or_member_epoch >= 0:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        try:
            validator = None if group is None else group.validate_offset_commit(commit, True)
            return self._records_of(commit, validator, is_transactional=True)
        except ApiError as error:
            if error.error_code is ErrorCode.STALE_MEMBER_EPOCH:
                # This error exists in all versions of TxnOffsetCommit.
                raise ApiError(ErrorCode.ILLEGAL_GENERATION) from error
            raise

    def _records_of(
        self, commit: OffsetCommit, validator: CommitPartitionValidator | None, *, is_transactional: bool
    ) -> Result[list[ErrorCode]]:
        """Return the records of a commit. Raises the validator's ApiError, which fails the whole commit."""
        keeps_topic_id = not is_transactional or self._broker.release.is_at_least("4.4")
        now_ms = self._broker.clock.wall_clock_ms()
        retention_ms = commit.retention_time_ms
        expires_ms = -1 if retention_ms == NO_RETENTION else now_ms + retention_ms
        max_metadata = self._broker.config.offset_metadata_max_bytes
        records: list[GroupRecord] = []
        errors: list[ErrorCode] = []
        for offset in commit.offsets:
            metadata = offset.metadata or ""
            if java_length(metadata) > max_metadata:
                errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            if validator is not None:
                validator(offset.topic, offset.topic_id, offset.partition)
            errors.append(ErrorCode.NONE)
            key = record_messages.OffsetCommitKey(commit.group_id, offset.topic, offset.partition)
            topic_id = offset.topic_id if keeps_topic_id else NO_TOPIC_ID
            value = record_messages.OffsetCommitValue(
                offset.offset, offset.leader_epoch, metadata, now_ms, expires_ms, topic_id
            )
            records.append(GroupRecord(key, value))
        self._counters.offset_commits += len(records)
        if not records:
            # As in Kafka, the group is created even if nothing is committed.
            self._get_or_create_group(commit.group_id)
        return Result(errors, records, shares_batch=not is_transactional)

    # -- fetches --------------------------------------------------------------------------------

    def fetch(self, query: OffsetQuery) -> Result[messages.OffsetFetchResponse.OffsetFetchResponseGroup]:
        """Return the group's offsets. Raises the ApiError of the group's check."""
        requested_group = query.group
        get_newest, get_committed = self._groups.get, self._groups.committed
        group = (get_newest if query.require_stable else get_committed)(requested_group.group_id)
        has_offsets = group is not None
        if group is not None:
            try:
                group.validate_offset_fetch(requested_group.member_id, requested_group.member_epoch)
            except ApiError as error:
                if error.error_code is not ErrorCode.GROUP_ID_NOT_FOUND:
                    raise
                has_offsets = False
        view = OffsetView(
            query, self.offsets, self.transactional_offsets, self._runtime.high_watermark, self._broker.image()
        )
        return Result(view.answer(has_offsets=has_offsets))

    # -- deletions ------------------------------------------------------------------------------

    def delete(self, group_id: str, partitions: Iterable[tuple[str, int]]) -> Result[list[ErrorCode]]:
        """Delete offsets; the response has an error code for each partition.

        Raises ApiError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        group = self._find(group_id)
        group.validate_offset_delete()
        records: list[GroupRecord] = []
        errors: list[ErrorCode] = []
        for topic, partition in partitions:
            if group.is_subscribed_to_topic(topic):
                errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
                continue
            errors.append(ErrorCode.NONE)
            if self._has_offset(group_id, topic, partition):
                records.append(_tombstone(group_id, topic, partition))
        self._counters.offset_deletions += len(records)
        return Result(errors, records)

    def _has_offset(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether the partition has an offset, including offsets of open transactions."""
        return self.offsets.get(group_id, topic, partition) is not None or self.transactional_offsets.contains(
            group_id, topic, partition
        )

    def delete_groups(self, group_ids: Iterable[str]) -> Result[dict[str, ErrorCode]]:
        """Delete groups with their offsets in one write; the response has an error code for each group.

        Errors: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
        """
        errors: dict[str, ErrorCode] = {}
        records: list[GroupRecord] = []
        for group_id in group_ids:
            try:
                group = self._find(group_id)
                group.validate_delete_group()
            except ApiError as error:
                errors[group_id] = error.error_code
            else:
                errors[group_id] = ErrorCode.NONE
                records += self.tombstones_of_group(group)
        deleted_ids = [group_id for group_id, error_code in errors.items() if not error_code]

        def settled(error_code: ErrorCode) -> None:
            if deleted_ids and not error_code:
                self._log.info("groups_deleted", groups=deleted_ids)

        return Result(errors, records, on_settled=settled)

    def tombstones_of_group(self, group: Group) -> list[GroupRecord]:
        """Return the tombstones of a group and its offsets."""
        group_id = group.group_id
        offsets = [_tombstone(group_id, topic, partition) for topic, partition, _ in self.offsets.latest_of(group_id)]
        offsets += [
            _tombstone(group_id, topic, partition)
            for topic, partition in self.transactional_offsets.partitions_of(group_id)
            if self.offsets.get(group_id, topic, partition) is None
        ]
        return [*offsets, *group.tombstones()]

    def expire(self) -> Result[None]:
        """Delete expired offsets, and empty groups without offsets.

        Mirrors `GroupCoordinatorShard.cleanupGroupMetadata`.
        """
        records: list[GroupRecord] = []
        for group in list(self._groups.values()):
            if not group.should_expire:
                continue
            remaining = 0
            for topic, partition, is_expired in self._expiry(group):
                if is_expired:
                    self._counters.offset_expirations += 1
                    records.append(_tombstone(group.group_id, topic, partition))
                else:
                    remaining += 1
            if not remaining and group.is_empty and not self.transactional_offsets.has_group(group.group_id):
                records += group.tombstones()
        if records:
            self._log.info("offsets_expired", tombstones=len(records))
        return self._in_background(records)

    def _expiry(self, group: Group) -> Iterator[tuple[str, int, bool]]:
        """Yield (topic, partition, whether it has expired) for each offset of a group."""
        expiration = group.offset_expiration()
        now_ms = self._broker.clock.wall_clock_ms()
        retention_ms = self._broker.config.offsets_retention_minutes * MINUTE_MS
        for topic, partition, committed in self.offsets.latest_of(group.group_id):
            if (
                expiration is None
                or group.is_subscribed_to_topic(topic)
                or self.transactional_offsets.contains(group.group_id, topic, partition)
            ):
                yield topic, partition, False
            elif committed.expire_timestamp_ms >= 0:
                yield topic, partition, now_ms >= committed.expire_timestamp_ms
            else:
                base_ms = expiration.base_timestamp_ms
                if base_ms is None:
                    base_ms = committed.commit_timestamp_ms
                yield topic, partition, now_ms - base_ms >= retention_ms

    def topics_deleted(self, topics: Iterable[TopicState]) -> Result[None]:
        """Delete the offsets of deleted topics."""
        topic_ids = {topic.name: topic.topic_id for topic in topics}
        tombstones = [
            _tombstone(group_id, topic, partition)
            for group_id in self.offsets.group_ids()
            for topic, partition, committed in self.offsets.latest_of(group_id)
            if topic in topic_ids and is_of_topic(committed, topic_ids[topic])
        ]
        tombstones += [
            _tombstone(*key)
            for key, offset in self.transactional_offsets.items()
            if key[1] in topic_ids and is_of_topic(offset, topic_ids[key[1]])
        ]
        return self._in_background(tombstones)

    def _in_background(self, tombstones: list[GroupRecord]) -> Result[None]:
        """Return a result for which no client waits; failed deletions are retried by the next run."""

        def settled(error_code: ErrorCode) -> None:
            if error_code:
                self._log.info("tombstones_failed", error=error_code.name)

        return Result(records=tombstones, on_settled=settled if tombstones else None)

    # -- replay ---------------------------------------------------------------------------------

    def replay(
        self,
        key: record_messages.OffsetCommitKey,
        value: record_messages.OffsetCommitValue | None,
        record_offset: int,
        producer_id: int | None,
    ) -> None:
        """Apply the offset record at `record_offset`; it is transactional unless `producer_id` is None."""
        if value is None:
            self.transactional_offsets.remove(key.group, key.topic, key.partition)
        else:
            # A commit without a group creates a simple group.
            self._get_or_create_group(key.group)
            if producer_id is not None:
                self.transactional_offsets.replay(producer_id, key, value, record_offset)
                return
        self.offsets.replay(key, value, record_offset, self._runtime.high_watermark)

    def replay_marker(self, producer_id: int, marker_offset: int, *, is_commit: bool) -> None:
        """Apply the marker at that offset: commit or drop the producer's pending offsets.

        If an offset was also committed outside the transaction, the one with the later record is kept.
        """
        for key, offset in self.transactional_offsets.end(producer_id).items():
            if is_commit and not self.offsets.materialize(key, offset, marker_offset, self._runtime.high_watermark):
                self._log.info("transactional_offset_skipped", group=key[0], topic=key[1])


def _tombstone(group_id: str, topic: str, partition: int) -> GroupRecord:
    return GroupRecord(record_messages.OffsetCommitKey(group_id, topic, partition), None)
