"""Between framing and the broker until a client has logged in; mirrors the part of `KafkaChannel` that does.

Each connection of a SASL listener has one of its own in the broker's place. It gives way to the broker when
the client is known. A login that failed is answered, and its connection closed, after
`connection.failed.authentication.delay.ms`.

Deliberate difference: what is larger than `sasl.server.max.receive.size` closes the connection at once.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from broker_sim.security import LoginFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.network.connection import Connection, RequestSink, SendResponse
    from broker_sim.protocol.message import Chunk
    from broker_sim.runtime.process import Process
    from broker_sim.security import SaslServerAuthenticator, SslListener

__all__ = ["ListenerLogin", "ListenerSecurity", "Login"]

_ERROR_CODE: Final = Struct(">8xh")
"""In the answer to ApiVersions: behind the size and the correlation id."""


class ListenerLogin(NamedTuple):
    """How clients of a listener log in."""

    make_authenticator: Callable[[], SaslServerAuthenticator]
    max_receive_bytes: int
    """The largest frame of a client that has not logged in."""
    failure_delay_ms: int


class ListenerSecurity(NamedTuple):
    """How clients of a listener show who they are; each may be absent."""

    login: ListenerLogin | None = None
    tls: SslListener | None = None


class Login:
    """Takes the requests of one connection until its client is known."""

    def __init__(
        self,
        process: Process,
        broker: RequestSink,
        listener: ListenerLogin,
        max_request_bytes: int,
    ) -> None:
        self._process = process
        self._broker = broker
        self._authenticator = listener.make_authenticator()
        self._failure_delay_ms = listener.failure_delay_ms
        self._max_request_bytes = max_request_bytes

    def handle_frame(
        self, frame: memoryview, connection: Connection, send_response: SendResponse
    ) -> None:
        """Take the next step of the login. Raises ProtocolError where only closing the connection helps."""
        authenticator = self._authenticator
        try:
            answer = authenticator.receive(frame)
        except LoginFailedError as error:
            self._process.call_later(
                self._failure_delay_ms, _refuse, connection, send_response, error
            )
            return
        if answer is None:
            self._ask_versions(frame, connection, send_response)
            return
        if authenticator.principal is not None:
            connection.logged_in(authenticator.principal, self._broker, self._max_request_bytes)
        send_response(answer)

    def _ask_versions(
        self, frame: memoryview, connection: Connection, send_response: SendResponse
    ) -> None:
        """Let the broker answer ApiVersions."""

        def answer(chunks: Sequence[Chunk] | None) -> None:
            if chunks and not _ERROR_CODE.unpack_from(cast("bytes", chunks[0]))[0]:
                self._authenticator.versions_told()
            send_response(chunks)

        self._broker.handle_frame(frame, connection, answer)


def _refuse(connection: Connection, send_response: SendResponse, error: LoginFailedError) -> None:
    send_response(error.answer)
    connection.close(f"failed authentication: {error}")
