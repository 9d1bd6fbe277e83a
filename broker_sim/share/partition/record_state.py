"""How a record stands that a share group has begun to read; mirrors `RecordState` and `AcknowledgeType`.

                  acquire                    accept
    AVAILABLE ───────────────▶ ACQUIRED ───────────────▶ ACKNOWLEDGED
        ▲                       │    │
        └───────────────────────┘    └─────────────────▶ ARCHIVED
         release, lock timed out       reject, gap, or released for the last time

A record in one of the last two states is in a terminal state: it is never delivered again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from broker_sim.errors import ApiError, ErrorCode


class RecordState(IntEnum):
    """The state of a record, with the numbers that are kept in `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """Only where somebody wrote it into the state: such a record is neither delivered nor done with."""
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
        """Return whether a record of this state may get the new one."""
        if self is RecordState.AVAILABLE:
            return new_state is RecordState.ACQUIRED
        return self is RecordState.ACQUIRED and new_state is not RecordState.ACQUIRED


class AcknowledgeType(IntEnum):
    """What a member says of records that it has acquired."""

    GAP = 0
    """There is no record at the offset."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    """It needs the records for longer (KIP-1222)."""


TERMINAL_STATES: Final = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)

ACK_TYPE_TO_RECORD_STATE: Final = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}
"""What an acknowledgement makes of a record; RENEW leaves it as it is."""
