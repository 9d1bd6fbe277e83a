"""Common code for OAUTHBEARER tokens, signed or not: their parts and claims."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

MS: Final = 1_000
PARTS: Final = 3
"""Number of parts of a token: header, claims and signature."""


class Token(NamedTuple):
    """Claims of a valid token; the token itself is a secret and not stored."""

    principal: str
    expires_ms: int


class IllegalTokenError(Exception):
    """The token is invalid; `scope` is the missing scope, if that is the reason."""

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.scope = scope


class TokenValidator(Protocol):
    """Validates tokens."""

    def validate(self, text: str, now_ms: int) -> Token:
        """Return the token's claims. Raises IllegalTokenError, ProtocolError."""


def decode_part(part: str) -> bytes:
    """Return the bytes of a part of a token. Raises ValueError."""
    return b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True)


def json_object(part: str) -> dict[str, Any]:
    """Return the JSON object of a part, empty for any other JSON value. Raises IllegalTokenError."""
    try:
        value = json.loads(decode_part(part))
    except (ValueError, RecursionError):
        value = None
    if value is None:
        raise IllegalTokenError("malformed JSON")
    return value if isinstance(value, dict) else {}


def principal_of(claims: Mapping[str, Any], name: str) -> str:
    """Return the principal in the claim `name`. Raises IllegalTokenError if it is missing, blank or no string."""
    principal = claims.get(name)
    if not isinstance(principal, str) or not principal.strip():
        raise IllegalTokenError(f"No principal name in JWT claim: {name}")
    return principal
