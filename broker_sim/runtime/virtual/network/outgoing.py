"""What one end of a connection has written: a window on its way, and a backlog behind it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.runtime.virtual.network.network import Network
    from broker_sim.runtime.virtual.network.pipe import Pipe


class Outgoing:
    """Sends data through a pipe; `on_data` and `on_end` run where it arrives.

    The window stands for the buffers of both kernels: it holds what the other side has not read.
    The backlog is the transport's own buffer, which `pause_writing` and `drain` look at.
    """

    __slots__ = ("_backlog", "_in_flight_bytes", "_network", "_on_data", "_on_end", "_pipe",
                 "backlog_bytes", "end_sent")  # fmt: skip

    def __init__(
        self, network: Network, pipe: Pipe, on_data: Callable[[bytes], object], on_end: Callable[[], object]
    ) -> None:
        self._network = network
        self._pipe = pipe
        self._on_data = on_data
        self._on_end = on_end
        self._backlog: deque[bytes] = deque()
        self._in_flight_bytes = 0
        self.backlog_bytes = 0
        self.end_sent = False

    def write(self, data: bytes) -> None:
        """Send what fits into the window, and keep the rest for `on_read`."""
        size = len(data)
        if not self.backlog_bytes and self._in_flight_bytes + size <= self._network.window_bytes:
            self._send(data, size)
            return
        self._backlog.append(data)
        self.backlog_bytes += size
        self._fill_window()

    def on_read(self, size: int) -> None:
        """Take note that the other side has read so many bytes."""
        self._in_flight_bytes -= size
        if self.backlog_bytes:
            self._fill_window()

    def send_end(self) -> None:
        """Send the end, once."""
        if not self.end_sent:
            self.end_sent = True
            self._pipe.send(self._on_end)

    def drop_backlog(self) -> None:
        """Forget what has not been sent."""
        self._backlog.clear()
        self.backlog_bytes = 0

    def _fill_window(self) -> None:
        backlog = self._backlog
        while backlog and (room := self._network.window_bytes - self._in_flight_bytes) > 0:
            data = backlog.popleft()
            if len(data) > room:
                backlog.appendleft(data[room:])
                data = data[:room]
            self.backlog_bytes -= len(data)
            self._send(data, len(data))

    def _send(self, data: bytes, size: int) -> None:
        self._in_flight_bytes += size
        if self._network.fragments:
            for part in self._network.split(data):
                self._pipe.send(self._on_data, part)
        else:
            self._pipe.send(self._on_data, data)
