"""What is read of a batch before it is appended has bounds."""

import gc
import tracemalloc

import pytest

from broker_sim.config import TopicConfig
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log import validator as module
from broker_sim.log.append_info import AppendOrigin, RecordValidationError
from broker_sim.log.validator import LogValidator
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.record_batch import encode_batch, parse_header
from broker_sim.protocol.records import Record, build_batch, iter_records

MOST_RECORDS = (1 << 20) // 7
MOST_BAD_RECORDS = 1_000
MB = 1 << 20


def validate(batch, **config):
    validator = LogValidator(TopicPartition("t", 0), TopicConfig(**config))
    return validator.validate(memoryview(batch), 1_000, AppendOrigin.CLIENT)


def with_count(count):
    """A batch whose header promises so many records."""
    batch = build_batch([Record(b"v", b"k", 5)])
    header = parse_header(batch)._replace(records_count=count, last_offset_delta=count - 1)
    return encode_batch(header, batch[61:])


@pytest.mark.parametrize(
    ("count", "code"), [(MOST_RECORDS, ErrorCode.INVALID_RECORD), (MOST_RECORDS + 1, ErrorCode.MESSAGE_TOO_LARGE)]
)
def test_batch_of_too_many_records_is_refused_before_they_are_read(count, code):
    with pytest.raises(ApiError) as refused:
        validate(with_count(count), cleanup_policy="compact", max_message_bytes=1_000)
    assert refused.value.error_code is code


def test_records_that_are_not_read_may_be_as_many_as_the_header_says():
    assert validate(with_count(MOST_RECORDS + 1)).header.records_count == MOST_RECORDS + 1


@pytest.mark.parametrize("config", [{"cleanup_policy": "compact"}, {"compression_type": "lz4"}])
def test_batch_that_unpacks_to_too_much_is_refused(config, monkeypatch):
    batch = build_batch([Record(bytes(3 * MB), b"k", 5)], codec=CompressionCodec.GZIP)
    assert validate(batch, **config).header.records_count == 1
    monkeypatch.setattr(module, "MAX_DECOMPRESSION_RATIO", 2)  # 64 MB would take their time
    with pytest.raises(ApiError) as refused:
        validate(batch, **config)
    assert refused.value.error_code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", CompressionCodec)
def test_record_of_a_compressed_batch_is_limited_as_in_kafka_4_4(codec):
    fitting = [Record(b"a" * 993, None), Record(b"a" * 500, None)]  # the first has 1000 bytes without its size
    assert validate(build_batch(fitting, codec=codec), max_decompressed_message_bytes=1_000)
    batch = build_batch([Record(b"a" * 10, None), Record(b"a" * 994, None)], codec=codec)
    if codec is CompressionCodec.NONE:
        assert validate(batch, max_decompressed_message_bytes=1_000)
        return
    with pytest.raises(ApiError) as refused:
        validate(batch, max_decompressed_message_bytes=1_000)
    assert (refused.value.error_code, refused.value.error_message) == (ErrorCode.INVALID_RECORD, None)


@pytest.mark.parametrize("config", [{"cleanup_policy": "compact"}, {"compression_type": "lz4"}])
def test_decompressed_records_of_a_refused_batch_are_freed_at_once(config, monkeypatch):
    batch = memoryview(build_batch([Record(bytes(3 * MB), None)], codec=CompressionCodec.GZIP))
    monkeypatch.setattr(module, "MAX_DECOMPRESSION_RATIO", 2)
    validator = LogValidator(TopicPartition("t", 0), TopicConfig(**config))
    gc.disable()
    tracemalloc.start()
    try:
        results = [validator.validate_beside(batch, 1_000).result for _ in range(2)]
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    assert [result.error_code for result in results] == [ErrorCode.MESSAGE_TOO_LARGE] * 2
    assert kept_bytes < 100_000


def test_only_so_many_bad_records_are_named():
    batch = build_batch([Record(b"v", None, 5)] * (MOST_BAD_RECORDS + 5))
    with pytest.raises(RecordValidationError) as refused:
        validate(batch, cleanup_policy="compact")
    assert len(refused.value.record_errors) == MOST_BAD_RECORDS


RECORDS = [Record(b"v0", b"k0", 1_000), Record(b"v1", None, 3_000), Record(None, b"k2", -1)]


def with_append_time(codec=CompressionCodec.NONE):
    return build_batch(RECORDS, codec=codec, log_append_time=True)


class TestLogAppendTimeOfAProducer:
    """Seen on Kafka 4.3.1."""

    def times(self, **config):
        valid = validate(with_append_time(), **config)
        placed = valid.place(base_offset=0, leader_epoch=0)
        assert not parse_header(placed).is_log_append_time
        assert parse_header(placed).max_timestamp == 3_000
        return [record.timestamp for record in iter_records(placed)]

    def test_records_of_a_recompressed_batch_get_the_time_of_the_batch(self):
        assert self.times(compression_type="gzip") == [3_000, 3_000, 3_000]

    def test_records_of_a_batch_that_stays_keep_their_own_times(self):
        assert self.times() == [1_000, 3_000, -1]
        assert self.times(compression_type="uncompressed") == [1_000, 3_000, -1]

    @pytest.mark.parametrize(
        ("codec", "target", "shown"),
        [
            ("NONE", "producer", "DefaultRecord(offset=1, timestamp=3000, key=0 bytes"),
            ("NONE", "gzip", "DefaultRecord(offset=1, timestamp=3000, key=0 bytes"),
            ("GZIP", "uncompressed", "DefaultRecord(offset=1, timestamp=3000, key=0 bytes"),
            ("GZIP", "producer", "PartialDefaultRecord(offset=1, timestamp=3000, key=-1 bytes"),
            ("GZIP", "gzip", "PartialDefaultRecord(offset=1, timestamp=3000, key=-1 bytes"),
        ],
    )
    def test_record_is_named_as_kafka_does(self, codec, target, shown):
        batch = with_append_time(CompressionCodec[codec])
        with pytest.raises(RecordValidationError) as refused:
            validate(batch, message_timestamp_type="LogAppendTime", compression_type=target)
        assert f"in message {shown}, value=2 bytes)." in refused.value.record_errors[1].message


NOW_MS = 1_000


class TestEffort:
    SMALL = build_batch([Record(b"v", b"k", 5)])
    MANY = build_batch([Record(b"v", b"k", 5)] * 1_001)
    PACKED = build_batch([Record(bytes(range(256)) * 3, b"k", 5)] * 40, codec=CompressionCodec.GZIP)
    UNPACKED = build_batch([Record(bytes(70_000), b"k", 5)])
    LATER = build_batch([Record(b"v", b"k", NOW_MS + 11)] * 1_001)

    @pytest.mark.parametrize(
        ("config", "looks_into", "long"),
        [
            ({}, [], []),
            (
                {"cleanup_policy": "compact"},
                ["SMALL", "MANY", "PACKED", "UNPACKED", "LATER"],
                ["MANY", "PACKED", "UNPACKED", "LATER"],
            ),
            (
                {"compression_type": "zstd"},
                ["SMALL", "MANY", "PACKED", "UNPACKED", "LATER"],
                ["MANY", "PACKED", "UNPACKED", "LATER"],
            ),
            (
                {"message_timestamp_before_max_ms": 5},
                ["SMALL", "MANY", "PACKED", "UNPACKED", "LATER"],
                ["MANY", "PACKED", "UNPACKED", "LATER"],
            ),
            ({"message_timestamp_after_max_ms": 11}, [], []),
            ({"message_timestamp_after_max_ms": 10}, ["LATER"], ["LATER"]),
        ],
    )
    def test_records_are_read_where_the_header_is_not_enough(self, config, looks_into, long):
        validator = LogValidator(TopicPartition("t", 0), TopicConfig(**config))
        efforts = {
            name: validator.effort(memoryview(getattr(self, name)), NOW_MS)
            for name in ("SMALL", "MANY", "PACKED", "UNPACKED", "LATER")
        }
        assert [name for name, effort in efforts.items() if effort] == looks_into
        assert [name for name, effort in efforts.items() if effort > 1] == long

    def test_incomplete_batch_is_checked_at_once(self):
        validator = LogValidator(TopicPartition("t", 0), TopicConfig(cleanup_policy="compact"))
        assert not validator.effort(memoryview(self.MANY)[:60], NOW_MS)
