"""A share partition against a dictionary with the state of each record by itself."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker_sim.errors import ErrorCode
from tests.broker_sim.share_partition.conftest import Bench

MEMBERS = st.sampled_from(["first", "second", "third"])
LOCK_MS = 30_000
AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED = "AVAILABLE", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVED"
DONE = (ACKNOWLEDGED, ARCHIVED)
STATE_OF = {0: ARCHIVED, 1: ACKNOWLEDGED, 2: AVAILABLE, 3: ARCHIVED}


class _Record:
    """What the model knows of one record."""

    def __init__(self):
        self.state = AVAILABLE
        self.deliveries = 0
        self.member = ""
        self.lock_ends_ms = None


class SharePartitionAgainstDictionary(RuleBasedStateMachine):
    """The model has no batches: it is told which records were acquired, and checks that they could be."""

    @initialize(limit=st.sampled_from([2, 3, 6]))
    def start(self, limit):
        self.limit = limit
        self.bench = Bench()
        self.bench.configs["share.delivery.count.limit"] = str(limit)
        self.bench.open()
        self.records = {}
        self.log = []
        self.log_start = 0
        self.is_held = False
        self.pending = []

    # -- the log ----------------------------------------------------------------------------------

    @rule(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=3))
    def produce(self, sizes):
        for size in sizes:
            first = self.log[-1][1] + 1 if self.log else 0
            self.log.append((first, first + size - 1))

    def _fetched(self, offset, batches):
        """Return so many batches of the log, from the one on that has the offset."""
        return [batch for batch in self.log if batch[1] >= offset][:batches]

    # -- members ----------------------------------------------------------------------------------

    @rule(
        member=MEMBERS,
        batches=st.integers(1, 4),
        max_records=st.integers(1, 12),
        is_limit=st.booleans(),
        batch_size=st.integers(1, 8),
    )
    def acquire(self, member, batches, max_records, is_limit, batch_size):
        records = self.bench.records
        offset = records.next_fetch_offset()
        available = [n for n, record in self.records.items() if record.state == AVAILABLE]
        assert offset == min(available, default=len(self.records))
        fetched = self._fetched(offset, batches)
        if not fetched:
            return
        acquired = self.bench.acquire(
            *fetched,
            member=member,
            max_records=max_records,
            is_limit=is_limit,
            batch_size=batch_size,
            at=offset,
        )
        now_ms = self.bench.timer.clock.now_ms()
        count = 0
        for first, last, deliveries in acquired:
            for number in range(first, last + 1):
                record = self.records.setdefault(number, _Record())
                assert record.state == AVAILABLE
                record.state = ACQUIRED
                record.deliveries += 1
                assert record.deliveries == deliveries
                record.member = member
                record.lock_ends_ms = now_ms + LOCK_MS
                count += 1
        for number in range(records.start_offset, records.end_offset + 1):
            if len(records.batches):
                self.records.setdefault(number, _Record())
        if is_limit:
            assert count <= max_records
        is_next_available = offset in self.records and self.records[offset].state == AVAILABLE
        assert count > 0 or not is_next_available

    @rule(
        member=MEMBERS,
        first=st.integers(0, 30),
        length=st.integers(1, 8),
        kind=st.sampled_from([0, 1, 2, 3]),
    )
    def acknowledge(self, member, first, length, kind):
        last = first + length - 1
        start = self.bench.records.start_offset
        wanted = [self.records.get(number) for number in range(max(first, start), last + 1)]
        may = last < start or all(
            record is not None and record.state == ACQUIRED and record.member == member
            for record in wanted
        )
        error = self.bench.acknowledge(first, last, kind, member=member)
        if not may:
            codes = (ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST)
            assert error in codes
            return
        assert error is None
        if last >= start:
            for record in wanted:
                self._leave(record, STATE_OF[kind])

    @rule(member=MEMBERS, times=st.integers(1, 4), is_late=st.booleans())
    def deliver_in_vain(self, member, times, is_late):
        """The member acquires what there is, and does not manage to acknowledge it."""
        for _ in range(times):
            self.acquire(member, 4, 500, False, 500)
            if is_late:
                self.advance(LOCK_MS)
            else:
                self.release(member)

    @rule(member=MEMBERS)
    def release(self, member):
        assert self.bench.release(member) is None
        for record in self.records.values():
            if record.state == ACQUIRED and record.member == member:
                self._leave(record, AVAILABLE)

    def _leave(self, record, state):
        if state == AVAILABLE and record.deliveries >= self.limit:
            state = ARCHIVED
        record.state, record.member, record.lock_ends_ms = state, "", None

    # -- time -------------------------------------------------------------------------------------

    @rule(by_ms=st.sampled_from([1, 9_999, 15_000, 29_999, LOCK_MS]))
    def advance(self, by_ms):
        self.bench.timer.advance(by_ms)
        now_ms = self.bench.timer.clock.now_ms()
        for record in self.records.values():
            if record.lock_ends_ms is not None and record.lock_ends_ms <= now_ms:
                self._leave(record, AVAILABLE)

    # -- what must hold ---------------------------------------------------------------------------

    @invariant()
    def states_are_those_of_the_model(self):
        records = self.bench.records
        for batch in records.batches:
            for first, last, state in batch.parts():
                for number in range(max(first, records.start_offset), last + 1):
                    record = self.records[number]
                    found = (state.state.name, state.delivery_count, state.member_id)
                    assert found == (record.state, record.deliveries, record.member), number
                    assert (state.lock is not None) == (record.state == ACQUIRED)

    @invariant()
    def start_offset_is_at_the_first_record_that_is_not_done(self):
        records = self.bench.records
        numbers = sorted(self.records)
        not_done = [n for n in numbers if self.records[n].state not in DONE]
        expected = not_done[0] if not_done else (numbers[-1] + 1 if numbers else 0)
        assert records.start_offset == expected

    @invariant()
    def records_that_are_done_are_counted(self):
        records = self.bench.records
        start = records.start_offset
        in_flight = [n for n in self.records if n >= start] if records.batches else []
        done = sum(self.records[n].state in DONE for n in in_flight)
        assert records.delivery_complete_count == done

    @invariant()
    def each_lock_is_one_task_or_shared_by_its_batch(self):
        locks = {
            id(state.lock)
            for batch in self.bench.records.batches
            for _, _, state in batch.parts()
            if state.lock is not None
        }
        assert self.bench.timer.size() == len(locks)


TestSharePartitionAgainstDictionary = SharePartitionAgainstDictionary.TestCase
TestSharePartitionAgainstDictionary.settings = settings(max_examples=40, stateful_step_count=40)
