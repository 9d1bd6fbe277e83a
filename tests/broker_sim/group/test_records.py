"""Claims about the records of __consumer_offsets, with records that Kafka 4.3.1 wrote.

`kafka_records.jsonl` holds what three nodes of Kafka wrote when confluent-kafka's consumers committed,
joined (also as a static member, and with the consumer protocol), left, and their groups were deleted.
"""

import json
from pathlib import Path

import pytest

from broker_sim.coordinator.records import UnknownRecordError
from broker_sim.group import record_messages
from broker_sim.group.records import GroupRecord, serde
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import Record, build_batch

LINES = Path(__file__).with_name("kafka_records.jsonl").read_text().splitlines()
KAFKA_RECORDS = [json.loads(line) for line in LINES]
CURRENT_TASKS = "0000 00000003 00000002 00 02 0230 02 00000001 01 00 05 02 00000003 01 01 01 01 01 00"
UNKNOWN_KEY = b"\0\x7f\0\1g"

OffsetCommitKey = record_messages.OffsetCommitKey
OffsetCommitValue = record_messages.OffsetCommitValue


def bytes_of(line):
    value = line["value"]
    return bytes.fromhex(line["key"]), None if value is None else bytes.fromhex(value)


@pytest.mark.parametrize("line", KAFKA_RECORDS, ids=lambda line: line["type"])
def test_records_equal_kafkas_byte_for_byte(line):
    key, value = bytes_of(line)
    record = serde.decode_record(key, value)
    assert type(record.key).__name__ == line["type"]
    assert serde.encode_key(record.key) == key
    assert serde.encode_value(record.value) == value


def test_sample_contains_each_kind_of_value():
    written = {(line["type"], (line["value"] or "")[:4]) for line in KAFKA_RECORDS}
    assert {
        ("OffsetCommitKey", "0004"),
        ("OffsetCommitKey", "0001"),
        ("OffsetCommitKey", ""),
        ("GroupMetadataKey", "0003"),
        ("GroupMetadataKey", ""),
        ("ConsumerGroupMetadataKey", "0000"),
    } <= written


def test_commit_with_its_own_retention_is_written_in_version_1():
    value = OffsetCommitValue(5, 3, "m", 100, 200, b"t" * 16)
    encoded = serde.encode_value(value)
    assert encoded[:2] == b"\0\1"
    decoded = serde.decode_record(serde.encode_key(OffsetCommitKey("g", "t", 0)), encoded).value
    assert (decoded.offset, decoded.expire_timestamp) == (5, 200)
    assert decoded.leader_epoch == -1  # version 1 does not carry it


@pytest.mark.parametrize("version", range(5))
def test_values_of_older_releases_are_decoded(version):
    value = OffsetCommitValue(5, metadata="m", commit_timestamp=100)
    read = serde.decode_record(serde.encode_key(OffsetCommitKey("g", "t", 0)), serde.encode_value(value, version))
    assert (read.value, read.value_version) == (value, version)


@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.GZIP])
def test_batch_is_decoded_to_records_with_offsets(codec):
    commit = GroupRecord(OffsetCommitKey("g", "t", 1), OffsetCommitValue(5), 4)
    tombstone = GroupRecord(OffsetCommitKey("g", "t", 2), None)
    batch = build_batch([serde.encode_record(each, 77) for each in (commit, tombstone)], codec=codec)
    assert list(serde.decode_batch(batch)) == [(0, commit), (1, tombstone)]
    header = parse_header(batch)
    assert (header.codec, header.base_timestamp, header.records_count) == (codec, 77, 2)


def test_records_of_unknown_types_are_skipped():
    with pytest.raises(UnknownRecordError):
        serde.decode_record(UNKNOWN_KEY, b"\0\0")
    key = serde.encode_key(OffsetCommitKey("g", "t", 0))
    batch = build_batch([Record(b"\0\0", UNKNOWN_KEY), Record(None, key), Record(b"no key")])
    assert [offset for offset, _ in serde.decode_batch(batch)] == [1]


def test_truncated_record_raises():
    with pytest.raises(ProtocolError):
        serde.decode_record(serde.encode_key(OffsetCommitKey("g", "t", 0))[:-1], None)


def test_unknown_message_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchKey"):
        _ = record_messages.NoSuchKey
    assert "GroupMetadataValue" in dir(record_messages)


@pytest.mark.parametrize(
    ("number", "name", "value"),
    [
        (17, "StreamsGroupMetadata", "0000 00000003 0000000000000007 01 00 04 00000001"),
        (19, "StreamsGroupMemberMetadata", "0000 00 00 0263 0268 00000005 00000001 0270 ff 01 00"),
        (20, "StreamsGroupTargetAssignmentMetadata", "0000 00000003 01 00 08 0000000000000009"),
        (21, "StreamsGroupTargetAssignmentMember", "0000 02 0230 03 00000000 00000002 00 01 01 00"),
        (22, "StreamsGroupCurrentMemberAssignment", CURRENT_TASKS),
        (23, "StreamsGroupTopology", "0000 00000001 01 00"),
    ],
)
def test_records_of_streams_groups_have_kafkas_numbers_and_bytes(number, name, value):
    key = number.to_bytes(2, "big") + b"\0\1g" + (b"\0\1m" if "Member" in name else b"")
    read = serde.decode_record(key, bytes.fromhex(value))
    assert type(read.key).__name__ == f"{name}Key"
    assert type(read.value).__name__ == f"{name}Value"
    assert serde.encode_key(read.key) == key
    assert serde.encode_value(read.value) == bytes.fromhex(value)
