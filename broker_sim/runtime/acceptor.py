"""Accepts the connections of a listening socket; mirrors `kafka.network.Acceptor`.

asyncio's own servers handle the limit of open files badly: asyncio logs a traceback for each attempt and
retries ever more often, and uvloop closes the port. Here a connection that cannot be accepted stays in the
backlog; accepting is retried a little later, and the problem is logged once.

A thousand clients may connect at the same time. One is accepted in each turn of the loop, so that open
connections are served in between; with TLS the new connection then goes to `Handshakes`.
"""

from __future__ import annotations

import errno
import os
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker_sim.runtime.event_log import get_logger
from broker_sim.runtime.handshakes import Handshakes
from broker_sim.runtime.sockets import LIMIT_ADVICE, address_text
from broker_sim.runtime.system import StandardSocket, close_descriptor, open_descriptor

if TYPE_CHECKING:
    import asyncio
    import ssl
    from collections.abc import Callable

    from broker_sim.runtime.read_turns import ReadTurns

NO_FILE: Final = -1
RETRY_DELAY_S: Final = 0.2
ACCEPTS_AT_ONCE: Final = 1
"""Connections accepted in one turn of the loop. Each takes 0.2 ms, in this turn and the next ones."""
EXHAUSTED: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

log = get_logger(__name__)


class Accepting(Protocol):
    """Accepts connections until it is closed; owns the listening socket."""

    def close(self) -> None:
        """Stop accepting and close the listening socket; open connections stay open."""

    def hold(self) -> None:
        """Leave new connections in the operating system's backlog: they get no answer until `release`."""

    def release(self) -> None:
        """Accept the connections that have waited, and all later ones."""


async def accept_connections(
    loop: asyncio.AbstractEventLoop,
    listening: StandardSocket,
    make_protocol: Callable[[], asyncio.BaseProtocol],
    backlog: int,
    tls: ssl.SSLContext | None = None,
    turns: ReadTurns | None = None,
) -> Accepting:
    """Listen, and give each connection a protocol (over TLS if `tls` is given) until the returned object is closed.

    With `turns`, TLS handshakes take turns, see `Handshakes`.
    """
    if isinstance(listening, StandardSocket):
        acceptor = _Acceptor(loop, listening, make_protocol, tls, turns)
        try:
            acceptor.start(backlog)
        except NotImplementedError:  # Windows
            pass
        else:
            return acceptor
    server = await loop.create_server(make_protocol, sock=listening, backlog=backlog, ssl=tls)
    return _LoopServer(server, listening)


class _LoopServer:
    """The event loop's own server: on the virtual network, which can hold clients, or on Windows, which cannot."""

    def __init__(self, server: asyncio.AbstractServer, listening: Any) -> None:
        self._server = server
        self._listening = listening

    def close(self) -> None:
        self._server.close()

    def hold(self) -> None:
        if hasattr(self._listening, "hold"):
            self._listening.hold()

    def release(self) -> None:
        if hasattr(self._listening, "release"):
            self._listening.release()


class _Acceptor:
    """Thread rule: only the loop's thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listening: StandardSocket,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        tls: ssl.SSLContext | None,
        turns: ReadTurns | None,
    ) -> None:
        self._loop = loop
        self._tls = tls
        self._socket = listening
        self._make_protocol = make_protocol
        self._retry: asyncio.TimerHandle | None = None
        self._is_exhausted = False
        self._is_held = False
        self._spare = NO_FILE
        """A spare file, closed only while the log is written: the first event imports modules, which needs a file."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._handshakes = None if tls is None else Handshakes(loop, turns, self._begin_to_serve)

    def start(self, backlog: int) -> None:
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket.fileno(), self._accept)
        try:
            self._spare = open_descriptor(os.devnull, os.O_RDONLY)
            self._socket.listen(backlog)
        except BaseException:
            self._loop.remove_reader(self._socket.fileno())
            if self._spare != NO_FILE:
                close_descriptor(self._spare)
            raise

    def _accept(self) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                connection, _address = self._socket.accept()
            except BlockingIOError:
                self._is_exhausted = False
                return
            except (InterruptedError, ConnectionAbortedError):
                continue
            except OSError as error:
                if error.errno not in EXHAUSTED:
                    raise
                self._back_off(error)
                return
            if self._handshakes is None:
                self._begin_to_serve(connection)
            else:
                self._handshakes.add(connection)

    def _begin_to_serve(self, connection: StandardSocket) -> asyncio.Task[None]:
        task = self._loop.create_task(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(partial(self._served, connection))
        return task

    def _served(self, connection: StandardSocket, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():  # possibly before its first step, so `_serve` cannot handle it
            connection.close()

    async def _serve(self, connection: StandardSocket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make_protocol, connection, ssl=self._tls)
        except OSError as error:
            from ssl import SSLError  # noqa: PLC0415 - slow to import, and rarely needed

            # The connection has ended already, or its TLS handshake has failed.
            level = log.warning if isinstance(error, SSLError) else log.debug
            level("connection_not_served", reason=str(error))
            connection.close()
        except Exception:
            connection.close()
            raise

    def _back_off(self, error: OSError) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._retry = self._loop.call_later(RETRY_DELAY_S, self._accept_again)
        if not self._is_exhausted:
            self._is_exhausted = True
            self._log_exhausted(error)

    def _log_exhausted(self, error: OSError) -> None:
        close_descriptor(self._spare)
        try:
            log.error(
                "connections_wait",
                address=address_text(*self._socket.getsockname()[:2]),
                reason=error.strerror,
                advice=f"they are accepted when other connections end; {LIMIT_ADVICE}",
            )
        finally:
            self._spare = open_descriptor(os.devnull, os.O_RDONLY)

    def _accept_again(self) -> None:
        self._retry = None
        if not self._is_held:
            self._loop.add_reader(self._socket.fileno(), self._accept)

    def hold(self) -> None:
        self._is_held = True
        self._loop.remove_reader(self._socket.fileno())
        if self._handshakes is not None:
            self._handshakes.hold()

    def release(self) -> None:
        self._is_held = False
        if self._handshakes is not None:
            self._handshakes.release()
        if self._retry is None:
            self._loop.add_reader(self._socket.fileno(), self._accept)

    def close(self) -> None:
        if self._socket.fileno() < 0:
            return
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        close_descriptor(self._spare)
        if self._handshakes is not None:
            self._handshakes.close()
        for task in self._tasks:
            task.cancel()
