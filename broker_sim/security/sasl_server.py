"""The interface of a SASL mechanism's server side, from tokens to challenges; mirrors `SaslServer`."""

from __future__ import annotations

from typing import Protocol


class SaslError(Exception):
    """The login failed, without a reason for the client; mirrors `SaslException`. The message contains no secret."""


class SaslAuthenticationError(SaslError):
    """The login failed, and the client gets this message; mirrors `SaslAuthenticationException`."""


class SaslServer(Protocol):
    """One login with one mechanism."""

    @property
    def is_complete(self) -> bool:
        """Whether the login has succeeded."""

    @property
    def authorization_id(self) -> str:
        """Name of the client, once the login has succeeded."""

    @property
    def is_token_authenticated(self) -> bool:
        """Whether the client logs in with a delegation token."""

    @property
    def expires_ms(self) -> int | None:
        """Time at which the client's credential expires (wall clock, ms); None if it does not."""

    def evaluate_response(self, token: bytes) -> bytes:
        """Return the challenge or response to a token of the client. Raises SaslError, ProtocolError."""
