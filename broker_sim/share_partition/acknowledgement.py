"""How a member acknowledges what it has acquired; mirrors the part of `SharePartition` from `acknowledge` on.

A batch of the request may be a batch in flight, a part of one, or several. All must be acquired by the member.
With the first one that is not, the request fails, and what it has changed is rolled back. Error messages are
Kafka's, because clients see them.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - native code looks the types of fields up
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.share_partition.in_flight_state import EMPTY_MEMBER_ID
from broker_sim.share_partition.record_state import (
    ACK_TYPE_TO_RECORD_STATE,
    AcknowledgeType,
    RecordState,
)
from broker_sim.share_partition.state_update import StateUpdate

if TYPE_CHECKING:
    from broker_sim.share_partition.acquisition_lock import AcquisitionLocks
    from broker_sim.share_partition.in_flight_batch import InFlightBatch
    from broker_sim.share_partition.in_flight_records import InFlightRecords
    from broker_sim.share_partition.in_flight_state import InFlightState

__all__ = ["AcknowledgementBatch", "Acknowledging", "FailedRequestError"]

_CANNOT_COMPLETE = (
    "The record state is invalid. The acknowledgement of delivery could not be completed."
)
_NOT_FOUND = "Batch record not found. "


class FailedRequestError(Exception):
    """Fails the whole request with UNKNOWN_SERVER_ERROR; what it has changed so far is not taken back, as in Kafka."""


class AcknowledgementBatch(NamedTuple):
    """What a member says of the records of a range: one type for all, or one for each."""

    first_offset: int
    last_offset: int
    acknowledge_types: Sequence[int]

    def type_at(self, offset: int) -> int:
        """Return what is said of the record at the offset."""
        types = self.acknowledge_types
        return types[offset - self.first_offset] if len(types) > 1 else types[0]


def _invalid_state(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD_STATE, text)


class Acknowledging:
    """Acknowledges for one member; `updates` are the changes so far, also after a failure."""

    __slots__ = (
        "_is_renewable",
        "_locks",
        "_max_delivery_count",
        "_member_id",
        "_records",
        "updates",
    )

    def __init__(
        self,
        records: InFlightRecords,
        locks: AcquisitionLocks,
        member_id: str,
        max_delivery_count: int,
        *,
        is_renewable: bool,
    ) -> None:
        self._records = records
        self._locks = locks
        self._member_id = member_id
        self._max_delivery_count = max_delivery_count
        self._is_renewable = is_renewable
        self.updates: list[StateUpdate] = []

    def acknowledge(self, batches: Sequence[AcknowledgementBatch]) -> None:
        """Change the states.

        Raises ApiError: INVALID_RECORD_STATE, INVALID_REQUEST; FailedRequestError for records around the start
        offset where nothing is in flight.
        """
        for batch in batches:
            if batch.last_offset >= self._records.start_offset:
                for in_flight in self._in_flight(batch):
                    self._acknowledge_in_flight(batch, in_flight)

    def _in_flight(self, batch: AcknowledgementBatch) -> Sequence[InFlightBatch]:
        """Return what is in flight of the batch."""
        records = self._records
        floor = records.batches.floor(batch.first_offset)
        if floor is None and records.is_start_within(batch.first_offset, batch.last_offset):
            floor = records.batches.floor(records.start_offset)
            if floor is None:
                raise FailedRequestError
        if floor is None:
            raise _invalid_state(
                f"{_NOT_FOUND}The request batch offsets are not found in the cache."
            )
        found = records.batches.between(floor.first_offset, batch.last_offset)
        last_offset = found[-1].last_offset
        if last_offset < batch.first_offset:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{_NOT_FOUND}The first offset in request is past acquired records.",
            )
        if last_offset < batch.last_offset:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{_NOT_FOUND}The last offset in request is past acquired records.",
            )
        return found

    def _acknowledge_in_flight(self, batch: AcknowledgementBatch, in_flight: InFlightBatch) -> None:
        """Acknowledge all of a batch in flight, or the part of it that is in the request."""
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
            or records.is_start_within(in_flight.first_offset, in_flight.last_offset)
        ):
            if whole.state is not RecordState.ACQUIRED:
                raise _invalid_state(
                    "The batch cannot be acknowledged. The subset batch is not in the acquired state."
                )
            in_flight.split(self._locks)
            self._acknowledge_some(batch, in_flight)
            return
        if whole.state is not RecordState.ACQUIRED:
            raise _invalid_state(
                "The batch cannot be acknowledged. The batch is not in the acquired state."
            )
        self._apply(
            batch.acknowledge_types[0], in_flight.first_offset, in_flight.last_offset, whole
        )

    def _check_owner_of_batch(self, whole: InFlightState) -> None:
        if whole.member_id == EMPTY_MEMBER_ID:
            raise _invalid_state(
                "The batch cannot be acknowledged. The batch is not in the acquired state."
            )
        if whole.member_id != self._member_id:
            raise _invalid_state("Member is not the owner of batch record")
        if whole.has_ongoing_state_transition:
            raise _invalid_state(_CANNOT_COMPLETE)

    def _acknowledge_some(self, batch: AcknowledgementBatch, in_flight: InFlightBatch) -> None:
        """Acknowledge the records of a split batch that are in the request."""
        first_offset = max(batch.first_offset, self._records.start_offset)
        for offset, state in in_flight.states_in(first_offset, batch.last_offset):
            if state.state is not RecordState.ACQUIRED:
                raise _invalid_state(
                    "The offset cannot be acknowledged. The offset is not acquired."
                )
            if state.has_ongoing_state_transition:
                raise _invalid_state(_CANNOT_COMPLETE)
            if state.member_id != self._member_id:
                raise _invalid_state("Member is not the owner of offset")
            self._apply(batch.type_at(offset), offset, offset, state)

    def _apply(
        self, acknowledge_type: int, first_offset: int, last_offset: int, state: InFlightState
    ) -> None:
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
            for first_offset, last_offset, state in in_flight.parts():
                self._release(first_offset, last_offset, state)

    def _release(self, first_offset: int, last_offset: int, state: InFlightState) -> None:
        records = self._records
        if state.member_id != self._member_id or state.state is not RecordState.ACQUIRED:
            return
        is_before_start = last_offset < records.start_offset
        new_state = RecordState.ARCHIVED if is_before_start else RecordState.AVAILABLE
        if not state.start_state_transition(new_state, self._max_delivery_count):
            raise _invalid_state("Unable to release acquired records for the batch")
        self.updates.append(StateUpdate.of(first_offset, last_offset, state))
        if state.is_terminal:
            records.delivery_complete_count += records.count_in(first_offset, last_offset)
