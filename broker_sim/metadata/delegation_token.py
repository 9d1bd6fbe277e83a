"""A delegation token (KIP-48): a login that ends by itself, and that its owner can hand on.

Mirrors `TokenInformation` and `DelegationToken`. The token's password is not kept: it is the HMAC of the
token's id, by a secret that all brokers and the controller have (`delegation.token.secret.key`).
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from broker_sim.metadata.kafka_principal import KafkaPrincipal

_DIGEST = "sha512"


class DelegationToken(NamedTuple):
    """The public part of a token; the times are those of the wall clock."""

    token_id: str
    owner: KafkaPrincipal
    """The principal of a client that logs in with the token."""
    requester: KafkaPrincipal
    renewers: tuple[KafkaPrincipal, ...]
    issue_timestamp_ms: int
    max_timestamp_ms: int
    """The token is renewed up to here."""
    expiry_timestamp_ms: int

    def is_expired(self, now_ms: int) -> bool:
        """Whether the token has ended; its last millisecond is still good."""
        return min(self.max_timestamp_ms, self.expiry_timestamp_ms) < now_ms

    def is_owner_or_renewer(self, principal: KafkaPrincipal) -> bool:
        """Whether the token is the principal's to describe, renew and expire."""
        return principal == self.owner or principal in self.renewers


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """Return what a client shows to use, renew or expire the token; its Base64 is the password."""
    return hmac.digest(secret_key.encode(), token_id.encode(), _DIGEST)
