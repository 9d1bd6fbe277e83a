"""Ends acquisitions of records: by acknowledgement, by release when a session closes, or by lock timeout.

Mirrors the part of `SharePartition` from `acknowledge` on. Each of them returns state updates, to be written.

A batch in the request may cover one batch in flight, a part of it, or several. The member must have acquired all of
them; otherwise the request fails and its changes are rolled back. Error messages are Kafka's, because clients see them.

Records are not visited one by one: adjacent batches with the same type are joined (`_joined`), and so are adjacent
records in a batch with one type per record. Deliberate difference: a request with more than `MAX_CHANGES` different
changes fails.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.share.partition.in_flight_state import EMPTY_MEMBER_ID
from broker_sim.share.partition.record_state import AcknowledgeType, RecordState
from broker_sim.share.share_state import StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from broker_sim.share.partition.acquisition_lock import AcquisitionLocks
    from broker_sim.share.partition.in_flight_batch import InFlightBatch
    from broker_sim.share.partition.in_flight_records import InFlightRecords
    from broker_sim.share.partition.in_flight_state import InFlightState
    from broker_sim.share.partition.record_state import DeliveryLimit

MAX_CHANGES: Final = 2_500
"""Maximum number of record ranges that one request may change, in all partitions together."""

_CANNOT_COMPLETE = "The record state is invalid. The acknowledgement of delivery could not be completed."
_NOT_FOUND = "Batch record not found. "


class FailedRequestError(Exception):
    """Fails the whole request with UNKNOWN_SERVER_ERROR; as in Kafka, its changes are not rolled back."""


class AcknowledgementBatch(NamedTuple):
    """The acknowledgement of a range of records, with one type for all or one per record."""

    first_offset: int
    last_offset: int
    acknowledge_types: Sequence[int]

    def ranges(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, int, int]]:
        """Yield (first offset, last offset, type) of each range with the same type between these offsets."""
        types = self.acknowledge_types
        if len(types) == 1:
            yield first_offset, last_offset, types[0]
            return
        start = first_offset - self.first_offset
        type_of_each = bytes(types[start : last_offset - self.first_offset + 1])
        for same in _SAME.finditer(type_of_each):
            yield first_offset + same.start(), first_offset + same.end() - 1, type_of_each[same.start()]


_SAME: Final = re.compile(rb"(.)\1*", re.DOTALL)


class StateUpdate(NamedTuple):
    """A state change that is being written; mirrors `PersisterBatch`."""

    state: InFlightState
    written: StateBatch
    is_rejected: bool = False
    """Whether a member has rejected the records, as opposed to reaching their delivery limit."""

    @classmethod
    def of(cls, first_offset: int, last_offset: int, state: InFlightState, *, is_rejected: bool = False) -> StateUpdate:
        """Return the update with the records' current state."""
        batch = StateBatch(first_offset, last_offset, int(state.state), state.delivery_count)
        return cls(state, batch, is_rejected)


def joined_batches(batches: Iterable[StateBatch]) -> tuple[StateBatch, ...]:
    """Return sorted batches, with adjacent ones of the same state and count joined.

    The share coordinator would do the same.
    """
    combined: list[StateBatch] = []
    for batch in batches:
        last = combined[-1] if combined else None
        if last is not None and last.last_offset + 1 == batch.first_offset and last[2:] == batch[2:]:
            combined[-1] = last._replace(last_offset=batch.last_offset)
        else:
            combined.append(batch)
    return tuple(combined)


class ChangeCount:
    """Counts the record ranges changed by one request, in all partitions."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def count_one(self) -> None:
        """Count one more range. Raises ApiError with UNKNOWN_SERVER_ERROR above `MAX_CHANGES`."""
        if self.count == MAX_CHANGES:
            text = f"A request changes more than {MAX_CHANGES} ranges of records."
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
        self.count += 1


def _invalid_state(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD_STATE, text)


class Acknowledgement:
    """Applies the acknowledgements of one member; `updates` has its changes, even after an error."""

    __slots__ = ("_changes", "_is_renewable", "_limit", "_locks", "_member_id", "_records", "updates")

    def __init__(
        self,
        records: InFlightRecords,
        locks: AcquisitionLocks,
        member_id: str,
        limit: DeliveryLimit,
        changes: ChangeCount,
        *,
        is_renewable: bool,
    ) -> None:
        self._records = records
        self._locks = locks
        self._member_id = member_id
        self._limit = limit
        self._is_renewable = is_renewable
        self._changes = changes
        self.updates: list[StateUpdate] = []

    def acknowledge(self, batches: Sequence[AcknowledgementBatch]) -> None:
        """Change the states of the acknowledged records.

        Raises ApiError: INVALID_RECORD_STATE, INVALID_REQUEST, UNKNOWN_SERVER_ERROR above `MAX_CHANGES`;
        FailedRequestError for records around the start offset if nothing is in flight there.
        """
        index = 0
        while index < len(batches):
            batch = batches[index]
            if batch.last_offset < self._records.start_offset:
                index += 1
                continue
            count = self._joined(batches, index)
            starts: list[int] = []
            if count > 1:
                same = batches[index : index + count]
                starts = [joined.first_offset for joined in same]
                batch = AcknowledgementBatch(batch.first_offset, same[-1].last_offset, batch.acknowledge_types)
            for in_flight in self._in_flight(batch):
                self._acknowledge_in_flight(batch, in_flight, starts)
            index += count

    def _joined(self, batches: Sequence[AcknowledgementBatch], index: int) -> int:
        """Return the number of batches from `index` on that are adjacent, in flight and of the same type."""
        records = self._records
        first_offset, last_offset, types = batches[index]
        floor = records.batches.floor(first_offset)
        if first_offset < records.start_offset or floor is None or len(types) > 1:
            return 1
        end = floor.last_offset
        following = index
        while True:
            while end < last_offset:
                higher = records.batches.higher(end)
                if higher is None or higher.first_offset > end + 1:
                    return max(following - index, 1)
                end = higher.last_offset
            following += 1
            if following == len(batches):
                return following - index
            batch = batches[following]
            if batch.first_offset != last_offset + 1 or batch.acknowledge_types != types:
                return following - index
            last_offset = batch.last_offset

    def _in_flight(self, batch: AcknowledgementBatch) -> Sequence[InFlightBatch]:
        """Return the batches in flight that the acknowledged batch covers. Raises as `acknowledge`."""
        records = self._records
        floor = records.batches.floor(batch.first_offset)
        if floor is None and records.is_start_within(batch.first_offset, batch.last_offset):
            floor = records.batches.floor(records.start_offset)
            if floor is None:
                raise FailedRequestError
        if floor is None:
            raise _invalid_state(f"{_NOT_FOUND}The request batch offsets are not found in the cache.")
        in_flight = records.batches.between(floor.first_offset, batch.last_offset)
        last_offset = in_flight[-1].last_offset
        if last_offset < batch.first_offset:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"{_NOT_FOUND}The first offset in request is past acquired records."
            )
        if last_offset < batch.last_offset:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"{_NOT_FOUND}The last offset in request is past acquired records."
            )
        return in_flight

    def _acknowledge_in_flight(
        self, batch: AcknowledgementBatch, in_flight: InFlightBatch, starts: Sequence[int]
    ) -> None:
        """Acknowledge a batch in flight, or the part of it that the request covers.

        `starts` are the first offsets of the request's batches that were joined into this one.
        """
        records = self._records
        if in_flight.last_offset < records.start_offset:
            return
        whole = in_flight.batch_state
        if whole is None:
            self._acknowledge_some(batch, in_flight)
            return
        self._check_owner_of_batch(whole)
        if (
            not in_flight.is_within(batch.first_offset, batch.last_offset)
            or len(batch.acknowledge_types) > 1
            or _is_any_within(starts, in_flight)
            or records.is_start_within(in_flight.first_offset, in_flight.last_offset)
        ):
            if whole.state is not RecordState.ACQUIRED:
                raise _invalid_state("The batch cannot be acknowledged. The subset batch is not in the acquired state.")
            in_flight.split(self._locks)
            self._acknowledge_some(batch, in_flight)
            return
        if whole.state is not RecordState.ACQUIRED:
            raise _invalid_state("The batch cannot be acknowledged. The batch is not in the acquired state.")
        self._changes.count_one()
        self._apply(batch.acknowledge_types[0], in_flight.first_offset, in_flight.last_offset, whole)

    def _check_owner_of_batch(self, whole: InFlightState) -> None:
        if whole.member_id == EMPTY_MEMBER_ID:
            raise _invalid_state("The batch cannot be acknowledged. The batch is not in the acquired state.")
        if whole.member_id != self._member_id:
            raise _invalid_state("Member is not the owner of batch record")
        if whole.has_ongoing_state_transition:
            raise _invalid_state(_CANNOT_COMPLETE)

    def _acknowledge_some(self, batch: AcknowledgementBatch, in_flight: InFlightBatch) -> None:
        """Acknowledge the records of a split batch that the request covers."""
        first_offset = max(batch.first_offset, in_flight.first_offset, self._records.start_offset)
        last_offset = min(batch.last_offset, in_flight.last_offset)
        for range_first, range_last, acknowledge_type in batch.ranges(first_offset, last_offset):
            for first, last, state in in_flight.parts_in(range_first, range_last):
                if state.state is not RecordState.ACQUIRED:
                    raise _invalid_state("The offset cannot be acknowledged. The offset is not acquired.")
                if state.has_ongoing_state_transition:
                    raise _invalid_state(_CANNOT_COMPLETE)
                if state.member_id != self._member_id:
                    raise _invalid_state("Member is not the owner of offset")
                self._changes.count_one()
                own = in_flight.cut_out(first, last, self._locks)
                self._apply(acknowledge_type, first, last, own)

    def _apply(self, acknowledge_type: int, first_offset: int, last_offset: int, state: InFlightState) -> None:
        """Change the state of acquired records, or renew their lock. Raises ApiError with INVALID_RECORD_STATE."""
        if acknowledge_type == AcknowledgeType.RENEW:
            if not self._is_renewable:
                raise _invalid_state("Renewing acquisition locks is not enabled for the group.")
            state.end_lock()
            state.lock = self._locks.lock(self._member_id, first_offset, last_offset)
            return
        new_state = self._limit.state_after(AcknowledgeType(acknowledge_type))
        if not state.start_state_transition(new_state, self._limit):
            raise _invalid_state("Unable to acknowledge records for the batch")
        is_rejected = acknowledge_type == AcknowledgeType.REJECT
        self.updates.append(StateUpdate.of(first_offset, last_offset, state, is_rejected=is_rejected))
        if state.is_terminal:
            self._records.delivery_complete_count += last_offset - first_offset + 1

    # -- session close --------------------------------------------------------------------------

    def release_all(self) -> None:
        """Release all records that the member has acquired; those before the start offset are archived.

        Raises ApiError with INVALID_RECORD_STATE.
        """
        records = self._records
        for in_flight in records.batches:
            whole = in_flight.batch_state
            if (
                whole is not None
                and whole.state is RecordState.ACQUIRED
                and whole.member_id == self._member_id
                and records.is_start_within(in_flight.first_offset, in_flight.last_offset)
            ):
                in_flight.split(self._locks)
            for first_offset, last_offset, state in list(in_flight.parts()):
                if not self._is_acquired(state):
                    continue
                if in_flight.batch_state is not None:
                    self._release(first_offset, last_offset, state)
                    continue
                for first, last in records.divided(first_offset, last_offset):
                    self._release(first, last, in_flight.cut_out(first, last, self._locks))

    def _is_acquired(self, state: InFlightState) -> bool:
        return state.member_id == self._member_id and state.state is RecordState.ACQUIRED

    def _release(self, first_offset: int, last_offset: int, state: InFlightState) -> None:
        records = self._records
        is_before_start = last_offset < records.start_offset
        new_state = RecordState.ARCHIVED if is_before_start else RecordState.AVAILABLE
        if not state.start_state_transition(new_state, self._limit):
            raise _invalid_state("Unable to release acquired records for the batch")
        self.updates.append(StateUpdate.of(first_offset, last_offset, state))
        if state.is_terminal:
            records.delivery_complete_count += records.count_in(first_offset, last_offset)


def _is_any_within(starts: Sequence[int], in_flight: InFlightBatch) -> bool:
    """Whether one of the sorted offsets is inside the batch, after its first offset."""
    index = bisect_right(starts, in_flight.first_offset)
    return index < len(starts) and starts[index] <= in_flight.last_offset


def time_out(
    records: InFlightRecords, locks: AcquisitionLocks, first_offset: int, last_offset: int, limit: DeliveryLimit
) -> list[StateUpdate]:
    """Release acquired records whose lock has timed out; return the state updates.

    The records become available again, those at their delivery limit undeliverable, those before the start offset
    archived.
    Mirrors `SharePartition.releaseAcquisitionLockOnTimeout`.
    """
    updates: list[StateUpdate] = []
    floor = records.batches.floor(first_offset)
    if floor is None:
        return updates
    for batch in records.batches.between(floor.first_offset, last_offset):
        whole = batch.batch_state
        if (
            whole is not None
            and whole.state is RecordState.ACQUIRED
            and records.is_start_within(batch.first_offset, batch.last_offset)
        ):
            batch.split(locks)
        if batch.batch_state is not None:
            updates += _time_out_range(records, batch.first_offset, batch.last_offset, batch.batch_state, limit)
            continue
        for first, last, state in batch.parts_in(first_offset, last_offset):
            if state.state is RecordState.ACQUIRED:
                for start, end in records.divided(first, last):
                    own = batch.cut_out(start, end, locks)
                    updates += _time_out_range(records, start, end, own, limit)
        batch.merge(first_offset, last_offset)
    return updates


def _time_out_range(
    records: InFlightRecords, first_offset: int, last_offset: int, state: InFlightState, limit: DeliveryLimit
) -> list[StateUpdate]:
    """Release a range of records with one state; return its update, empty if not acquired."""
    if state.state is not RecordState.ACQUIRED:
        return []
    is_before_start = last_offset < records.start_offset
    new_state = RecordState.ARCHIVED if is_before_start else RecordState.AVAILABLE
    if not state.try_update_state(new_state, limit):
        return []
    update = StateUpdate.of(first_offset, last_offset, state)
    state.end_lock()
    if state.is_terminal:
        records.delivery_complete_count += records.count_in(first_offset, last_offset)
    elif state.is_acquirable:
        records.finds_next_fetch_offset = True
    return [update]
