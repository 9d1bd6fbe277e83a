"""Transactions in a log against a list of batches: what is decided, and which were aborted.

The model keeps every batch, and finds the last stable offset and the aborted transactions by walking
over all of them. A follower gets the same batches. The logs are truncated and killed, and then records
are deleted: a log that is opened again forgets transactions whose first record is gone.
"""

from dataclasses import dataclass

from broker_sim_purgatory import VirtualClock
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker_sim.config import TopicConfig
from broker_sim.log import PartitionLog, ProducerStateManagerConfig
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch, build_end_txn_marker

ALL_BYTES = 1 << 30
producers = st.integers(1, 3)
fractions = st.floats(0, 1)


@dataclass
class Batch:
    base_offset: int
    end_offset: int
    producer_id: int
    kind: str
    """What it is: "records" of a transaction, "plain" ones, a "commit" or an "abort"."""


def transactions_of(batches):
    """Return (producer, first offset, marker's offset or None, whether aborted) of each."""
    found, ongoing = [], {}
    for batch in batches:
        if batch.kind == "records" and batch.producer_id not in ongoing:
            ongoing[batch.producer_id] = batch.base_offset
        elif batch.kind in {"commit", "abort"} and batch.producer_id in ongoing:
            first = ongoing.pop(batch.producer_id)
            found.append((batch.producer_id, first, batch.base_offset, batch.kind == "abort"))
    found.extend((producer_id, first, None, False) for producer_id, first in ongoing.items())
    return found


class TransactionLogMachine(RuleBasedStateMachine):
    """A leader's log, its follower's, and the list of what they hold."""

    @initialize(segment_bytes=st.sampled_from([300, 700, ALL_BYTES]))
    def start(self, segment_bytes):
        self.clock = VirtualClock(wall_start_ms=1_000_000)
        self.config = TopicConfig(internal_segment_bytes=segment_bytes, index_interval_bytes=0)
        self.log = self.new_log()
        self.follower = self.new_log()
        self.batches = []
        self.sequences = dict.fromkeys((1, 2, 3), 0)
        self.snapshot_offset = 0

    def new_log(self):
        return PartitionLog(
            TopicPartition("topic", 0),
            self.config,
            self.clock,
            producers=ProducerStateManagerConfig(transaction_verification_enabled=False),
        )

    def append(self, data, count, producer_id, kind):
        base_offset = self.log.log_end_offset
        origin = "coordinator" if kind in {"commit", "abort"} else "client"
        self.log.append_as_leader(data, 0, origin=origin)
        self.batches.append(Batch(base_offset, base_offset + count, producer_id, kind))

    @rule(producer_id=producers, count=st.integers(1, 3))
    def write_in_a_transaction(self, producer_id, count):
        now_ms = self.clock.wall_clock_ms()
        data = build_batch(
            [Record(b"v", timestamp=now_ms)] * count,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=self.sequences[producer_id],
            is_transactional=True,
        )
        self.append(data, count, producer_id, "records")
        self.sequences[producer_id] += count

    @rule(count=st.integers(1, 2))
    def write_outside_of_transactions(self, count):
        now_ms = self.clock.wall_clock_ms()
        self.append(build_batch([Record(b"v", timestamp=now_ms)] * count), count, -1, "plain")

    @rule(producer_id=producers, is_commit=st.booleans())
    def end_a_transaction(self, producer_id, is_commit):
        data = build_end_txn_marker(
            producer_id=producer_id, producer_epoch=0, is_commit=is_commit, timestamp=self.clock.wall_clock_ms()
        )
        self.append(data, 1, producer_id, "commit" if is_commit else "abort")

    @rule(share=fractions)
    def replicate(self, share):
        """Let the follower fetch; what it has is committed."""
        data = self.log.read(
            max(self.follower.log_end_offset, self.log.log_start_offset), round(share * 600), min_one_message=True
        )
        self.follower.append_as_follower(data.records)
        high_watermark = max(self.follower.log_end_offset, self.log.high_watermark)
        self.log.offsets.maybe_increment_high_watermark(min(high_watermark, self.log.log_end_offset))
        self.follower.offsets.update_high_watermark(self.log.high_watermark)

    @rule()
    def roll(self):
        self.log.roll()

    @rule(share=fractions)
    def delete_records(self, share):
        start, end = self.log.log_start_offset, self.log.high_watermark
        self.log.offsets.maybe_increment_log_start_offset(start + round(share * (end - start)))
        self.log.delete_old_segments()
        self.follower.offsets.maybe_increment_log_start_offset(
            min(self.log.log_start_offset, self.follower.high_watermark)
        )
        self.follower.delete_old_segments()

    @precondition(lambda self: self.log.log_start_offset == 0)
    @rule()
    def kill(self):
        self.log.offsets.checkpoint_high_watermark()
        self.log.offsets.checkpoint_log_start_offset()
        high_watermark = self.log.high_watermark
        self.log.recover()
        self.log.offsets.update_high_watermark(high_watermark)
        self.keep_what_is_remembered()

    @precondition(lambda self: self.log.log_start_offset == 0)
    @rule(share=fractions)
    def truncate(self, share):
        """Become a follower that drops what was not committed."""
        low, high = self.log.high_watermark, self.log.log_end_offset
        target = low + round(share * (high - low))
        is_cut = self.log.truncate_to(target)
        self.batches = [batch for batch in self.batches if batch.end_offset <= target]
        target = self.batches[-1].end_offset if self.batches else self.log.log_start_offset
        if target < self.log.log_end_offset and target >= self.log.log_start_offset:
            is_cut = self.log.truncate_to(target)
        self.log.offsets.update_high_watermark(self.log.high_watermark)
        if is_cut:
            self.keep_what_is_remembered()
        if self.follower.log_end_offset > self.log.log_end_offset:
            self.follower.truncate_to(self.log.log_end_offset)

    def keep_what_is_remembered(self):
        """Take over the producers' sequences.

        As in Kafka, a log that is opened again takes what ended before its last snapshot for decided,
        although no follower may have the marker.
        """
        self.snapshot_offset = self.log.segments[-1].base_offset
        entries = self.log.producer_state.active_producers
        for producer_id in self.sequences:
            entry = entries.get(producer_id)
            last = -1 if entry is None else entry.last_sequence
            self.sequences[producer_id] = last + 1

    @rule(begin=fractions, end=fractions)
    def list_aborted_transactions(self, begin, end):
        start = self.log.log_start_offset
        length = self.log.log_end_offset - start
        begin, end = sorted((start + round(begin * length), start + round(end * length)))
        listed = self.log.producer_state.transaction_index.collect(begin, end)
        expected = [
            (producer_id, first, marker)
            for producer_id, first, marker, is_aborted in transactions_of(self.batches)
            if is_aborted and marker >= begin and first < end
        ]
        assert [txn[:3] for txn in listed] == expected

    def last_stable_offset(self, log):
        """Where the first undecided transaction begins, or the batch at a log start inside of it."""
        undecided = [
            first
            for _, first, marker, _ in transactions_of(self.batches)
            if marker is None or marker >= max(log.high_watermark, self.snapshot_offset)
        ]
        first, start = min([log.high_watermark, *undecided]), log.log_start_offset
        if first >= start:
            return first
        bases = [one.base_offset for one in self.batches if one.base_offset <= start < one.end_offset]
        return bases[0] if bases else start

    @invariant()
    def last_stable_offset_is_the_first_undecided_one(self):
        if hasattr(self, "log"):
            assert self.log.last_stable_offset == self.last_stable_offset(self.log)
            assert self.log.last_stable_offset <= self.log.high_watermark

    @invariant()
    def follower_has_the_last_stable_offset_of_its_log(self):
        if hasattr(self, "log") and self.follower.log_end_offset == self.log.log_end_offset:
            self.follower.offsets.update_high_watermark(self.log.high_watermark)
            if self.snapshot_offset > self.log.high_watermark:
                return
            assert self.follower.last_stable_offset == self.last_stable_offset(self.follower)

    @invariant()
    def reader_of_committed_records_sees_each_transaction_whole_or_not_at_all(self):
        """Read as a consumer does: drop the records of a listed producer up to its abort marker."""
        if not hasattr(self, "log"):
            return
        end = self.log.last_stable_offset
        kinds = {batch.base_offset: batch for batch in self.batches}
        aborted = {
            (producer_id, first)
            for producer_id, first, marker, is_aborted in transactions_of(self.batches)
            if is_aborted
        }
        offset, dropping, seen = self.log.log_start_offset, set(), []
        while offset < end:
            data = self.log.read(offset, 150, upper_bound_offset=end, min_one_message=True)
            listed = {
                (txn.producer_id, txn.first_offset) for txn in self.log.aborted_transactions(offset, data.size_bytes)
            }
            if not data.size_bytes:
                break
            following = self._end_of(data, offset)
            for base in sorted(b for b in kinds if offset <= b < following):
                batch = kinds[base]
                dropping |= {p for p, first in listed if first <= base and p == batch.producer_id}
                if batch.kind == "abort":
                    dropping.discard(batch.producer_id)
                elif batch.kind == "records" and batch.producer_id not in dropping:
                    seen.append(batch)
            offset = following
        for batch in seen:
            firsts = [
                first
                for producer_id, first, marker, is_aborted in transactions_of(self.batches)
                if producer_id == batch.producer_id and is_aborted and first <= batch.base_offset < marker
            ]
            assert not firsts, f"{batch} is of a transaction that was aborted"
        committed = [
            batch
            for batch in self.batches
            if batch.kind == "records"
            and self.log.log_start_offset <= batch.base_offset < end
            and not any(
                producer_id == batch.producer_id
                and first <= batch.base_offset
                and batch.base_offset < self._marker_of(producer_id, first)
                for producer_id, first in aborted
            )
        ]
        assert seen == committed

    def _marker_of(self, producer_id, first):
        return next(
            marker
            for found, beginning, marker, _ in transactions_of(self.batches)
            if (found, beginning) == (producer_id, first)
        )

    def _end_of(self, data, offset):
        size = 0
        ends = [b.end_offset for b in self.batches if b.end_offset > offset]
        for piece in data.records:
            size += len(piece)
        whole = 0
        for batch_end in ends:
            if self.log.position(batch_end) - self.log.position(offset) <= size:
                whole = batch_end
        return whole or offset + 1


TestTransactionLog = TransactionLogMachine.TestCase
TestTransactionLog.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
