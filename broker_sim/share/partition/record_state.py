"""The delivery states of a record in a share group; mirrors `RecordState` and `AcknowledgeType`.

                  acquire                    accept
    AVAILABLE ───────────────▶ ACQUIRED ───────────────▶ ACKNOWLEDGED
        ▲                       │    │
        └───────────────────────┘    ├─────────────────▶ ARCHIVED
         release, lock timed out     │  reject, gap, or    ▲
                                     │  last release       │ dead letter written or abandoned
                                     └─────────────────▶ ARCHIVING
                                        reject or last release, if the group has a dead-letter topic

ACKNOWLEDGED and ARCHIVED are terminal states: the record is never delivered again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode


class RecordState(IntEnum):
    """The state of a record; the numbers are those in `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """Its dead letter is being written (KIP-1191): the record is neither deliverable nor completed.

    Before Kafka 4.4 only external writes create this state, and nothing ends it.
    """
    ARCHIVED = 4

    @classmethod
    def of_number(cls, number: int) -> RecordState:
        """Return the state with that number. Raises ApiError with UNKNOWN_SERVER_ERROR, as Kafka does."""
        try:
            return cls(number)
        except ValueError:
            text = f"Unknown record state id: {number}"
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from None

    def allows(self, new_state: RecordState) -> bool:
        """Whether the transition from this state to the new one is valid."""
        if self is RecordState.AVAILABLE:
            return new_state is RecordState.ACQUIRED
        return self is RecordState.ACQUIRED and new_state is not RecordState.ACQUIRED


class AcknowledgeType(IntEnum):
    """The type of an acknowledgement; the numbers are those of the protocol."""

    GAP = 0
    """The offset has no record."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    """The member extends its lock on the record (KIP-1222)."""


TERMINAL_STATES: Final = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)

ACK_TYPE_TO_RECORD_STATE: Final = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}
"""State of a record after an acknowledgement, in a group without a dead-letter topic; RENEW does not change it."""


class DeliveryLimit(NamedTuple):
    """The delivery limit of a group's records, and the state of records that it cannot process."""

    max_deliveries: int
    """Maximum number of deliveries of a record."""
    undeliverable: RecordState = RecordState.ARCHIVED
    """State of a record that is rejected, or released at its delivery limit."""

    def state_after(self, acknowledge_type: AcknowledgeType) -> RecordState:
        """Return the state of a record after an acknowledgement other than RENEW."""
        if acknowledge_type is AcknowledgeType.REJECT:
            return self.undeliverable
        return ACK_TYPE_TO_RECORD_STATE[acknowledge_type]
