"""A client's connection in virtual time: the broker's own `Connection` over a link of bytes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["VirtualTransport"]


class VirtualTransport(asyncio.Transport):
    """What a `Connection` writes to; hands the bytes of each response to ``deliver``."""

    def __init__(self, deliver: Callable[[bytes], None], on_close: Callable[[], None]) -> None:
        super().__init__()
        self._deliver = deliver
        self._on_close = on_close
        self._closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return a peer name for the logs."""
        return ("virtual", 0) if name == "peername" else default

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send one response."""
        self._deliver(b"".join(list_of_data))

    def is_closing(self) -> bool:
        """Whether either side has closed."""
        return self._closing

    def close(self) -> None:
        """Close; the client learns of it."""
        if not self._closing:
            self._closing = True
            self._on_close()

    def abort(self) -> None:
        """Close at once: there is nothing left to flush."""
        self.close()

    def pause_reading(self) -> None:
        """Do nothing: a virtual client sends little, and what it sent waits in the connection."""

    def resume_reading(self) -> None:
        """Do nothing, as `pause_reading`."""
