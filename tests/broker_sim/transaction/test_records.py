"""Tests of the records of __transaction_state against records written by Kafka 4.3.1.

`kafka_records.jsonl` has one of each kind, written by three nodes with `transaction.version` 0, 1 and 2:
clients with and without an epoch for each transaction, commits, aborts and fenced producers.
"""

import json
from pathlib import Path

import pytest

from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import Record, build_batch, iter_records
from broker_sim.transaction.metadata import TxnTransitMetadata
from broker_sim.transaction.records import metadata_of, record_of, serde, tombstone_of
from broker_sim.transaction.state import TransactionState, TransactionVersion

LINES = Path(__file__).with_name("kafka_records.jsonl").read_text().splitlines()
KAFKA_RECORDS = [json.loads(line) for line in LINES]
S = TransactionState


def decoded(line):
    record = Record(bytes.fromhex(line["value"]), bytes.fromhex(line["key"]))
    ((_, record),) = serde.decode_batch(build_batch([record]))
    return record


@pytest.mark.parametrize("line", KAFKA_RECORDS, ids=range(len(KAFKA_RECORDS)))
def test_records_equal_kafkas_byte_for_byte(line):
    record = decoded(line)
    level = TransactionVersion.TV_2 if record.value_version else TransactionVersion.TV_0
    again = record_of(record.key.transactional_id, metadata_of(record.value), level)
    encoded = serde.encode_record(again, 0)
    assert encoded.key.hex() == line["key"]
    assert encoded.value.hex() == line["value"]


def test_sample_contains_each_kind_of_value():
    written = {
        (record.value_version, record.value.transaction_status, record.value.client_transaction_version)
        for record in map(decoded, KAFKA_RECORDS)
    }
    written_states = {S.EMPTY, S.ONGOING, S.PREPARE_COMMIT, S.COMPLETE_COMMIT}
    assert {(0, state, 0) for state in written_states} <= written
    assert {(1, state, 2) for state in (S.PREPARE_ABORT, S.COMPLETE_ABORT)} <= written


def values(**fields):
    defaults = {"state": S.ONGOING, "producer_id": 1, "timeout_ms": 2, "last_update_ms": 3, **fields}
    return TxnTransitMetadata(**defaults)


def test_round_trip_loses_only_the_last_producer_epoch():
    partitions = {TopicPartition("b", 1): None, TopicPartition("a", 0): None}
    written = values(
        previous_producer_id=5,
        next_producer_id=6,
        producer_epoch=7,
        last_producer_epoch=6,
        partitions=partitions,
        start_ms=8,
        client_version=TransactionVersion.TV_2,
    )
    batch = build_batch([serde.encode_record(record_of("tx", written, TransactionVersion.TV_2), 9)])
    ((_, record),) = serde.decode_batch(batch)
    record = metadata_of(record.value)
    assert record.last_producer_epoch == -1
    assert list(record.partitions) == list(partitions)
    assert record == values(
        previous_producer_id=5,
        next_producer_id=6,
        producer_epoch=7,
        partitions=partitions,
        start_ms=8,
        client_version=TransactionVersion.TV_2,
    )
    assert parse_header(batch).base_timestamp == 9


def test_old_values_have_no_tagged_fields():
    written = values(previous_producer_id=5, next_producer_id=6)
    record = record_of("tx", written, TransactionVersion.TV_0)
    ((_, record),) = serde.decode_batch(build_batch([serde.encode_record(record, 0)]))
    assert record.value_version == 0
    assert metadata_of(record.value).previous_producer_id == -1


def test_empty_transaction_has_no_partitions():
    record = record_of("tx", values(state=S.EMPTY), TransactionVersion.TV_2)
    assert record.value.transaction_partitions is None
    assert metadata_of(record.value).partitions == {}


def test_tombstone_has_the_key_only():
    (record,) = iter_records(build_batch([serde.encode_record(tombstone_of("tx"), 0)]))
    assert record.key == b"\0\0\0\2tx"
    assert record.value is None
