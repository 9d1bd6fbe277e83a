"""The cleaner against a dict: what stays is the last record of each key, in order, at its offset."""

from broker_sim_purgatory import VirtualClock
from hypothesis import given
from hypothesis import strategies as st

from broker_sim.config import TopicConfig
from broker_sim.log import PartitionLog
from broker_sim.log.cleaner.batch_filter import OffsetMap
from broker_sim.log.cleaner.cleaner import Cleaner
from broker_sim.log.cleaner.manager import LogToClean
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.record_batch import parse_header, split_batches
from broker_sim.protocol.records import Record, build_batch, iter_records

keys = st.sampled_from([b"a", b"b", b"c", b"d", b"e"])
values = st.one_of(st.none(), st.binary(max_size=5))
batches = st.tuples(
    st.lists(st.tuples(keys, values), min_size=1, max_size=6),
    st.sampled_from([CompressionCodec.NONE, CompressionCodec.GZIP]),
)
rounds = st.lists(st.lists(batches, min_size=1, max_size=8), min_size=1, max_size=4)


def read_to_the_end(log):
    """Return the records as a consumer reads them that begins at the log's start."""
    found, offset = [], log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1, min_one_message=True)
        for batch in split_batches(b"".join(data.records)):
            found += [record for record in iter_records(batch) if record.offset >= offset]
            offset = parse_header(batch).last_offset + 1
        if not data.records:
            break
    return [(record.offset, record.key, record.value) for record in found]


def clean(log, first_dirty_offset, map_keys):
    offsets = OffsetMap(24 * map_keys, 1.0)
    now_ms = log.clock.wall_clock_ms()
    work = Cleaner(LogToClean(log, first_dirty_offset, now_ms), offsets).clean()
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value


@given(rounds=rounds, segment_bytes=st.sampled_from([300, 1000, 1 << 20]))
def test_cleaned_log_has_the_last_record_of_each_key(rounds, segment_bytes):
    clock = VirtualClock(wall_start_ms=1_000_000)
    config = TopicConfig(cleanup_policy=("compact",), internal_segment_bytes=segment_bytes)
    log = PartitionLog(TopicPartition("topic", 0), config, clock)
    written, first_dirty = [], 0
    for batches in rounds:
        for pairs, codec in batches:
            records = [Record(value, key, clock.wall_clock_ms()) for key, value in pairs]
            base_offset = log.append_as_leader(build_batch(records, codec=codec), 0).first_offset
            written += [(base_offset + at, *pair) for at, pair in enumerate(pairs)]
            clock.advance(1)
        log.offsets.update_high_watermark(log.log_end_offset)
        log.roll()
        first_dirty = clean(log, first_dirty, map_keys=100)
        last = {key: offset for offset, key, _ in written}
        assert first_dirty == log.log_end_offset
        assert read_to_the_end(log) == [found for found in written if last[found[1]] == found[0]]
        assert log.size_bytes == sum(segment.size_bytes for segment in log.segments)


@given(rounds=rounds, map_keys=st.integers(6, 12))
def test_small_map_cleans_the_same_in_several_cleanings(rounds, map_keys):
    clock = VirtualClock(wall_start_ms=1_000_000)
    config = TopicConfig(cleanup_policy=("compact",), internal_segment_bytes=300)
    log = PartitionLog(TopicPartition("topic", 0), config, clock)
    last = {}
    for pairs, _ in (batch for batches in rounds for batch in batches):
        records = [Record(value, key, 1_000_000) for key, value in pairs]
        base_offset = log.append_as_leader(build_batch(records), 0).first_offset
        last |= {key: (base_offset + at, key, value) for at, (key, value) in enumerate(pairs)}
    log.offsets.update_high_watermark(log.log_end_offset)
    log.roll()
    first_dirty = 0
    while first_dirty < log.log_end_offset:
        cleaned_to = clean(log, first_dirty, map_keys)
        assert cleaned_to > first_dirty
        first_dirty = cleaned_to
    assert read_to_the_end(log) == sorted(last.values())
