"""SCRAM mechanisms and the keys that they derive from a password (RFC 5802).

Mirrors the internal `ScramMechanism` and `ScramFormatter`. With the stored key the server verifies the
client, with the server key it proves itself to the client; neither can be used to log in.
"""

from __future__ import annotations

import hashlib
import hmac
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.metadata.image import ScramCredential

if TYPE_CHECKING:
    from collections.abc import Mapping

_CLIENT_KEY: Final = b"Client Key"
_SERVER_KEY: Final = b"Server Key"


class ScramMechanism(NamedTuple):
    """A mechanism: Kafka's code, its name, and its hash algorithm."""

    code: int
    name: str
    digest: str
    min_iterations: int

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Return the salted password after that number of hash iterations; takes milliseconds."""
        return hashlib.pbkdf2_hmac(self.digest, password.encode(), salt, iterations)

    def credential(self, salt: bytes, salted_password: bytes, iterations: int) -> ScramCredential:
        """Return the credential that is stored for a password."""
        return ScramCredential(
            salt,
            stored_key=self.stored_key(hmac.digest(salted_password, _CLIENT_KEY, self.digest)),
            server_key=hmac.digest(salted_password, _SERVER_KEY, self.digest),
            iterations=iterations,
        )

    def stored_key(self, client_key: bytes) -> bytes:
        """Return the hash of a client key, which the server stores."""
        return hashlib.new(self.digest, client_key).digest()

    def signature(self, key: bytes, message: bytes) -> bytes:
        """Return the HMAC of the authentication messages."""
        return hmac.digest(key, message, self.digest)


SCRAM_MECHANISMS: Final[Mapping[int, ScramMechanism]] = MappingProxyType(
    {1: ScramMechanism(1, "SCRAM-SHA-256", "sha256", 4_096), 2: ScramMechanism(2, "SCRAM-SHA-512", "sha512", 4_096)}
)
"""SCRAM mechanisms by Kafka's code."""
