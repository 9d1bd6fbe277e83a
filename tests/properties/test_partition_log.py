"""The log against a list: after any operations, reads are slices of the bytes that were appended."""

from dataclasses import dataclass

import pytest
from broker_sim_purgatory import VirtualClock
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker_sim.config import TopicConfig
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log import PartitionLog
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import parse_header, rebase, split_batches
from broker_sim.protocol.records import Record, build_batch

fractions = st.floats(0, 1)


@dataclass
class ModelBatch:
    base_offset: int
    end_offset: int
    epoch: int
    data: bytes


class LogMachine(RuleBasedStateMachine):
    """A `PartitionLog` beside a plain list of batches; offsets are drawn as shares of the log."""

    @initialize(segment_bytes=st.sampled_from([250, 500, 1 << 30]))
    def start(self, segment_bytes):
        self.clock = VirtualClock(wall_start_ms=1_000_000)
        config = TopicConfig(internal_segment_bytes=segment_bytes, retention_bytes=600)
        self.log = PartitionLog(TopicPartition("topic", 0), config, self.clock)
        self.segment_bytes = segment_bytes
        self.batches = []
        self.start_offset = self.end_offset = self.high_watermark = 0
        self.epoch = 0

    def offset_at(self, share):
        return self.start_offset + round(share * (self.end_offset - self.start_offset))

    def new_batch(self, count, size):
        now_ms = self.clock.wall_clock_ms()
        return build_batch([Record(bytes(size), timestamp=now_ms) for _ in range(count)])

    def add(self, data, base_offset, count):
        placed = rebase(memoryview(data), base_offset, self.epoch)
        self.end_offset = base_offset + count
        self.batches.append(ModelBatch(base_offset, self.end_offset, self.epoch, placed))

    @rule(count=st.integers(1, 4), size=st.integers(0, 30))
    def append_as_leader(self, count, size):
        data = self.new_batch(count, size)
        info = self.log.append_as_leader(memoryview(data), self.epoch)
        assert (info.first_offset, info.last_offset) == (self.end_offset, self.end_offset + count - 1)
        self.add(data, self.end_offset, count)

    @rule(counts=st.lists(st.integers(1, 2), max_size=3), gap=st.integers(0, 2), cut=fractions)
    def append_as_follower(self, counts, gap, cut):
        before = len(self.batches)
        base_offset = self.end_offset + gap
        for count in counts:
            self.add(self.new_batch(count, 0), base_offset, count)
            base_offset = self.end_offset
        pieces = [batch.data for batch in self.batches[before:]]
        part = self.new_batch(1, 9)
        self.log.append_as_follower(b"".join(pieces) + part[: int(cut * (len(part) - 1))])

    @rule(count=st.integers(1, 2))
    def broken_batch_leaves_no_trace(self, count):
        data = bytearray(self.new_batch(count, 5))
        data[-1] ^= 0xFF
        with pytest.raises(ApiError) as caught:
            self.log.append_as_leader(bytes(data), self.epoch)
        assert caught.value.error_code is ErrorCode.CORRUPT_MESSAGE

    @rule()
    def new_leader_epoch(self):
        self.epoch += 1

    @rule(share=fractions)
    def move_high_watermark(self, share):
        self.high_watermark = self.offset_at(share)
        assert self.log.offsets.update_high_watermark(self.high_watermark) == self.high_watermark

    @rule(share=fractions)
    def delete_records(self, share):
        offset = self.start_offset + round(share * (self.high_watermark - self.start_offset))
        assert self.log.offsets.maybe_increment_log_start_offset(offset) == (offset > self.start_offset)
        self.start_offset = offset

    @rule()
    def delete_old_segments(self):
        self.log.delete_old_segments()
        self.start_offset = self.log.log_start_offset
        first = self.log.segments[0].base_offset
        gone = [batch for batch in self.batches if batch.end_offset <= first]
        self.batches = self.batches[len(gone) :]
        assert self.start_offset <= self.high_watermark

    @rule(share=fractions)
    def truncate(self, share):
        offset = self.offset_at(share)
        assert self.log.truncate_to(offset) == (offset < self.end_offset)
        self.batches = [batch for batch in self.batches if batch.end_offset <= offset]
        self.end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)

    @rule(gap=st.integers(-5, 5))
    def truncate_fully(self, gap):
        offset = max(self.end_offset + gap, 0)
        self.log.truncate_fully_and_start_at(offset)
        self.batches = []
        self.start_offset = self.end_offset = self.high_watermark = offset

    @rule()
    def close_and_recover(self):
        self.log.close()
        self.log.recover()

    @rule(share=fractions, upper_share=fractions, max_bytes=st.integers(0, 700), min_one_message=st.booleans())
    def read(self, share, upper_share, max_bytes, min_one_message):
        offset, upper = self.offset_at(share), self.offset_at(upper_share)
        data = self.log.read(offset, max_bytes, upper_bound_offset=upper, min_one_message=min_one_message)
        got = b"".join(data.records)
        assert data.size_bytes == len(got)
        readable = [batch for batch in self.batches if batch.end_offset > offset and batch.end_offset <= upper]
        expected = b"".join(batch.data for batch in readable) if offset < upper else b""
        limit = max_bytes
        if min_one_message and readable:
            limit = max(limit, len(readable[0].data))
        # A read ends at the end of its segment, so only a single segment is read as a whole.
        assert expected.startswith(got)
        assert len(got) <= limit
        if self.segment_bytes == 1 << 30 and len(self.log.segments) == 1:
            assert got == expected[:limit]
        elif expected[:limit]:
            assert got

    @invariant()
    def offsets_agree(self):
        log = self.log
        assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (
            self.start_offset,
            self.high_watermark,
            self.end_offset,
        )
        assert log.last_stable_offset == log.high_watermark

    @invariant()
    def all_bytes_are_there(self):
        assert self.log.size_bytes == sum(len(batch.data) for batch in self.batches)
        found = []
        offset = self.start_offset
        while offset < self.end_offset:
            data = self.log.read(offset, 1 << 30)
            if not data.size_bytes:
                break
            found.extend(data.records)
            offset = parse_header(data.records[-1]).last_offset + 1
        assert found == [b.data for b in self.batches if b.end_offset > self.start_offset]

    @invariant()
    def positions_count_the_bytes_between_offsets(self):
        position = self.log.position(self.log.segments[0].base_offset)
        for batch in self.batches:
            assert self.log.position(batch.base_offset) == position
            position += len(batch.data)
        assert self.log.position(self.end_offset) == position

    @invariant()
    def epochs_are_those_of_the_batches(self):
        for batch in self.batches:
            if batch.base_offset >= self.start_offset:
                assert self.log.leader_epoch_cache.epoch_for_offset(batch.base_offset) == (batch.epoch)
        entries = self.log.leader_epoch_cache.entries
        assert list(entries) == sorted(entries)
        assert all(entry.start_offset <= self.end_offset for entry in entries)

    @invariant()
    def stored_batches_are_whole(self):
        for segment in self.log.segments:
            for header, data in segment.batches_from(segment.base_offset):
                assert parse_header(data) == header
                assert [bytes(piece) for piece in split_batches(data)] == [data]


TestPartitionLog = LogMachine.TestCase
TestPartitionLog.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
