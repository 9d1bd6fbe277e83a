"""SASL PLAIN: user name and password (RFC 4616).

Mirrors `PlainSaslServer` and `PlainServerCallbackHandler`. Messages are Kafka's, because clients see
them.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from broker_sim.security.sasl_server import SaslAuthenticationError

if TYPE_CHECKING:
    from collections.abc import Mapping

PLAIN: Final = "PLAIN"
TOKENS: Final = 3
MOST_TOKENS: Final = 4
"""Maximum number of tokens that Kafka counts in a message."""


class PlainUsers:
    """The passwords of users, by name; its `repr` does not show them."""

    __slots__ = ("_first", "passwords")

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._first = passwords
        self.passwords = passwords

    def set_password(self, user: str, password: str) -> None:
        """Set the user's password."""
        self.passwords = {**self.passwords, user: password}

    def reset(self) -> None:
        """Restore the initial passwords."""
        self.passwords = self._first

    def knows(self, user: str, password: str) -> bool:
        """Whether the password is correct; wrong passwords of the same length take equal time."""
        expected = self.passwords.get(user)
        # An unknown user takes as long as a wrong password.
        compared = password if expected is None else expected
        is_equal = hmac.compare_digest(password.encode(), compared.encode())
        return is_equal and expected is not None


class PlainSaslServer:
    """One login with name and password."""

    __slots__ = ("_users", "authorization_id", "is_complete")
    expires_ms: Final = None
    is_token_authenticated: Final = False

    def __init__(self, users: PlainUsers) -> None:
        self._users = users
        self.is_complete = False
        self.authorization_id = ""

    def evaluate_response(self, token: bytes) -> bytes:
        """Evaluate the client's only message. Raises SaslAuthenticationError."""
        tokens = token.decode(errors="replace").split("\0", MOST_TOKENS)[:MOST_TOKENS]
        if len(tokens) != TOKENS:
            raise SaslAuthenticationError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}")
        authorization_id, user, password = tokens
        if not user:
            raise SaslAuthenticationError("Authentication failed: username not specified")
        if not password:
            raise SaslAuthenticationError("Authentication failed: password not specified")
        if not self._users.knows(user, password):
            raise SaslAuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id not in {"", user}:
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.authorization_id = user
        self.is_complete = True
        return b""
