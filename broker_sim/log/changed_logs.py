"""The logs whose offsets have moved, for several readers: each hears of a log once until it moves again.

So work that is done for all logs every few seconds costs nothing for logs that have not changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker_sim.log.log_offsets import LogOffsets

CLOSED: Final = "closed"
"""The reader that closes them at a shutdown."""
HIGH_WATERMARKS: Final = "high watermarks"
"""The reader that checkpoints them."""
LOG_STARTS: Final = "log starts"
"""The reader that checkpoints them."""
INVARIANTS: Final = "invariants"
"""The reader of random runs; there is none in a program that serves clients."""


class ChangedLogs:
    """The logs of one broker, in the order in which they moved."""

    __slots__ = ("_unread", "moved")

    def __init__(self, *readers: str) -> None:
        self.moved: dict[LogOffsets, None] = {}
        """Those that moved since anyone has read; logs put themselves there."""
        self._unread: dict[str, dict[LogOffsets, None]] = {reader: {} for reader in readers}

    def has_news_for(self, reader: str) -> bool:
        """Whether `take` would return any for this reader."""
        return bool(self.moved or self._unread.get(reader))

    def take(self, reader: str) -> list[LogOffsets]:
        """Return those that have moved since this reader's last call.

        A new reader hears of the logs that no reader has taken yet.
        """
        unread = self._unread.get(reader)
        if unread is None:
            unread = self._unread[reader] = {}
        if self.moved:
            for logs in self._unread.values():
                logs.update(self.moved)
            self.moved.clear()
        elif not unread:
            return []
        taken = list(unread)
        unread.clear()
        return taken

    def discard(self, log: LogOffsets) -> None:
        """Forget a deleted log."""
        self.moved.pop(log, None)
        for logs in self._unread.values():
            logs.pop(log, None)
