"""Establishes a connection by SYN, SYN-ACK and ACK, each with the latency of its direction."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker_sim.runtime.virtual.core.core import Core
    from broker_sim.runtime.virtual.network.hosts import Hosts
    from broker_sim.runtime.virtual.network.ports import Ports
    from broker_sim.runtime.virtual.network.transport import MemoryTransport

CONNECT_TIMEOUT_S: Final = 127
"""Time after which Linux gives up on a SYN that nobody answers (tcp_syn_retries = 6)."""


class Handshake:
    """One attempt to connect.

    Without a listener it is refused; without such a host, or if the network is cut, it times out. As with a real
    kernel the server's program learns of a connection when the ACK arrives.
    """

    def __init__(self, core: Core, hosts: Hosts, ports: Ports, client: MemoryTransport) -> None:
        self._core = core
        self._hosts = hosts
        self._ports = ports
        self._client = client
        self._server = client.peer
        self._address: tuple[str, int] = client.get_extra_info("peername")
        self._answered = core.loop.create_future()

    async def establish(self) -> None:
        """Return once the client's end is connected. Raises OSError if it cannot be."""
        timer = self._core.loop.call_later(CONNECT_TIMEOUT_S, self._on_timeout)
        self._client.pipe.send(self._on_syn)
        try:
            await self._answered
        except BaseException:
            answer = self._answered
            connected = answer.done() and not answer.cancelled() and answer.exception() is None
            self._client.discard(connected=connected)
            raise
        finally:
            timer.cancel()

    def _on_syn(self) -> None:
        address, port = self._address
        if self._ports.listener(address, port) is not None:
            self._server.pipe.send(self._on_syn_ack)
        elif self._hosts.exists(address):
            self._server.pipe.send(self._on_refused)

    def _on_syn_ack(self) -> None:
        if not self._answered.done():
            self._client.pipe.send(self._on_ack)
            self._answered.set_result(None)

    def _on_ack(self) -> None:
        listener = self._ports.listener(*self._address)
        if listener is None:
            self._server.refuse()
            return
        context = listener.context.copy()
        self._server.use_context(context)
        if self._core.processes.holder(context):
            # A frozen server accepts it later; the client's kernel does not notice.
            self._core.call_soon(listener.accept, self._server, context=context)
        else:
            context.run(listener.accept, self._server)

    def _on_refused(self) -> None:
        self._fail(ConnectionRefusedError(errno.ECONNREFUSED, self._failure_text()))

    def _on_timeout(self) -> None:
        self._fail(TimeoutError(errno.ETIMEDOUT, self._failure_text()))

    def _failure_text(self) -> str:
        return f"Connect call failed {self._address}"

    def _fail(self, error: OSError) -> None:
        if not self._answered.done():
            self._answered.set_exception(error)
