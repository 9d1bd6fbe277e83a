"""The records of `__transaction_state`, byte for byte as Kafka writes them; mirrors `TransactionLog`.

Deliberate difference: topics and partitions are written in the order in which they were added; Kafka
writes them in the order of a hash table.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from broker_sim.coordinator.records import CoordinatorRecord, RecordSerde
from broker_sim.metadata.topic_partition import TopicPartition, by_topic
from broker_sim.transaction import record_messages
from broker_sim.transaction.metadata import TxnTransitMetadata
from broker_sim.transaction.state import TransactionState, TransactionVersion

if TYPE_CHECKING:
    from broker_sim.protocol.message import Message

MAX_CACHED_KEYS: Final = 4_096
"""Maximum number of cached encoded keys."""

TransactionLogKey = record_messages.TransactionLogKey
TransactionLogValue = record_messages.TransactionLogValue


def _newest_version(value: Message) -> int:
    return value.MAX_VERSION


class _Serde(RecordSerde):
    """Caches encoded keys, because each id is written many times."""

    def encode_key(self, key: Message) -> bytes:
        assert isinstance(key, TransactionLogKey)
        return _encode_key(key.transactional_id)


@lru_cache(MAX_CACHED_KEYS)
def _encode_key(transactional_id: str) -> bytes:
    return RecordSerde.encode_key(serde, TransactionLogKey(transactional_id))


serde: Final = _Serde(record_messages, {0: "TransactionLog"}, _newest_version)


def record_of(transactional_id: str, values: TxnTransitMetadata, level: TransactionVersion) -> CoordinatorRecord:
    """Return the record of the values, in the format of that `transaction.version` level."""
    value = TransactionLogValue(
        producer_id=values.producer_id,
        producer_epoch=values.producer_epoch,
        transaction_timeout_ms=values.timeout_ms,
        transaction_status=values.state,
        transaction_partitions=None
        if values.state is TransactionState.EMPTY
        else [TransactionLogValue.PartitionsSchema(*e) for e in by_topic(values.partitions).items()],
        transaction_last_update_timestamp_ms=values.last_update_ms,
        transaction_start_timestamp_ms=values.start_ms,
        client_transaction_version=values.client_version,
    )
    version = level.log_value_version
    if version > 0:
        value.previous_producer_id = values.previous_producer_id
        value.next_producer_id = values.next_producer_id
    return CoordinatorRecord(TransactionLogKey(transactional_id), value, version)


def tombstone_of(transactional_id: str) -> CoordinatorRecord:
    """Return the tombstone of the id."""
    return CoordinatorRecord(TransactionLogKey(transactional_id), None)


def metadata_of(value: record_messages.TransactionLogValue) -> TxnTransitMetadata:
    """Return the values in a record. Raises ValueError if the state is unknown."""
    state = TransactionState(value.transaction_status)
    topics = value.transaction_partitions or ()
    if state is TransactionState.EMPTY:
        topics = ()
    return TxnTransitMetadata(
        state=state,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        partitions={
            TopicPartition(entry.topic, partition): None for entry in topics for partition in entry.partition_ids
        },
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        client_version=TransactionVersion(value.client_transaction_version),
    )
