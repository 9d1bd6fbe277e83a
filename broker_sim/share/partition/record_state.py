"""The states of a record that a share group has begun to read; mirrors `RecordState` and `AcknowledgeType`.

                  acquire                    accept
    AVAILABLE ───────────────▶ ACQUIRED ───────────────▶ ACKNOWLEDGED
        ▲                       │    │
        └───────────────────────┘    ├─────────────────▶ ARCHIVED
         release, lock timed out     │  reject, gap, or    ▲
                                     │  released last      │ dead letter written, or given up
                                     └─────────────────▶ ARCHIVING
                                        reject, or released last, where the group has a dead-letter topic

A record in one of the states ACKNOWLEDGED and ARCHIVED is in a terminal state: it is never delivered again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode


class RecordState(IntEnum):
    """The state of a record, by its number in `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """Its dead letter is being written (KIP-1191): the record is neither delivered nor completed.

    Before Kafka 4.4 only a foreign write makes this state, and nothing ends it.
    """
    ARCHIVED = 4

    @classmethod
    def of_number(cls, number: int) -> RecordState:
        """Return the state that has the number. Raises ApiError with UNKNOWN_SERVER_ERROR, as Kafka does."""
        try:
            return cls(number)
        except ValueError:
            text = f"Unknown record state id: {number}"
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from None

    def allows(self, new_state: RecordState) -> bool:
        """Whether a record may change from this state to the new one."""
        if self is RecordState.AVAILABLE:
            return new_state is RecordState.ACQUIRED
        return self is RecordState.ACQUIRED and new_state is not RecordState.ACQUIRED


class AcknowledgeType(IntEnum):
    """The ways to acknowledge a record."""

    GAP = 0
    """There is no record at the offset."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    """The member keeps the record for longer (KIP-1222)."""


TERMINAL_STATES: Final = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)

ACK_TYPE_TO_RECORD_STATE: Final = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}
"""The state of a record after an acknowledgement without a dead-letter topic; RENEW keeps its state."""


class DeliveryLimit(NamedTuple):
    """How often the records of a group are delivered, and what becomes of those that it cannot process."""

    max_deliveries: int
    """The maximum number of deliveries of a record."""
    undeliverable: RecordState = RecordState.ARCHIVED
    """The state of a rejected record, and of one that is released for the last time."""

    def state_after(self, acknowledge_type: AcknowledgeType) -> RecordState:
        """Return the state of a record after an acknowledgement; RENEW has none."""
        if acknowledge_type is AcknowledgeType.REJECT:
            return self.undeliverable
        return ACK_TYPE_TO_RECORD_STATE[acknowledge_type]
