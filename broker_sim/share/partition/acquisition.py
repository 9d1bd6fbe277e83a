"""Acquires fetched records for a member; mirrors `SharePartition.acquire`.

Records are fetched and in flight in whole batches: a member gets all records of a batch, even beyond its maximum,
unless it limits the number of records (KIP-1206). Then a batch is split, and the rest of it stays available.

1. The fetched records are compared with the batches in flight.
2. Where nothing is in flight, new batches are created: after the last one, and in the gap window.
3. Available batches in flight are delivered again. A batch is split if only a part of it is available or fetched.
4. Records with many deliveries are delivered in ever smaller numbers, and the last time one by one, so that a record
   on which the member fails does not affect the others.
5. Records of aborted transactions are archived (`leave_out_aborted`), unless the group reads uncommitted records.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.record_batch import NO_PRODUCER_ID
from broker_sim.protocol.records import read_end_txn_marker
from broker_sim.share.partition.fetched_records import AcquiredRange
from broker_sim.share.partition.in_flight_batch import InFlightBatch
from broker_sim.share.partition.in_flight_state import InFlightState
from broker_sim.share.partition.record_state import RecordState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker_sim.share.partition.acquisition_lock import AcquisitionLocks
    from broker_sim.share.partition.fetched_records import FetchedBatch, FetchedRecords
    from broker_sim.share.partition.in_flight_records import InFlightRecords

MINIMUM_THROTTLE_LIMIT: Final = 2
"""Minimum number of deliveries after which records are delivered in smaller numbers."""


class AcquireLimits(NamedTuple):
    """The member that acquires records, and its limits."""

    member_id: str
    max_records: int
    batch_size: int
    """Preferred number of records per acquired batch."""
    is_limit: bool = False
    """Whether `max_records` is a strict limit, even if that splits a batch (`share.acquire.mode`)."""


class Acquisition:
    """One acquisition; call `run` once."""

    __slots__ = (
        "_acquired",
        "_fetched",
        "_first_offset",
        "_last_offset",
        "_limits",
        "_locks",
        "_max_delivery_count",
        "_records",
        "_remaining",
        "_throttle_limit",
    )

    def __init__(
        self,
        records: InFlightRecords,
        locks: AcquisitionLocks,
        limits: AcquireLimits,
        fetched: FetchedRecords,
        max_delivery_count: int,
    ) -> None:
        self._records = records
        self._locks = locks
        self._limits = limits
        self._fetched = fetched
        self._max_delivery_count = max_delivery_count
        self._throttle_limit = max(MINIMUM_THROTTLE_LIMIT, (max_delivery_count + 1) // 2)
        self._first_offset = fetched.batches[0].base_offset
        self._last_offset = fetched.batches[-1].last_offset
        self._remaining = 0
        self._acquired: list[AcquiredRange] = []

    def run(self, fetch_offset: int, max_in_flight_records: int) -> list[AcquiredRange]:
        """Acquire records of a fetch from `fetch_offset`; return the acquired ranges."""
        records = self._records
        if self._last_offset < records.start_offset or not self._limit(fetch_offset, max_in_flight_records):
            return []
        records.archive_stale(fetch_offset, self._first_offset, self._locks)
        base_offset = self._base_offset()
        overlapping = records.batches.between(min(self._first_offset, base_offset), self._last_offset)
        if not overlapping:
            self._acquire_new(base_offset, self._last_offset)
            return self._acquired
        end_of_overlap = overlapping[-1].last_offset
        self._acquire_again(base_offset, overlapping)
        if self._remaining > 0 and end_of_overlap < self._last_offset:
            self._acquire_new(end_of_overlap + 1, self._last_offset)
        if self._acquired:
            records.narrow_gap_window(self._acquired[-1].last_offset + 1)
        return self._acquired

    def _limit(self, fetch_offset: int, max_in_flight_records: int) -> bool:
        """Set the number and last offset of the records that may be acquired; return False if there are none.

        At the limit of records in flight, only records already in flight can be acquired.
        """
        records, max_records = self._records, self._limits.max_records
        self._remaining = min(max_records, max_in_flight_records - records.count)
        if self._remaining <= 0 and fetch_offset <= records.end_offset:
            self._remaining = min(max_records, records.end_offset - fetch_offset + 1)
            self._last_offset = min(self._last_offset, records.end_offset)
        return self._remaining > 0

    def _base_offset(self) -> int:
        """Return the first fetched offset, aligned to the batch in flight that contains it."""
        floor = self._records.batches.floor(self._first_offset)
        if floor is None:
            return max(self._first_offset, self._records.start_offset)
        if floor.last_offset >= self._first_offset:
            return floor.first_offset
        return self._first_offset

    # -- batches in flight ----------------------------------------------------------------------

    def _acquire_again(self, base_offset: int, overlapping: Sequence[InFlightBatch]) -> None:
        """Acquire available records of these batches, and records between them inside the gap window."""
        gap_start = base_offset
        for batch in overlapping:
            if self._remaining <= 0:
                return
            if self._records.active_gap_window is not None:
                if gap_start < batch.first_offset:
                    self._acquire_new(gap_start, batch.first_offset - 1)
                gap_start = batch.last_offset + 1
                if self._remaining <= 0:
                    return
            is_throttled = self._is_throttled(batch)
            if is_throttled and self._acquired:
                self._remaining = 0
                return
            count = self._acquire_batch(batch, is_throttled)
            if is_throttled and count > 0:
                self._remaining = 0
                return
            self._remaining -= count

    def _acquire_batch(self, batch: InFlightBatch, is_throttled: bool) -> int:
        """Acquire the batch or a part of it; return the number of acquired records."""
        whole = batch.batch_state
        if whole is not None and not whole.is_acquirable:
            return 0
        is_limited = self._limits.is_limit and batch.record_count > self._remaining
        is_fetched = batch.is_within(self._first_offset, self._last_offset)
        if whole is None or not is_fetched or is_limited or is_throttled:
            batch.split(self._locks)
            return self._acquire_some(batch)
        whole.acquire(self._limits.member_id)
        whole.lock = self._locks.lock(self._limits.member_id, batch.first_offset, batch.last_offset)
        self._acquired.append(AcquiredRange(batch.first_offset, batch.last_offset, whole.delivery_count))
        return batch.record_count

    def _acquire_some(self, batch: InFlightBatch) -> int:
        """Acquire available records of a split batch; return their number."""
        member_id = self._limits.member_id
        isolates_last = self._max_delivery_count > MINIMUM_THROTTLE_LIMIT
        max_count = self._remaining if self._limits.is_limit else batch.record_count
        is_throttled = False
        count = 0
        acquired: list[AcquiredRange] = []
        for first_offset, last_offset, state in batch.parts_in(self._first_offset, self._last_offset):
            if not state.is_acquirable:
                continue
            deliveries = state.delivery_count
            is_last_delivery = isolates_last and deliveries == self._max_delivery_count - 1
            if is_last_delivery and acquired:
                break  # it is delivered alone next time
            if deliveries >= self._throttle_limit and not is_throttled:
                is_throttled = True
                halvings = deliveries - self._throttle_limit + 1
                throttled_count = max(1, batch.record_count >> halvings)
                if throttled_count > count:
                    max_count = min(max_count, throttled_count)
            record_count = 1 if is_last_delivery else min(last_offset - first_offset + 1, max_count - count)
            last_acquired = first_offset + record_count - 1
            own = batch.cut_out(first_offset, last_acquired, self._locks)
            own.acquire(member_id)
            own.lock = self._locks.lock(member_id, first_offset, last_acquired)
            acquired.append(AcquiredRange(first_offset, last_acquired, own.delivery_count))
            count += record_count
            if is_last_delivery or count == max_count:
                break
        accumulate(self._acquired, acquired)
        return count

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        """Whether the batch has acquirable records whose delivery count has reached the throttle limit."""
        if batch.batch_state is not None:
            states = [batch.batch_state]
        else:
            in_range = batch.parts_in(self._first_offset, self._last_offset)
            states = [state for _, _, state in in_range]
        return any(state.delivery_count >= self._throttle_limit for state in states if state.is_acquirable)

    # -- new batches ----------------------------------------------------------------------------

    def _acquire_new(self, first_offset: int, last_offset: int) -> None:
        """Create batches for records that are not in flight yet."""
        records, is_limit = self._records, self._limits.is_limit
        if not records.batches and records.end_offset > first_offset:
            first_offset = records.end_offset  # earlier records are completed
        limit = self._remaining
        if limit < last_offset - first_offset + 1:
            end_of_batch = self._fetched.last_offset_of_batch_with(first_offset + limit - 1)
            in_window = records.active_gap_window is not None
            last_offset = min(end_of_batch, last_offset) if in_window else end_of_batch
        if is_limit:
            acquired = [self._begin_limited(first_offset, last_offset, limit)]
        else:
            acquired = self._divide(first_offset, last_offset)
            for acquired_range in acquired:
                self._begin(acquired_range.first_offset, acquired_range.last_offset)
        if records.batches.first.first_offset == first_offset:
            records.start_offset = first_offset
        records.end_offset = max(records.end_offset, last_offset)
        if is_limit:
            last_offset = acquired[0].last_offset
        records.narrow_gap_window(last_offset + 1)
        self._acquired += acquired
        self._remaining -= last_offset - first_offset + 1

    def _divide(self, first_offset: int, last_offset: int) -> list[AcquiredRange]:
        """Return ranges of at least `batch_size` records that begin at batch boundaries of the log."""
        batch_size = self._limits.batch_size
        ranges: list[AcquiredRange] = []
        start = first_offset
        if last_offset - first_offset + 1 > batch_size:
            batches = self._fetched.batches
            for index in range(max(self._fetched.index_of(first_offset), 0), len(batches)):
                base_offset = batches[index].base_offset
                if base_offset > last_offset:
                    break
                if base_offset - start >= batch_size:
                    ranges.append(AcquiredRange(start, base_offset - 1, 1))
                    start = base_offset
        ranges.append(AcquiredRange(start, last_offset, 1))
        return ranges

    def _begin_limited(self, first_offset: int, last_offset: int, limit: int) -> AcquiredRange:
        """Create one batch, of which the member acquires at most `limit` records."""
        if last_offset - first_offset + 1 <= limit:
            self._begin(first_offset, last_offset)
            return AcquiredRange(first_offset, last_offset, 1)
        last_acquired = first_offset + limit - 1
        state = InFlightState(RecordState.ACQUIRED, 1, self._limits.member_id)
        batch = InFlightBatch(first_offset, last_offset, state)
        batch.split_after(last_acquired, self._locks)
        self._records.finds_next_fetch_offset = True
        self._records.batches.put(batch)
        return AcquiredRange(first_offset, last_acquired, 1)

    def _begin(self, first_offset: int, last_offset: int) -> None:
        member_id = self._limits.member_id
        lock = self._locks.lock(member_id, first_offset, last_offset)
        state = InFlightState(RecordState.ACQUIRED, 1, member_id, lock)
        self._records.batches.put(InFlightBatch(first_offset, last_offset, state))


def accumulate(ranges: list[AcquiredRange], more: Sequence[AcquiredRange]) -> None:
    """Add ranges, and join adjacent ones with the same delivery count."""
    combined: AcquiredRange | None = None
    for following in more:
        if combined is None:
            combined = following
        elif following.first_offset == combined.last_offset + 1 and following.delivery_count == combined.delivery_count:
            combined = combined._replace(last_offset=following.last_offset)
        else:
            ranges.append(combined)
            combined = following
    if combined is not None:
        ranges.append(combined)


def leave_out_aborted(
    records: InFlightRecords, locks: AcquisitionLocks, fetched: FetchedRecords, acquired: Iterable[AcquiredRange]
) -> list[AcquiredRange]:
    """Archive acquired records of aborted transactions; return the ranges without them.

    Raises ApiError with UNKNOWN_SERVER_ERROR, as Kafka does, if an aborted batch begins before all batches in flight.
    """
    aborted = list(_aborted_batches(fetched))
    for batch in aborted:
        floor = records.batches.floor(batch.base_offset)
        if floor is None:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "Batch record not found. The request batch offsets are not found in the cache.",
            )
        records.archive(
            records.batches.between(floor.first_offset, batch.last_offset),
            batch.base_offset,
            batch.last_offset + 1,
            RecordState.ACQUIRED,
            locks,
            counts=True,
        )
    return list(_without(acquired, aborted))


def _aborted_batches(fetched: FetchedRecords) -> Iterator[FetchedBatch]:
    """Yield the batches of aborted transactions."""
    transactions = deque(sorted(fetched.aborted_transactions, key=lambda transaction: transaction.first_offset))
    aborted_producers: set[int] = set()
    for batch in fetched.batches:
        header = batch.header
        if header.producer_id == NO_PRODUCER_ID:
            continue
        while transactions and transactions[0].first_offset <= header.last_offset:
            aborted_producers.add(transactions.popleft().producer_id)
        if _is_abort_marker(batch):
            aborted_producers.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in aborted_producers:
            yield batch


def _is_abort_marker(batch: FetchedBatch) -> bool:
    header = batch.header
    if not header.is_control or not header.records_count:
        return False
    return not read_end_txn_marker(batch.data, header).is_commit


def _without(acquired: Iterable[AcquiredRange], aborted: Sequence[FetchedBatch]) -> Iterator[AcquiredRange]:
    """Yield the parts of the ranges outside the aborted batches; both are sorted."""
    index = 0
    for range_ in acquired:
        first_offset = range_.first_offset
        while index < len(aborted) and aborted[index].last_offset < first_offset:
            index += 1
        following = index
        while following < len(aborted) and aborted[following].base_offset <= range_.last_offset:
            batch = aborted[following]
            following += 1
            if first_offset < batch.base_offset:
                yield AcquiredRange(first_offset, batch.base_offset - 1, range_.delivery_count)
            first_offset = batch.last_offset + 1
        if first_offset <= range_.last_offset:
            yield AcquiredRange(first_offset, range_.last_offset, range_.delivery_count)
