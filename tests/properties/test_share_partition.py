"""A share partition against a dictionary with the state of each record by itself.

The id of a test has the seed of its steps.
"""

from random import Random

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.share.partition.acknowledgement import FailedRequestError
from tests.properties.share_partition_model import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    DONE,
    LOCK_MS,
    NAME_OF,
    RENEW,
    STATE_OF,
    KeepingCoordinator,
    Record,
    keeping_bench,
)

MEMBERS = ("first", "second", "third")
SIZES = (1, 2, 3, 4, 5, 6, 40)
LARGEST_BATCH = 40
SEEDS = 24
STEPS = 200


class SharePartitionAgainstDictionary:
    """The model has no batches: it is told which records were acquired, and checks that they could be."""

    def __init__(self, limit, most):
        self.limit, self.most = limit, most
        self.configs = {"share.delivery.count.limit": str(limit), "share.partition.max.record.locks": str(most)}
        self.coordinator = KeepingCoordinator()
        self.bench = keeping_bench(self.configs, self.coordinator)
        self.records = {}
        self.log = []
        self.log_start = 0
        self.is_exact = True
        """Whether the start offset must be at the first record that is not done, and not before it."""

    @property
    def now_ms(self):
        return self.bench.timer.clock.now_ms()

    # -- the log ----------------------------------------------------------------------------------

    def produce(self, sizes):
        for size in sizes:
            first = self.log[-1][1] + 1 if self.log else 0
            self.log.append((first, first + size - 1))

    def _fetched(self, offset, batches):
        """Return so many batches of the log, from the one on that has the offset."""
        return [batch for batch in self.log if batch[1] >= offset][:batches]

    def delete_records(self, by):
        """The log starts later; what is acquired stays with its member."""
        self.log_start = min(self.log_start + by, self.log[-1][1] + 1)
        self._follow_log_start()

    def _follow_log_start(self):
        records = self.bench.records
        if self.log_start <= records.start_offset:
            return
        is_empty = not len(records.batches)
        self.bench.partition.log_start_moved(self.log_start)
        self.is_exact = False
        for number in range(self.log_start):
            record = self.records.setdefault(number, Record(ARCHIVED))
            if is_empty or record.state == AVAILABLE:
                record.leave(ARCHIVED, self.limit)

    # -- members ----------------------------------------------------------------------------------

    def acquire(self, member, batches, max_records, is_limit, batch_size):
        records = self.bench.records
        offset = records.next_fetch_offset()
        if offset < self.log_start:
            # As in Kafka, the end of what was acquired before the log's start takes the start offset back to it.
            self._follow_log_start()
            return
        available = [n for n, record in self.records.items() if record.state == AVAILABLE]
        assert offset == min(available, default=len(self.records))
        may_begin = records.count < self.most
        assert self.bench.partition.can_acquire_records() == (may_begin or bool(available))
        fetched = self._fetched(offset, batches)
        if not fetched or not self.bench.partition.can_acquire_records():
            return
        before = records.count
        acquired = self.bench.acquire(
            *fetched, member=member, max_records=max_records, is_limit=is_limit, batch_size=batch_size, at=offset
        )
        count = self._take(member, acquired)
        if is_limit:
            assert count <= max_records
        assert records.count <= max(before, self.most + LARGEST_BATCH - 1)
        is_next_available = offset in self.records and self.records[offset].state == AVAILABLE
        assert count > 0 or not is_next_available

    def _take(self, member, acquired):
        """Note what the member has acquired; return how many records that are."""
        records = self.bench.records
        count = 0
        for first, last, deliveries in acquired:
            for number in range(first, last + 1):
                record = self.records.setdefault(number, Record())
                # As in Kafka, a batch in which the log starts may be acquired as a whole.
                if number < self.log_start:
                    self.is_exact = False
                else:
                    assert record.state == AVAILABLE
                    assert number >= records.start_offset
                    assert record.deliveries + 1 == deliveries
                record.state, record.is_gap = ACQUIRED, False
                record.deliveries = deliveries
                record.member = member
                record.lock_ends_ms = self.now_ms + LOCK_MS
                count += 1
        for number in range(records.start_offset, records.end_offset + 1):
            if len(records.batches):
                self.records.setdefault(number, Record())
        return count

    def _own(self, member, drawn, length):
        """Return where records begin that the member has one after the other, and how many, if it has some."""
        start = self.bench.records.start_offset
        owned = [n for n, one in self.records.items() if one.member == member and n >= start]
        if not owned:
            return drawn, length
        first = owned[drawn % len(owned)]
        count = next(n for n in range(1, len(owned) + 1) if first + n not in owned)
        return first, min(length, count)

    def _has_gap(self, first, last):
        """Whether a new leader knows nothing of some of these: as in Kafka, that is no error."""
        return any(n in self.records and self.records[n].is_gap for n in range(first, last + 1))

    def _owned(self, member, first, last):
        """Return the records that an acknowledgement changes, None if the member may not."""
        start = self.bench.records.start_offset
        wanted = [self.records.get(number) for number in range(max(first, start), last + 1)]
        may = all(record is not None and record.state == ACQUIRED and record.member == member for record in wanted)
        return wanted if may or last < start else None

    def acknowledge(self, member, first, kinds, is_one_for_all, is_any):
        if not is_any:
            first, length = self._own(member, first, len(kinds))
            kinds = kinds[:length]
        last = first + len(kinds) - 1
        if is_one_for_all:
            kinds = kinds[:1] * len(kinds)
        start = self.bench.records.start_offset
        if self._has_gap(first, last):
            return
        wanted = self._owned(member, first, last)
        told = kinds[:1] if is_one_for_all else kinds
        try:
            error = self.bench.acknowledge(first, last, *told, member=member)
        except FailedRequestError:
            assert wanted is None
            assert first < start <= last
            return
        if wanted is None:
            assert error in (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST)
            # What stood before the record that may not be acknowledged is renewed all the same, as in Kafka.
            self._renew_those_of_a_refused_request(member, first, kinds)
            return
        assert error is None
        for record, kind in zip(wanted, kinds[max(start - first, 0) :], strict=False):
            self._acknowledged(record, kind)
        if last >= start and set(kinds[max(start - first, 0) :]) != {RENEW}:
            self._was_written()

    def _was_written(self):
        """Note that the start offset has followed all that is done.

        It has not where a member has records before it, or where a new leader has not read all gaps.
        """
        is_held_up = self.bench.records.active_gap_window is not None or any(
            self.records[number].state == ACQUIRED for number in range(self.log_start)
        )
        self.is_exact = self.is_exact or not is_held_up

    def _renew_those_of_a_refused_request(self, member, first, kinds):
        records = self.bench.records
        last = first + len(kinds) - 1
        floor = records.batches.floor(first)
        if floor is None and first < records.start_offset <= last:
            floor = records.batches.floor(records.start_offset)
        if floor is None or records.batches.between(floor.first_offset, last)[-1].last_offset < last:
            return
        for number, kind in enumerate(kinds, first):
            record = self.records.get(number)
            if number < records.start_offset:
                continue
            if record is None or record.state != ACQUIRED or record.member != member:
                return
            if kind == RENEW:
                record.lock_ends_ms = self.now_ms + LOCK_MS

    def _acknowledged(self, record, kind):
        if kind == RENEW:
            record.lock_ends_ms = self.now_ms + LOCK_MS
        else:
            record.leave(STATE_OF[kind], self.limit)

    def acknowledge_slowly(self, member, first, length, kind, late_ms, fails):
        """The share coordinator is slow; when it fails, the member has its records again, if they are still its own."""
        first, length = self._own(member, first, length)
        last = first + length - 1
        wanted = None if self._has_gap(first, last) else self._owned(member, first, last)
        if not wanted or last < self.bench.records.start_offset:
            return
        self.coordinator.is_held = True
        assert self.bench.acknowledge(first, last, kind, member=member) == "pending"
        numbers = range(last - len(wanted) + 1, last + 1)
        assert all(not self.bench.states_at(number).is_acquirable for number in numbers)
        self.advance(late_ms, besides=wanted)
        self.coordinator.release(ErrorCode.COORDINATOR_NOT_AVAILABLE if fails else ErrorCode.NONE)
        for record in wanted:
            if not fails:
                record.leave(STATE_OF[kind], self.limit)
            elif record.lock_ends_ms <= self.now_ms:
                record.leave(AVAILABLE, self.limit)
        if fails:
            self.is_exact = False
        else:
            self._was_written()

    def deliver_in_vain(self, member, times, is_late):
        """The member acquires what there is, and does not manage to acknowledge it."""
        for _ in range(times):
            self.acquire(member, 4, 500, False, 500)
            if is_late:
                self.advance(LOCK_MS)
            else:
                self.release(member)

    def release(self, member):
        assert self.bench.release(member) is None
        start = self.bench.records.start_offset
        for number, record in self.records.items():
            if record.state == ACQUIRED and record.member == member:
                record.leave(AVAILABLE if number >= start else ARCHIVED, self.limit)

    # -- time, and other leaders ------------------------------------------------------------------

    def advance(self, by_ms, besides=()):
        """Let locks end, but not on records whose acknowledgement is being written."""
        start = self.bench.records.start_offset
        self.bench.timer.advance(by_ms)
        for number, record in self.records.items():
            if record in besides or record.lock_ends_ms is None:
                continue
            if record.lock_ends_ms <= self.now_ms:
                record.leave(AVAILABLE if number >= start else ARCHIVED, self.limit)

    def change_leader(self):
        """The next leader knows what was written; what was only acquired is delivered as if it never was."""
        kept = {
            number: Record(NAME_OF[state], deliveries)
            for first, last, state, deliveries in self.coordinator.kept
            for number in range(first, last + 1)
        }
        start = self.coordinator.start_offset
        self.bench = keeping_bench(self.configs, self.coordinator)
        self.records = {
            number: kept.get(number, Record(is_gap=True)) if number >= start else Record(ARCHIVED)
            for number in range(max([start - 1, *kept]) + 1)
        }
        self.is_exact = self.bench.records.active_gap_window is None

    # -- what must hold ---------------------------------------------------------------------------

    def states_are_those_of_the_model(self):
        records = self.bench.records
        for batch in records.batches:
            for first, last, state in batch.parts():
                for number in range(max(first, records.start_offset), last + 1):
                    record = self.records[number]
                    found = (state.state.name, state.delivery_count, state.member_id)
                    assert found == (record.state, record.deliveries, record.member), number
                    assert (state.lock is not None) == (record.state == ACQUIRED)

    def start_offset_is_not_behind_a_record_that_is_not_done(self):
        start = self.bench.records.start_offset
        numbers = sorted(self.records)
        not_done = [n for n in numbers if self.records[n].state not in DONE]
        if self.is_exact:
            assert start == (not_done[0] if not_done else len(numbers))
        else:
            assert all(n >= start or n < self.log_start for n in not_done)

    def records_that_are_done_are_counted(self):
        records = self.bench.records
        start = records.start_offset
        in_flight = [n for n in self.records if n >= start] if records.batches else []
        done = sum(self.records[n].state in DONE for n in in_flight)
        assert records.delivery_complete_count == done

    def each_lock_is_one_task_or_shared_by_its_batch(self):
        locks = {
            id(state.lock)
            for batch in self.bench.records.batches
            for _, _, state in batch.parts()
            if state.lock is not None
        }
        assert self.bench.timer.size() == len(locks)

    def _is_stuck(self):
        """Whether the next fetch is for a record before the log's start, for ever, as in Kafka.

        That record is in a gap that a new leader was to read, or was left over of a batch in which the log starts.
        """
        records = self.bench.records
        offset = records.next_fetch_offset()
        window = records.active_gap_window
        is_in_gap = window is not None and window.gap_start_offset == offset
        return offset < self.log_start <= records.start_offset and (
            is_in_gap or self.bench.states_at(offset).is_acquirable
        )

    def drain(self):
        """Whatever came before: one member can read all that is left, and then nothing is in flight."""
        self.advance(LOCK_MS)
        for _ in range(200):
            offset = self.bench.records.next_fetch_offset()
            if offset > (self.log[-1][1] if self.log else -1):
                break
            if offset < self.log_start:
                self._follow_log_start()
                if self._is_stuck():
                    return
                continue
            acquired = self.bench.acquire(*self._fetched(offset, 4), at=offset)
            for first, last, _ in acquired:
                assert self.bench.acknowledge(first, last, 1) is None
            if not acquired:
                # Too many are in flight behind a record from before the log's start, which is locked.
                self.bench.timer.advance(LOCK_MS)
        end = self.log[-1][1] + 1 if self.log else 0
        assert self.bench.records.next_fetch_offset() == end


class Run:
    """Steps that a seed draws."""

    def __init__(self, seed):
        self.rng = Random(seed)
        rng = self.rng
        self.model = SharePartitionAgainstDictionary(rng.choice((2, 3, 6)), rng.choice((100, 2_000)))
        self.weights = {
            self.produce: 5,
            self.acquire: 9,
            self.acknowledge: 9,
            self.acknowledge_slowly: 4,
            self.release: 2,
            self.deliver_in_vain: 1,
            self.advance: 4,
            self.delete_records: rng.choice((0, 0, 1)),
            self.change_leader: rng.choice((0, 1)),
        }

    def step(self):
        (action,) = self.rng.choices(list(self.weights), list(self.weights.values()))
        action()
        self.model.states_are_those_of_the_model()
        self.model.start_offset_is_not_behind_a_record_that_is_not_done()
        self.model.records_that_are_done_are_counted()
        self.model.each_lock_is_one_task_or_shared_by_its_batch()

    def produce(self):
        self.model.produce(self.rng.choices(SIZES, k=self.rng.randint(1, 3)))

    def acquire(self):
        rng = self.rng
        wanted = rng.choice((1, 2, 5, 12, 500))
        batches, batch_size = rng.randint(1, 4), rng.choice((1, 4, 8, 500))
        self.model.acquire(rng.choice(MEMBERS), batches, wanted, rng.random() < 0.4, batch_size)

    def acknowledge(self):
        rng = self.rng
        kinds = rng.choices(range(RENEW + 1), (1, 4, 4, 1, 2), k=rng.choice((1, 2, 3, 8, 40)))
        first = rng.randrange(len(self.model.records) + 3)
        is_one_for_all, is_any = rng.random() < 0.5, rng.random() < 0.25
        self.model.acknowledge(rng.choice(MEMBERS), first, kinds, is_one_for_all, is_any)

    def acknowledge_slowly(self):
        rng = self.rng
        first = rng.randrange(len(self.model.records) + 3)
        length, kind = rng.choice((1, 2, 3, 8, 40)), rng.choice((0, 1, 2, 3))
        late_ms, fails = rng.choice((0, 1, LOCK_MS)), rng.random() < 0.5
        self.model.acknowledge_slowly(rng.choice(MEMBERS), first, length, kind, late_ms, fails)

    def release(self):
        self.model.release(self.rng.choice(MEMBERS))

    def deliver_in_vain(self):
        rng = self.rng
        self.model.deliver_in_vain(rng.choice(MEMBERS), rng.randint(1, 4), rng.random() < 0.5)

    def advance(self):
        self.model.advance(self.rng.choice((1, 5_000, 9_999, 15_000, 29_999)))

    def delete_records(self):
        if self.model.log:
            self.model.delete_records(self.rng.randint(1, 9))

    def change_leader(self):
        self.model.change_leader()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_share_partition_does_as_the_model(seed):
    run = Run(seed)
    for _ in range(STEPS):
        run.step()
    run.model.drain()
