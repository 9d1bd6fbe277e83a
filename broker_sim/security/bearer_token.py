"""What is common to tokens of OAUTHBEARER, signed or not: their parts, and what is read from them."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any, Final, NamedTuple, Protocol

MS: Final = 1_000


class Token(NamedTuple):
    """What a good token says; the token itself is a secret and not kept."""

    principal: str
    expires_ms: int


class IllegalTokenError(Exception):
    """A token is refused; `scope` is what it lacks."""

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.scope = scope


class TokenValidator(Protocol):
    """Says which tokens are good."""

    def validate(self, text: str, now_ms: int) -> Token:
        """Return what the token says. Raises IllegalTokenError, ProtocolError."""


def decode_part(part: str) -> bytes:
    """Return the bytes of a part of a token. Raises ValueError."""
    return b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True)


def json_object(part: str) -> dict[str, Any]:
    """Return the object of a part; what is no object has no members. Raises IllegalTokenError."""
    try:
        found = json.loads(decode_part(part))
    except (ValueError, RecursionError):
        found = None
    if found is None:
        raise IllegalTokenError("malformed JSON")
    return found if isinstance(found, dict) else {}
