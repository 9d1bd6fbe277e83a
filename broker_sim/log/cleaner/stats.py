"""What one cleaning has read and written; mirrors `CleanerStats`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CleanerStats:
    """Counted while a log is cleaned; times are in ms of the broker's clock."""

    start_ms: int = 0
    map_complete_ms: int = 0
    end_ms: int = 0
    map_bytes_read: int = 0
    map_messages_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    messages_read: int = 0
    messages_written: int = 0
    invalid_messages_read: int = 0
    """Records without a key, which the cleaner drops."""
    buffer_utilization: float = 0.0
    """The share of the buffer for keys that was used, from 0 to 1."""

    @property
    def elapsed_ms(self) -> int:
        """How long the cleaning took."""
        return self.end_ms - self.start_ms

    @property
    def size_reduction_percent(self) -> float:
        """By how much the cleaned part of the log has got smaller."""
        return _reduction_percent(self.bytes_read, self.bytes_written)

    @property
    def message_reduction_percent(self) -> float:
        """How many of its records are gone."""
        return _reduction_percent(self.messages_read, self.messages_written)


def _reduction_percent(before: int, after: int) -> float:
    return round(100 * (1 - after / before), 1) if before else 0.0
