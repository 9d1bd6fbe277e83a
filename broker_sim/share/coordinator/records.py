"""The records of `__share_group_state`, byte for byte as Kafka writes them.

Mirrors `ShareCoordinatorRecordHelpers` and `ShareCoordinatorRecordSerde`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.coordinator.records import CoordinatorRecord, RecordSerde
from broker_sim.share.coordinator import record_messages
from broker_sim.share.coordinator.share_group_offset import ShareGroupOffset
from broker_sim.share.share_state import SharePartitionKey, StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim.protocol.message import Message

ShareSnapshotKey = record_messages.ShareSnapshotKey
ShareSnapshotValue = record_messages.ShareSnapshotValue
ShareUpdateKey = record_messages.ShareUpdateKey
ShareUpdateValue = record_messages.ShareUpdateValue


def _written_version(value: Message) -> int:
    return value.MIN_VERSION


serde: Final = RecordSerde(record_messages, {0: "ShareSnapshot", 1: "ShareUpdate"}, _written_version)


def snapshot(key: SharePartitionKey, offset: ShareGroupOffset) -> CoordinatorRecord:
    """Return a snapshot record of the complete state."""
    return CoordinatorRecord(
        ShareSnapshotKey(*key),
        ShareSnapshotValue(
            snapshot_epoch=offset.snapshot_epoch,
            state_epoch=offset.state_epoch,
            leader_epoch=offset.leader_epoch,
            start_offset=offset.start_offset,
            delivery_complete_count=offset.delivery_complete_count,
            create_timestamp=offset.create_timestamp_ms,
            write_timestamp=offset.write_timestamp_ms,
            state_batches=[ShareSnapshotValue.StateBatch(*batch) for batch in offset.state_batches],
        ),
    )


def update(key: SharePartitionKey, offset: ShareGroupOffset) -> CoordinatorRecord:
    """Return an update record with changes since the last snapshot."""
    return CoordinatorRecord(
        ShareUpdateKey(*key),
        ShareUpdateValue(
            snapshot_epoch=offset.snapshot_epoch,
            leader_epoch=offset.leader_epoch,
            start_offset=offset.start_offset,
            delivery_complete_count=offset.delivery_complete_count,
            state_batches=[ShareUpdateValue.StateBatch(*batch) for batch in offset.state_batches],
        ),
    )


def tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    """Return the tombstone that deletes the state."""
    return CoordinatorRecord(ShareSnapshotKey(*key), None)


def key_of(key: record_messages.ShareSnapshotKey | record_messages.ShareUpdateKey) -> SharePartitionKey:
    """Return the share partition of a record key."""
    return SharePartitionKey(key.group_id, key.topic_id, key.partition)


def snapshot_of(value: record_messages.ShareSnapshotValue) -> ShareGroupOffset:
    """Return the state in a snapshot."""
    return ShareGroupOffset(
        value.snapshot_epoch,
        value.state_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        _batches_of(value.state_batches),
        value.create_timestamp,
        value.write_timestamp,
    )


def update_of(value: record_messages.ShareUpdateValue) -> ShareGroupOffset:
    """Return the changes in an update."""
    return ShareGroupOffset(
        snapshot_epoch=value.snapshot_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        state_batches=_batches_of(value.state_batches),
    )


def _batches_of(
    batches: Iterable[record_messages.ShareSnapshotValue.StateBatch | record_messages.ShareUpdateValue.StateBatch],
) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
        for batch in batches
    )
