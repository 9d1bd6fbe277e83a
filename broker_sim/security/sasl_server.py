"""What the server's side of a SASL mechanism does: tokens in, challenges out; mirrors `SaslServer`."""

from __future__ import annotations

from typing import Protocol


class SaslError(Exception):
    """A login fails, and the client is not told why; mirrors `SaslException`. No secret is in its text."""


class SaslAuthenticationError(SaslError):
    """A login fails, and the client is told this text; mirrors `SaslAuthenticationException`."""


class SaslServer(Protocol):
    """One login by one mechanism."""

    @property
    def is_complete(self) -> bool:
        """Whether the client is known now."""

    @property
    def authorization_id(self) -> str:
        """Who the client is, when it is known."""

    @property
    def is_token_authenticated(self) -> bool:
        """Whether the client logs in by a delegation token."""

    @property
    def expires_ms(self) -> int | None:
        """When the client's credential ends, by the wall clock; None if it does not."""

    def evaluate_response(self, token: bytes) -> bytes:
        """Return the answer to a token of the client. Raises SaslError, ProtocolError."""
