"""The server's side of a SASL login: frames in, frames out, without I/O; mirrors `SaslServerAuthenticator`.

    handshake or versions request   the beginning: SaslHandshake or ApiVersions
    handshake request               after ApiVersions: only SaslHandshake
    authenticate                    tokens: in SaslAuthenticate after SaslHandshake version 1, otherwise bare
    complete                        the client has authenticated; later requests are for the broker

A client may reauthenticate (KIP-368), with the same mechanism and as the same user: `reauthenticate`.

A failed login raises `LoginFailedError`, with the response to send after Kafka's delay; where Kafka closes the
connection at once, ProtocolError is raised.

Deliberate differences: the broker answers ApiVersions as it does after the login, so that faults can hit it, and
`versions_answered` is called then. A request for topics or partitions between SaslHandshake and SaslAuthenticate
gets a response without them.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ErrorCode
from broker_sim.metadata.kafka_principal import USER_TYPE, KafkaPrincipal
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey, request_class
from broker_sim.protocol.codec import decode
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.headers import RequestHeader, decode_request_header, encode_response
from broker_sim.security.sasl_server import SaslAuthenticationError, SaslError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from broker_sim.protocol.message import Chunk, Message
    from broker_sim.security.sasl_server import SaslServer

    Mechanisms = Mapping[str, Callable[[], SaslServer]]
    ErrorAnswer = Callable[[ApiKey, Any, int, ErrorCode], Message]

HANDSHAKE_VERSIONS: Final = range(2)
AUTHENTICATE_VERSIONS: Final = range(3)
HEADERS_VERSION: Final = 1
"""First version of SaslHandshake after which tokens are sent in SaslAuthenticate."""


class LoginFailedError(Exception):
    """The login failed. The message is for the log, `answer` for the client."""

    def __init__(self, reason: str, answer: Sequence[Chunk] | None = None) -> None:
        super().__init__(reason)
        self.answer = answer


class _State(Enum):
    HANDSHAKE_OR_VERSIONS_REQUEST = "handshake or versions request"
    HANDSHAKE_REQUEST = "handshake request"
    AUTHENTICATE = "authenticate"
    COMPLETE = "complete"


class SaslServerAuthenticator:
    """The login of one connection. `mechanisms` are the enabled ones, in the order of Kafka's list."""

    def __init__(
        self,
        mechanisms: Mechanisms,
        error_answer: ErrorAnswer,
        session_ms: Mapping[str, int],
        wall_clock_ms: Callable[[], int],
        *,
        limited: bool = True,
    ) -> None:
        """`session_ms` is the lifetime of a login in ms, by mechanism; 0 or less means no limit.

        `limited` refuses too many tagged fields and elements of arrays, as Kafka does from 4.4 on.
        """
        self._mechanisms = mechanisms
        self._error_answer = error_answer
        self._session_ms = session_ms
        self._wall_clock_ms = wall_clock_ms
        self._is_limited = limited
        self._previous_login: tuple[str, KafkaPrincipal] | None = None
        """Mechanism and principal of the previous login, while the client reauthenticates."""
        self.session_lifetime_ms: int | None = None
        """Lifetime of the login in ms; None without a limit."""
        self._state = _State.HANDSHAKE_OR_VERSIONS_REQUEST
        self._mechanism = ""
        self._server: SaslServer | None = None
        self._has_headers = False

    @property
    def principal(self) -> KafkaPrincipal | None:
        """Principal of the client; None before the login."""
        if self._state is not _State.COMPLETE:
            return None
        assert self._server is not None
        return KafkaPrincipal(USER_TYPE, self._server.authorization_id)

    @property
    def is_token_authenticated(self) -> bool:
        """Whether the authenticated client has logged in with a delegation token."""
        assert self._server is not None
        return self._server.is_token_authenticated

    def reauthenticate(self) -> None:
        """Start a new login, with a SaslHandshake."""
        assert self.principal is not None
        self._previous_login = self._mechanism, self.principal
        self._has_headers = False
        self._state = _State.HANDSHAKE_REQUEST

    def versions_answered(self) -> None:
        """Record that the broker has answered ApiVersions without an error."""
        if self._state is _State.HANDSHAKE_OR_VERSIONS_REQUEST:
            self._state = _State.HANDSHAKE_REQUEST

    def receive(self, frame: memoryview) -> Sequence[Chunk] | None:
        """Return the response to a frame, None if the broker has to answer ApiVersions.

        Raises LoginFailedError, ProtocolError.
        """
        if self._state is _State.AUTHENTICATE:
            return self._receive_token(frame)
        header, offset = decode_request_header(frame, limited=self._is_limited)
        if header.api_key is ApiKey.SASL_HANDSHAKE:
            return self._handshake(header, frame, offset)
        if header.api_key is not ApiKey.API_VERSIONS:
            raise ProtocolError(f"Unexpected Kafka request of type {header.api_key.name} during SASL handshake.")
        if self._state is not _State.HANDSHAKE_OR_VERSIONS_REQUEST:
            raise ProtocolError(
                f"Unexpected ApiVersions request received during SASL authentication state {self._state.name}"
            )
        return None

    def _handshake(self, header: RequestHeader, frame: memoryview, offset: int) -> Sequence[Chunk] | None:
        request = self._decode(header, frame, offset, HANDSHAKE_VERSIONS)
        self._has_headers |= header.api_version >= HEADERS_VERSION
        make_server = self._mechanisms.get(request.mechanism)
        answer = _encode(
            header,
            messages.SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM if make_server is None else ErrorCode.NONE,
                mechanisms=list(self._mechanisms),
            ),
        )
        if make_server is None:
            reason = f"Unsupported SASL mechanism {request.mechanism}"
            raise (LoginFailedError(reason, answer) if self._previous_login is None else ProtocolError(reason))
        self._mechanism = request.mechanism
        self._server = make_server()
        self._state = _State.AUTHENTICATE
        return answer

    def _receive_token(self, frame: memoryview) -> Sequence[Chunk]:
        if not self._has_headers:
            return self._receive_bare_token(frame)
        header, offset = decode_request_header(frame, limited=self._is_limited)
        if header.api_key is not ApiKey.SASL_AUTHENTICATE:
            unexpected = self._decode(header, frame, offset)
            answer = self._error_answer(header.api_key, unexpected, header.api_version, ErrorCode.ILLEGAL_SASL_STATE)
            raise LoginFailedError(
                f"Unexpected Kafka request of type {header.api_key.name} during SASL authentication.",
                _encode(header, answer),
            )
        request = self._decode(header, frame, offset, AUTHENTICATE_VERSIONS)
        try:
            token = self._evaluate(bytes(request.auth_bytes))
        except SaslError as error:
            # The message for the client does not reveal whether the user exists.
            message = str(error) if isinstance(error, SaslAuthenticationError) else self._invalid_credentials()
            failure = messages.SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=message
            )
            raise LoginFailedError(str(error), _encode(header, failure)) from None
        lifetime_ms = self.session_lifetime_ms if self._state is _State.COMPLETE else None
        return _encode(
            header, messages.SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms or 0)
        )

    def _decode(
        self, header: RequestHeader, frame: memoryview, offset: int, versions: Container[int] | None = None
    ) -> Any:
        api_key, version = header.api_key, header.api_version
        if versions is not None and version not in versions:
            raise ProtocolError(f"{api_key.name} version {version} is not served")
        return decode(request_class(api_key), version, frame, offset, limited=self._is_limited)

    def _invalid_credentials(self) -> str:
        what = "authentication" if self._previous_login is None else "re-authentication"
        return f"Authentication failed during {what} due to invalid credentials with SASL mechanism {self._mechanism}"

    def _receive_bare_token(self, frame: memoryview) -> Sequence[Chunk]:
        """Process a token as clients before Kafka 1.0 send it; a failure has no response."""
        try:
            token = self._evaluate(bytes(frame))
        except SaslAuthenticationError as error:
            raise LoginFailedError(str(error)) from None
        except SaslError as error:
            raise ProtocolError(str(error)) from None
        return [len(token).to_bytes(4, "big") + token]

    def _evaluate(self, token: bytes) -> bytes:
        server = self._server
        assert server is not None
        if self._previous_login is not None and self._previous_login[0] != self._mechanism:
            raise LoginFailedError(
                f"SASL mechanism '{self._mechanism}' requested by client is not supported for"
                f" re-authentication of mechanism '{self._previous_login[0]}'"
            )
        answer = server.evaluate_response(token)
        if server.is_complete:
            self._check_unchanged(KafkaPrincipal(USER_TYPE, server.authorization_id))
            self.session_lifetime_ms = self._lifetime_ms(server.expires_ms)
            self._previous_login = None
            self._state = _State.COMPLETE
        return answer

    def _check_unchanged(self, principal: KafkaPrincipal) -> None:
        if self._previous_login is not None and self._previous_login[1] != principal:
            before = self._previous_login[1]
            raise SaslAuthenticationError(
                f"Cannot change principals during re-authentication from {before.principal_type}."
                f"{before.name}: {principal.principal_type}.{principal.name}"
            )

    def _lifetime_ms(self, expires_ms: int | None) -> int | None:
        """Return the remaining lifetime of the credential or the session limit, whichever is shorter, in ms."""
        limits = [each for each in (self._session_ms.get(self._mechanism, 0),) if each > 0]
        if expires_ms is not None:
            limits.append(expires_ms - self._wall_clock_ms())
        return max(0, min(limits)) if limits else None


def _encode(header: RequestHeader, message: Message) -> Sequence[Chunk]:
    return encode_response(header.api_key, header.api_version, header.correlation_id, message)
