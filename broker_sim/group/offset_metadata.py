"""Commits, deletions and expiry of a shard's offsets; mirrors `OffsetMetadataManager`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.records import GroupRecord
from broker_sim.metadata import NO_TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker_sim.group.group import CommitPartitionValidator, Group
    from broker_sim.group.offsets import CommittedOffset
    from broker_sim.group.shard import GroupShard
    from broker_sim.metadata import TopicState

__all__ = [
    "OffsetToCommit",
    "commit_records",
    "delete_records",
    "expired_records",
    "fetch_group",
    "find_group",
    "is_of_topic",
    "tombstones_of_deleted_topics",
    "tombstones_of_group",
    "validate_commit",
    "validate_transactional_commit",
]

GROUP_NOT_FOUND_VERSION: Final = 9
NO_RETENTION: Final = -1
MINUTE_MS: Final = 60_000


class OffsetToCommit(NamedTuple):
    """One partition of a commit."""

    topic: str
    topic_id: bytes
    partition: int
    offset: int
    leader_epoch: int
    metadata: str | None


def find_group(shard: GroupShard, group_id: str) -> Group:
    """Return the group. Raises ApiError GROUP_ID_NOT_FOUND, worded as Kafka's."""
    group = shard.groups.get(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    return group


def validate_commit(
    shard: GroupShard,
    group_id: str,
    member_id: str,
    group_instance_id: str | None,
    generation_id_or_member_epoch: int,
    api_version: int,
) -> CommitPartitionValidator | None:
    """Check that this member may commit; return the check of its partitions, None without one.

    Without a group, who has no generation may commit: the first record makes a simple group.
    Raises ApiError: that of the group, GROUP_ID_NOT_FOUND, or ILLEGAL_GENERATION before version 9.
    """
    group = shard.groups.get(group_id)
    if group is None:
        if generation_id_or_member_epoch >= 0:
            raise ApiError(
                ErrorCode.GROUP_ID_NOT_FOUND
                if api_version >= GROUP_NOT_FOUND_VERSION
                else ErrorCode.ILLEGAL_GENERATION
            )
        shard.log.info("simple_group_created", group=group_id)
        return None
    return group.validate_offset_commit(
        member_id, group_instance_id, generation_id_or_member_epoch, False, api_version
    )


def validate_transactional_commit(
    shard: GroupShard,
    group_id: str,
    member_id: str,
    group_instance_id: str | None,
    generation_id: int,
    api_version: int,
) -> CommitPartitionValidator | None:
    """Do the same for a commit in a transaction. Raises ApiError: that of the group, ILLEGAL_GENERATION."""
    group = shard.groups.get(group_id)
    if group is None:
        if generation_id >= 0:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
        return None
    with _as_illegal_generation():
        validator = group.validate_offset_commit(
            member_id, group_instance_id, generation_id, True, api_version
        )
    if validator is None:
        return None

    def check(topic: str, topic_id: bytes, partition: int) -> None:
        with _as_illegal_generation():
            validator(topic, topic_id, partition)

    return check


@contextmanager
def _as_illegal_generation() -> Iterator[None]:
    """Tell STALE_MEMBER_EPOCH as ILLEGAL_GENERATION, which every version of TxnOffsetCommit knows."""
    try:
        yield
    except ApiError as error:
        if error.error_code is ErrorCode.STALE_MEMBER_EPOCH:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION) from error
        raise


def commit_records(
    shard: GroupShard,
    group_id: str,
    offsets: Sequence[OffsetToCommit],
    retention_time_ms: int,
    validator: CommitPartitionValidator | None,
    *,
    keeps_topic_id: bool = True,
) -> tuple[list[GroupRecord], list[ErrorCode]]:
    """Return the records of a commit, and the error of each offset (OFFSET_METADATA_TOO_LARGE).

    As in Kafka, a transaction's offsets have no topic id in their records (`keeps_topic_id=False`). Raises the ApiError of the validator, which fails the commit as a whole.
    """
    now_ms = shard.environment.clock.wall_clock_ms()
    expires_ms = -1 if retention_time_ms == NO_RETENTION else now_ms + retention_time_ms
    max_metadata = shard.environment.config.offset_metadata_max_bytes
    records: list[GroupRecord] = []
    errors: list[ErrorCode] = []
    for offset in offsets:
        metadata = offset.metadata or ""
        if _java_length(metadata) > max_metadata:
            errors.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
            continue
        if validator is not None:
            validator(offset.topic, offset.topic_id, offset.partition)
        errors.append(ErrorCode.NONE)
        key = record_messages.OffsetCommitKey(group_id, offset.topic, offset.partition)
        topic_id = offset.topic_id if keeps_topic_id else NO_TOPIC_ID
        value = record_messages.OffsetCommitValue(
            offset.offset, offset.leader_epoch, metadata, now_ms, expires_ms, topic_id
        )
        records.append(GroupRecord(key, value))
    shard.environment.counters.offset_commits += len(records)
    return records, errors


def _java_length(text: str) -> int:
    """Return the length as Java counts it, which the limit is compared with in spite of its name."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def fetch_group(shard: GroupShard, group_id: str, member_id: str | None, member_epoch: int) -> bool:
    """Return whether the group has offsets to show. Raises ApiError of the group's check."""
    group = shard.groups.get(group_id)
    if group is None:
        return False
    try:
        group.validate_offset_fetch(member_id, member_epoch)
    except ApiError as error:
        if error.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
            return False
        raise
    return True


def is_of_topic(committed: CommittedOffset, topic_id: bytes) -> bool:
    """Whether the offset is of that topic, and not of one deleted before; any fits where an id is unknown."""
    return NO_TOPIC_ID in (committed.topic_id, topic_id) or committed.topic_id == topic_id


def _tombstone(group_id: str, topic: str, partition: int) -> GroupRecord:
    return GroupRecord(record_messages.OffsetCommitKey(group_id, topic, partition), None)


def delete_records(
    shard: GroupShard, group_id: str, partitions: Iterable[tuple[str, int]]
) -> tuple[list[GroupRecord], list[ErrorCode]]:
    """Return the records that delete those offsets, and the error of each partition.

    Raises ApiError: GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP.
    """
    group = find_group(shard, group_id)
    group.validate_offset_delete()
    records: list[GroupRecord] = []
    errors: list[ErrorCode] = []
    for topic, partition in partitions:
        if group.is_subscribed_to_topic(topic):
            errors.append(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
            continue
        errors.append(ErrorCode.NONE)
        if _is_known(shard, group_id, topic, partition):
            records.append(_tombstone(group_id, topic, partition))
    shard.environment.counters.offset_deletions += len(records)
    return records, errors


def _is_known(shard: GroupShard, group_id: str, topic: str, partition: int) -> bool:
    """Whether the partition has an offset, also one of a transaction that is not over."""
    return shard.offsets.get(
        group_id, topic, partition
    ) is not None or shard.transactional_offsets.contains(group_id, topic, partition)


def tombstones_of_group(shard: GroupShard, group: Group) -> list[GroupRecord]:
    """Return the records that delete a group with its offsets."""
    group_id = group.group_id
    offsets = [
        _tombstone(group_id, topic, partition)
        for topic, partition, _ in shard.offsets.latest_of(group_id)
    ]
    offsets += [
        _tombstone(group_id, topic, partition)
        for topic, partition in shard.transactional_offsets.partitions_of(group_id)
        if shard.offsets.get(group_id, topic, partition) is None
    ]
    return [*offsets, *group.tombstones()]


def expired_records(shard: GroupShard) -> list[GroupRecord]:
    """Return the records that delete expired offsets, and groups that have nothing left.

    Mirrors `GroupCoordinatorShard.cleanupGroupMetadata`.
    """
    records: list[GroupRecord] = []
    for group in list(shard.groups.values()):
        kept = 0
        for topic, partition, is_expired in _expiry(shard, group):
            if is_expired:
                shard.environment.counters.offset_expirations += 1
                records.append(_tombstone(group.group_id, topic, partition))
            else:
                kept += 1
        if (
            not kept
            and group.is_empty
            and not shard.transactional_offsets.has_group(group.group_id)
        ):
            records += group.tombstones()
    return records


def _expiry(shard: GroupShard, group: Group) -> Iterator[tuple[str, int, bool]]:
    """Tell of each offset of a group whether it has expired."""
    expiration = group.offset_expiration()
    now_ms = shard.environment.clock.wall_clock_ms()
    retention_ms = shard.environment.config.offsets_retention_minutes * MINUTE_MS
    for topic, partition, committed in shard.offsets.latest_of(group.group_id):
        if (
            expiration is None
            or group.is_subscribed_to_topic(topic)
            or shard.transactional_offsets.contains(group.group_id, topic, partition)
        ):
            yield topic, partition, False
        elif committed.expire_timestamp_ms >= 0:
            yield topic, partition, now_ms >= committed.expire_timestamp_ms
        else:
            base_ms = expiration.base_timestamp_ms
            if base_ms is None:
                base_ms = committed.commit_timestamp_ms
            yield topic, partition, now_ms - base_ms >= retention_ms


def tombstones_of_deleted_topics(
    shard: GroupShard, topics: Iterable[TopicState]
) -> list[GroupRecord]:
    """Return the records that delete the offsets of topics that are gone."""
    deleted = {topic.name: topic.topic_id for topic in topics}
    tombstones = [
        _tombstone(group_id, topic, partition)
        for group_id in shard.offsets.group_ids()
        for topic, partition, committed in shard.offsets.latest_of(group_id)
        if topic in deleted and is_of_topic(committed, deleted[topic])
    ]
    tombstones += [
        _tombstone(*key)
        for key, offset in shard.transactional_offsets.items()
        if key[1] in deleted and is_of_topic(offset, deleted[key[1]])
    ]
    return tombstones
