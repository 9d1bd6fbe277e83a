"""The delegation tokens that a broker accepts; mirrors `DelegationTokenCache`.

Deliberate difference: credentials are derived at the first login with a token, not when the token is created,
because that takes milliseconds, and most tokens are never used with most brokers.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Final

from broker_sim.metadata import SCRAM_MECHANISMS
from broker_sim.metadata.delegation_token import token_hmac
from broker_sim.security.scram import TokenCredential

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from broker_sim.metadata import MetadataImage, ScramCredential

SALT_BYTES: Final = 20


class DelegationTokenCache:
    """The credentials of one broker's tokens. Thread rule: only the broker's loop."""

    def __init__(self, secret_key: str | None, image: Callable[[], MetadataImage], salts: random.Random) -> None:
        self._secret_key = secret_key
        self._image = image
        self._salts = salts
        self._derived: dict[tuple[str, int], ScramCredential] = {}

    def credential_of(self, token_id: str, mechanism: int) -> TokenCredential | None:
        """Return the SCRAM credential of a token, None if the token does not exist."""
        tokens = self._image().delegation_tokens
        token = tokens.get(token_id)
        if token is None or not self._secret_key:
            return None
        credential = self._derived.get((token_id, mechanism))
        if credential is None:
            for key in [key for key in self._derived if key[0] not in tokens]:
                del self._derived[key]
            credential = self._derive(self._secret_key, token_id, mechanism)
            self._derived[token_id, mechanism] = credential
        return TokenCredential(credential, token.owner.name, token.expiry_timestamp_ms)

    def _derive(self, secret_key: str, token_id: str, mechanism: int) -> ScramCredential:
        scram = SCRAM_MECHANISMS[mechanism]
        password = b64encode(token_hmac(secret_key, token_id)).decode()
        salt, iterations = self._salts.randbytes(SALT_BYTES), scram.min_iterations
        return scram.credential(salt, scram.salted_password(password, salt, iterations), iterations)
