"""Stands between framing and the broker until a client has logged in; mirrors that part of `KafkaChannel`.

Each connection of a SASL listener has its own `Login` instead of the broker. The broker replaces it once the
client has authenticated; with `connections.max.reauth.ms` it stays, and closes connections of clients that do not
reauthenticate in time. A failed login is answered, and its connection closed, after
`connection.failed.authentication.delay.ms`.

Deliberate difference: a frame above `sasl.server.max.receive.size` closes the connection at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.headers import decode_request_header, decode_response
from broker_sim.security import LoginFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.network.connection import Connection, RequestSink, SendResponse
    from broker_sim.network.login_turns import LoginTurns
    from broker_sim.protocol.message import BytesLike, Chunk
    from broker_sim.runtime.process import Process
    from broker_sim.security import KafkaPrincipal, SaslServerAuthenticator
    from broker_sim.security.ssl_listener import SslListener

_SIZE_BYTES: Final = 4
"""Number of bytes of the size before every response."""
_HANDSHAKE: Final = ApiKey.SASL_HANDSHAKE.to_bytes(2, "big")
REAUTHENTICATION_MS: Final = 1_000
"""Minimum time in ms between reauthentications; an earlier one gets ILLEGAL_SASL_STATE."""


class ListenerLogin(NamedTuple):
    """The ways in which clients of a listener log in."""

    make_authenticator: Callable[[], SaslServerAuthenticator]
    max_receive_bytes: int
    """Maximum size of a frame before the login, in bytes."""
    failure_delay_ms: int


class ListenerSecurity(NamedTuple):
    """The authentication of a listener, by TLS and SASL; each may be absent."""

    login: ListenerLogin | None = None
    tls: SslListener | None = None


class Login:
    """Handles the requests of one connection until its client has authenticated; forever if logins expire."""

    def __init__(
        self, process: Process, broker: RequestSink, listener: ListenerLogin, max_request_bytes: int, turns: LoginTurns
    ) -> None:
        self._process = process
        self._turns = turns
        self._broker = broker
        self._authenticator = listener.make_authenticator()
        self._failure_delay_ms = listener.failure_delay_ms
        self._max_request_bytes = max_request_bytes
        self._session_ends_ms: int | None = None
        self._last_begin_ms: int | None = None
        """Time in ms at which the client last began to reauthenticate."""

    def handle_frame(self, frame: memoryview, connection: Connection, send_response: SendResponse) -> None:
        """Perform the next step of the login, in this turn of the loop or a later one.

        Raises ProtocolError if the connection must be closed.
        """
        if self._authenticator.principal is None or self._begins_again(frame):
            self._turns.run(self._receive, frame, connection, send_response)
        else:
            self._broker.handle_frame(frame, connection, send_response)

    def _receive(self, frame: memoryview, connection: Connection, send_response: SendResponse) -> None:
        authenticator = self._authenticator
        try:
            answer = authenticator.receive(frame)
            if answer is None:
                self._ask_versions(frame, connection, send_response)
                return
        except LoginFailedError as error:
            # Not the error itself: its traceback refers to the whole login.
            refusal = (self._turns.run, _refuse, connection, send_response, error.answer)
            self._process.call_later(self._failure_delay_ms, *refusal)
            # A log line costs as much as the rest of a refusal, so it gets a separate turn.
            self._turns.run(connection.log_end, f"failed authentication: {error}")
            return
        except Exception as error:  # noqa: BLE001 - the connection handles it
            connection.fail(error)
            return
        if authenticator.principal is not None:
            self._logged_in(authenticator.principal, connection)
        send_response(answer)

    def _logged_in(self, principal: KafkaPrincipal, connection: Connection) -> None:
        """Let the broker replace this login; stay in between if the login expires."""
        lifetime_ms = self._authenticator.session_lifetime_ms
        sink: RequestSink = self._broker
        if lifetime_ms is not None:
            # A login with a token that has just expired ends at once, in the same millisecond.
            self._session_ends_ms = self._process.clock.now_ms() + (lifetime_ms or -1)
            sink = self
        connection.logged_in(
            principal, sink, self._max_request_bytes, by_token=self._authenticator.is_token_authenticated
        )

    def _begins_again(self, frame: memoryview) -> bool:
        """Return whether the frame begins a reauthentication, which is allowed once a second.

        Raises ProtocolError for any other request after the login has expired.
        """
        now_ms, last_ms = self._process.clock.now_ms(), self._last_begin_ms
        is_handshake = frame[:2] == _HANDSHAKE
        if is_handshake and (last_ms is None or now_ms - last_ms >= REAUTHENTICATION_MS):
            self._last_begin_ms = now_ms
            self._authenticator.reauthenticate()
            return True
        assert self._session_ends_ms is not None
        if now_ms > self._session_ends_ms:
            raise ProtocolError("its login has expired")
        return False

    def _ask_versions(self, frame: memoryview, connection: Connection, send_response: SendResponse) -> None:
        """Pass ApiVersions on to the broker."""
        version = decode_request_header(frame)[0].api_version

        def answer(chunks: Sequence[Chunk] | None) -> None:
            if chunks and not _decode_versions(version, chunks).error_code:
                self._authenticator.versions_answered()
            send_response(chunks)

        self._broker.handle_frame(frame, connection, answer)


def _decode_versions(version: int, chunks: Sequence[Chunk]) -> Any:
    """Return the ApiVersions response that the broker sends, decoded."""
    frame = b"".join(cast("Sequence[BytesLike]", chunks))
    return decode_response(ApiKey.API_VERSIONS, version, frame[_SIZE_BYTES:])[1]


def _refuse(connection: Connection, send_response: SendResponse, answer: Sequence[Chunk] | None) -> None:
    send_response(answer)
    connection.close()
