"""A delegation token (KIP-48): a credential that expires, and that its owner can pass to others.

Mirrors `TokenInformation` and `DelegationToken`. The token's password is not stored: it is the HMAC of the
token id, with a secret that all brokers and the controller share (`delegation.token.secret.key`).
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker_sim.metadata.kafka_principal import KafkaPrincipal

_DIGEST = "sha512"


class DelegationToken(NamedTuple):
    """The public part of a token; timestamps are wall-clock."""

    token_id: str
    owner: KafkaPrincipal
    """Principal of clients that log in with the token."""
    requester: KafkaPrincipal
    renewers: tuple[KafkaPrincipal, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    """The latest time to which the token can be renewed."""
    expiry_timestamp_ms: int

    def is_expired(self, now_ms: int) -> bool:
        """Whether the token has expired; it is still valid at exactly its expiry time."""
        return min(self.max_timestamp_ms, self.expiry_timestamp_ms) < now_ms

    def is_owner_or_renewer(self, principal: KafkaPrincipal) -> bool:
        """Whether the principal may describe, renew and expire the token."""
        return principal == self.owner or principal in self.renewers


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """Return the token's HMAC, which clients send to renew or expire it; in Base64 it is the password."""
    return hmac.digest(secret_key.encode(), token_id.encode(), _DIGEST)
