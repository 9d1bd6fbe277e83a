"""Between framing and the broker until a client has logged in; mirrors the part of `KafkaChannel` that does.

Each connection of a SASL listener has one of its own in the broker's place. It gives way to the broker when
the client is known; with `connections.max.reauth.ms` it stays, and cuts off clients that do not log in again
in time. A login that failed is answered, and its connection closed, after
`connection.failed.authentication.delay.ms`.

Deliberate difference: what is larger than `sasl.server.max.receive.size` closes the connection at once.
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
"""Number of bytes of the size before every answer."""
_HANDSHAKE: Final = ApiKey.SASL_HANDSHAKE.to_bytes(2, "big")
REAUTHENTICATION_MS: Final = 1_000
"""A client that begins to log in again sooner is told ILLEGAL_SASL_STATE, as without a limit."""


class ListenerLogin(NamedTuple):
    """The ways in which clients of a listener log in."""

    make_authenticator: Callable[[], SaslServerAuthenticator]
    max_receive_bytes: int
    """The largest frame of a client that has not logged in."""
    failure_delay_ms: int


class ListenerSecurity(NamedTuple):
    """The credentials that a listener accepts; each may be absent."""

    login: ListenerLogin | None = None
    tls: SslListener | None = None


class Login:
    """Takes the requests of one connection until its client is known; for ever, if a login ends."""

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
        """Time at which the client began to log in again."""

    def handle_frame(self, frame: memoryview, connection: Connection, send_response: SendResponse) -> None:
        """Take the next step of the login, in this turn of the loop or one of the next.

        Raises ProtocolError where only closing the connection helps.
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
            # Not the error itself: it holds all that the login was made of.
            refusal = (self._turns.run, _refuse, connection, send_response, error.answer)
            self._process.call_later(self._failure_delay_ms, *refusal)
            # A line of a log costs as much as the rest of a refusal, so it has a turn of its own.
            self._turns.run(connection.log_end, f"failed authentication: {error}")
            return
        except Exception as error:  # noqa: BLE001 - the connection knows what to do with it
            connection.fail(error)
            return
        if authenticator.principal is not None:
            self._logged_in(authenticator.principal, connection)
        send_response(answer)

    def _logged_in(self, principal: KafkaPrincipal, connection: Connection) -> None:
        """Give way to the broker; stay between, if the login ends some time."""
        lifetime_ms = self._authenticator.session_lifetime_ms
        sink: RequestSink = self._broker
        if lifetime_ms is not None:
            # A login with a token that has ended is over at once, in the same millisecond.
            self._session_ends_ms = self._process.clock.now_ms() + (lifetime_ms or -1)
            sink = self
        connection.logged_in(
            principal, sink, self._max_request_bytes, by_token=self._authenticator.is_token_authenticated
        )

    def _begins_again(self, frame: memoryview) -> bool:
        """Return whether a known client logs in again: it may, once a second.

        Raises ProtocolError for anything else behind the end of its session.
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
        """Let the broker answer ApiVersions."""
        version = decode_request_header(frame)[0].api_version

        def answer(chunks: Sequence[Chunk] | None) -> None:
            if chunks and not _versions_told(version, chunks).error_code:
                self._authenticator.versions_told()
            send_response(chunks)

        self._broker.handle_frame(frame, connection, answer)


def _versions_told(version: int, chunks: Sequence[Chunk]) -> Any:
    """Return the message that the broker sends."""
    frame = b"".join(cast("Sequence[BytesLike]", chunks))
    return decode_response(ApiKey.API_VERSIONS, version, frame[_SIZE_BYTES:])[1]


def _refuse(connection: Connection, send_response: SendResponse, answer: Sequence[Chunk] | None) -> None:
    send_response(answer)
    connection.close()
