"""Compacted logs with small segments, and what is left of them after a cleaning."""

import pytest

from broker_sim.config import TopicConfig
from broker_sim.log import PartitionLog, ProducerStateManagerConfig
from broker_sim.log.cleaner.batch_filter import OffsetMap
from broker_sim.log.cleaner.cleaner import Cleaner
from broker_sim.log.cleaner.manager import LogToClean
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import Record, build_batch, build_end_txn_marker, iter_records

ROOM_FOR_KEYS = 24 * 10_000


class CompactedLog:
    """A log of topic-0 whose clock the test moves."""

    def __init__(self, clock, storage, **config):
        self.clock = clock
        self.log = PartitionLog(
            TopicPartition("topic", 0),
            TopicConfig(cleanup_policy=("compact",), **config),
            clock,
            producers=ProducerStateManagerConfig(transaction_verification_enabled=False),
            storage=storage,
        )

    def append(self, *pairs, **header):
        """Append one batch of (key, value) pairs, visible at once; return its first offset."""
        at = self.clock.wall_clock_ms()
        records = [Record(value, key, at) for key, value in pairs]
        return self.append_batch(build_batch(records, **header))

    def append_batch(self, batch, origin="client"):
        first_offset = self.log.append_as_leader(batch, 0, origin).first_offset
        self.log.offsets.update_high_watermark(self.log.log_end_offset)
        return first_offset

    def append_in_transaction(self, producer_id, sequence, *pairs):
        return self.append(
            *pairs, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True
        )

    def end_transaction(self, producer_id, *, commit):
        marker = build_end_txn_marker(
            producer_id=producer_id, producer_epoch=0, is_commit=commit, timestamp=self.clock.wall_clock_ms()
        )
        return self.append_batch(marker, "coordinator")

    def roll(self):
        self.log.roll()

    def to_clean(self, first_dirty_offset=0):
        return LogToClean(self.log, first_dirty_offset, self.clock.wall_clock_ms())

    def clean(self, first_dirty_offset=0, map_bytes=ROOM_FOR_KEYS):
        """Clean all but the active segment; return the cleaner and the next first dirty offset."""
        cleaner = Cleaner(self.to_clean(first_dirty_offset), OffsetMap(map_bytes, 1.0))
        work = cleaner.clean()
        while True:
            try:
                next(work)
            except StopIteration as done:
                return cleaner, done.value

    @property
    def batches(self):
        return [(parse_header(batch), batch) for segment in self.log.segments for _, batch in segment.batches_from(0)]

    @property
    def records(self):
        """Return (offset, key, value) of all records of clients."""
        return [
            (record.offset, record.key, record.value)
            for header, batch in self.batches
            if not header.is_control
            for record in iter_records(batch)
        ]

    @property
    def markers(self):
        """Return the offsets of the markers, and whether each is a marker without content."""
        return {header.base_offset: header.records_count == 0 for header, _ in self.batches if header.is_control}


@pytest.fixture
def compacted(clock, new_storage):
    def make(**config):
        return CompactedLog(clock, new_storage(), **config)

    return make


@pytest.fixture
def log(compacted):
    return compacted()
