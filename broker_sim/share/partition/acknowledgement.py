"""How a member acknowledges what it has acquired; mirrors the part of `SharePartition` from `acknowledge` on.

A batch of the request may be a batch in flight, a part of one, or several. All must be acquired by the member.
With the first one that is not, the request fails, and what it has changed is rolled back. Error messages are
Kafka's, because clients see them.

Records are not looked at one by one. Batches of the request that follow each other and say the same are one
(`_joined`), and of a batch with a type for each record those with the same type are. Deliberate difference: a
request that says too many different things fails, see `MOST_CHANGES`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence  # noqa: TC003 - native code looks the types of fields up
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.share.partition.in_flight_state import EMPTY_MEMBER_ID
from broker_sim.share.partition.record_state import ACK_TYPE_TO_RECORD_STATE, AcknowledgeType, RecordState
from broker_sim.share.partition.state_update import StateUpdate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.share.partition.acquisition_lock import AcquisitionLocks
    from broker_sim.share.partition.in_flight_batch import InFlightBatch
    from broker_sim.share.partition.in_flight_records import InFlightRecords
    from broker_sim.share.partition.in_flight_state import InFlightState

MOST_CHANGES: Final = 2_500
"""So many ranges of records may one request change, in all partitions together."""

_CANNOT_COMPLETE = "The record state is invalid. The acknowledgement of delivery could not be completed."
_NOT_FOUND = "Batch record not found. "


class FailedRequestError(Exception):
    """Fails the whole request with UNKNOWN_SERVER_ERROR; what it has changed so far is not taken back, as in Kafka."""


class AcknowledgementBatch(NamedTuple):
    """What a member says of the records of a range: one type for all, or one for each."""

    first_offset: int
    last_offset: int
    acknowledge_types: Sequence[int]

    def ranges(self, first_offset: int, last_offset: int) -> Iterator[tuple[int, int, int]]:
        """Yield the ranges, between these offsets, of which the same is said: first and last offset, and type."""
        types = self.acknowledge_types
        if len(types) == 1:
            yield first_offset, last_offset, types[0]
            return
        start = first_offset - self.first_offset
        said = bytes(types[start : last_offset - self.first_offset + 1])
        for same in _SAME.finditer(said):
            yield first_offset + same.start(), first_offset + same.end() - 1, said[same.start()]


_SAME: Final = re.compile(rb"(.)\1*", re.DOTALL)


class Changes:
    """How many ranges of records a request has changed so far, of all partitions."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def count_one(self) -> None:
        """Count one more. Raises ApiError with UNKNOWN_SERVER_ERROR, as for a state that cannot be written."""
        if self.count == MOST_CHANGES:
            text = f"A request changes more than {MOST_CHANGES} ranges of records."
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
        self.count += 1


def _invalid_state(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD_STATE, text)


class Acknowledging:
    """Acknowledges for one member; `updates` are the changes so far, also after a failure."""

    __slots__ = ("_changes", "_is_renewable", "_locks", "_max_delivery_count", "_member_id", "_records", "updates")

    def __init__(
        self,
        records: InFlightRecords,
        locks: AcquisitionLocks,
        member_id: str,
        max_delivery_count: int,
        changes: Changes,
        *,
        is_renewable: bool,
    ) -> None:
        self._records = records
        self._locks = locks
        self._member_id = member_id
        self._max_delivery_count = max_delivery_count
        self._is_renewable = is_renewable
        self._changes = changes
        self.updates: list[StateUpdate] = []

    def acknowledge(self, batches: Sequence[AcknowledgementBatch]) -> None:
        """Change the states.

        Raises ApiError: INVALID_RECORD_STATE, INVALID_REQUEST, UNKNOWN_SERVER_ERROR for more changes than are
        allowed; FailedRequestError for records around the start offset where nothing is in flight.
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
                starts = [one.first_offset for one in same]
                batch = AcknowledgementBatch(batch.first_offset, same[-1].last_offset, batch.acknowledge_types)
            for in_flight in self._in_flight(batch):
                self._acknowledge_in_flight(batch, in_flight, starts)
            index += count

    def _joined(self, batches: Sequence[AcknowledgementBatch], index: int) -> int:
        """Return how many batches, from that one on, follow each other, say the same, and are in flight."""
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
        """Return what is in flight of the batch."""
        records = self._records
        floor = records.batches.floor(batch.first_offset)
        if floor is None and records.is_start_within(batch.first_offset, batch.last_offset):
            floor = records.batches.floor(records.start_offset)
            if floor is None:
                raise FailedRequestError
        if floor is None:
            raise _invalid_state(f"{_NOT_FOUND}The request batch offsets are not found in the cache.")
        found = records.batches.between(floor.first_offset, batch.last_offset)
        last_offset = found[-1].last_offset
        if last_offset < batch.first_offset:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"{_NOT_FOUND}The first offset in request is past acquired records."
            )
        if last_offset < batch.last_offset:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"{_NOT_FOUND}The last offset in request is past acquired records."
            )
        return found

    def _acknowledge_in_flight(
        self, batch: AcknowledgementBatch, in_flight: InFlightBatch, starts: Sequence[int]
    ) -> None:
        """Acknowledge all of a batch in flight, or the part of it that is in the request.

        `starts` is where the batches of the request begin that are one now.
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
        """Acknowledge the records of a split batch that are in the request."""
        first_offset = max(batch.first_offset, in_flight.first_offset, self._records.start_offset)
        last_offset = min(batch.last_offset, in_flight.last_offset)
        for said_first, said_last, acknowledge_type in batch.ranges(first_offset, last_offset):
            for first, last, state in in_flight.parts_in(said_first, said_last):
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
        """Change the state of acquired records, or lock them anew."""
        if acknowledge_type == AcknowledgeType.RENEW:
            if not self._is_renewable:
                raise _invalid_state("Renewing acquisition locks is not enabled for the group.")
            state.end_lock()
            state.lock = self._locks.lock(self._member_id, first_offset, last_offset)
            return
        new_state = ACK_TYPE_TO_RECORD_STATE[AcknowledgeType(acknowledge_type)]
        if not state.start_state_transition(new_state, self._max_delivery_count):
            raise _invalid_state("Unable to acknowledge records for the batch")
        self.updates.append(StateUpdate.of(first_offset, last_offset, state))
        if state.is_terminal:
            self._records.delivery_complete_count += last_offset - first_offset + 1

    # -- the end of a session -------------------------------------------------------------------

    def release_all(self) -> None:
        """Release what the member has acquired; before the start offset it is archived.

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
        if not state.start_state_transition(new_state, self._max_delivery_count):
            raise _invalid_state("Unable to release acquired records for the batch")
        self.updates.append(StateUpdate.of(first_offset, last_offset, state))
        if state.is_terminal:
            records.delivery_complete_count += records.count_in(first_offset, last_offset)


def _is_any_within(starts: Sequence[int], in_flight: InFlightBatch) -> bool:
    """Whether one of these offsets, which are in order, is inside of the batch, not at its beginning."""
    index = bisect_right(starts, in_flight.first_offset)
    return index < len(starts) and starts[index] <= in_flight.last_offset
