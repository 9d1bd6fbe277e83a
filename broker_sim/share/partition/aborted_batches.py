"""Leaves the records of aborted transactions out of what a member has acquired; part of `SharePartition`.

They are archived in flight: `share.isolation.level` is `read_committed`. A member that reads uncommitted records
gets them all.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.record_batch import NO_PRODUCER_ID
from broker_sim.protocol.records import read_end_txn_marker
from broker_sim.share.partition.fetched_records import AcquiredRange
from broker_sim.share.partition.record_state import RecordState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker_sim.share.partition.acquisition_lock import AcquisitionLocks
    from broker_sim.share.partition.fetched_records import FetchedBatch, FetchedRecords
    from broker_sim.share.partition.in_flight_records import InFlightRecords


def leave_out_aborted(
    records: InFlightRecords, locks: AcquisitionLocks, fetched: FetchedRecords, acquired: Iterable[AcquiredRange]
) -> list[AcquiredRange]:
    """Archive the acquired records of aborted transactions; return what is left.

    Raises ApiError with UNKNOWN_SERVER_ERROR, as Kafka does, for a batch that begins before all in flight.
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
    """Yield the batches that transactions wrote which were aborted later."""
    beginning = deque(sorted(fetched.aborted_transactions, key=lambda one: one.first_offset))
    aborted_producers: set[int] = set()
    for batch in fetched.batches:
        header = batch.header
        if header.producer_id == NO_PRODUCER_ID:
            continue
        while beginning and beginning[0].first_offset <= header.last_offset:
            aborted_producers.add(beginning.popleft().producer_id)
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
    """Yield what is left of the ranges without these batches; both are in order."""
    index = 0
    for one in acquired:
        first_offset = one.first_offset
        while index < len(aborted) and aborted[index].last_offset < first_offset:
            index += 1
        following = index
        while following < len(aborted) and aborted[following].base_offset <= one.last_offset:
            batch = aborted[following]
            following += 1
            if first_offset < batch.base_offset:
                yield AcquiredRange(first_offset, batch.base_offset - 1, one.delivery_count)
            first_offset = batch.last_offset + 1
        if first_offset <= one.last_offset:
            yield AcquiredRange(first_offset, one.last_offset, one.delivery_count)
