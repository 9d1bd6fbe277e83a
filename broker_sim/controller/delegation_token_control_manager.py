"""The delegation tokens of the cluster (KIP-48, KIP-373); mirrors `DelegationTokenControlManager`.

A token can be renewed for at most `delegation.token.expiry.time.ms` at a time, and never beyond
`delegation.token.max.lifetime.ms`. Expired tokens are removed every
`delegation.token.expiry.check.interval.ms`.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.delegation_token import DelegationToken, token_hmac
from broker_sim.metadata.feature_names import METADATA_VERSION
from broker_sim.metadata.kafka_principal import USER_TYPE
from broker_sim.protocol.uuids import uuid_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata import MetadataDelta
    from broker_sim.metadata.kafka_principal import KafkaPrincipal

FIRST_LEVEL: Final = 14
"""Level of 3.6-IV2, the first metadata.version with tokens."""
MAX_TIMESTAMP_MS: Final = (1 << 63) - 1
_ID_BYTES: Final = 16


class DelegationTokenControlManager:
    """Creates, renews and expires tokens. Each method raises ApiError where Kafka's returns an error code."""

    def __init__(self, config: BrokerConfig, clock: Clock, rng: Random) -> None:
        self._secret_key = config.delegation_token_secret_key
        self._max_lifetime_ms = config.delegation_token_max_lifetime_ms
        self._renew_lifetime_ms = config.delegation_token_expiry_time_ms
        self._clock = clock
        self._random = rng

    @property
    def is_enabled(self) -> bool:
        """Whether a secret for tokens is configured."""
        return bool(self._secret_key)

    def create(
        self,
        delta: MetadataDelta,
        owner: KafkaPrincipal,
        requester: KafkaPrincipal,
        renewers: Sequence[KafkaPrincipal],
        max_lifetime_ms: int,
    ) -> DelegationToken:
        """Create a token; a lifetime of 0 or less requests the maximum.

        Raises ApiError with INVALID_PRINCIPAL_TYPE for a renewer that is not a user.
        """
        self._check_enabled(delta)
        if any(renewer.principal_type != USER_TYPE for renewer in renewers):
            raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        now_ms = self._clock.wall_clock_ms()
        max_timestamp_ms = _later(now_ms, _limited(max_lifetime_ms, self._max_lifetime_ms))
        token = DelegationToken(
            self._new_id(),
            owner,
            requester,
            tuple(renewers),
            now_ms,
            max_timestamp_ms,
            min(max_timestamp_ms, _later(now_ms, self._renew_lifetime_ms)),
        )
        delta.set_delegation_token(token)
        return token

    def renew(self, delta: MetadataDelta, principal: KafkaPrincipal, hmac_: bytes, renew_period_ms: int) -> int:
        """Return the token's new expiry time in ms; a period of 0 or less requests the maximum.

        Raises ApiError with DELEGATION_TOKEN_NOT_FOUND, _EXPIRED or _OWNER_MISMATCH, in this order.
        """
        self._check_enabled(delta)
        now_ms, token = self._clock.wall_clock_ms(), self._find(delta, hmac_)
        if token.is_expired(now_ms):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        _check_owner(token, principal)
        period_ms = _limited(renew_period_ms, self._renew_lifetime_ms)
        return _set_expiry(delta, token, _later(now_ms, period_ms))

    def expire(self, delta: MetadataDelta, principal: KafkaPrincipal, hmac_: bytes, period_ms: int) -> int:
        """Return the token's new expiry time in ms; a negative period removes it at once, even if it has expired.

        Raises ApiError with DELEGATION_TOKEN_NOT_FOUND, _OWNER_MISMATCH or _EXPIRED, in this order.
        """
        self._check_enabled(delta)
        now_ms, token = self._clock.wall_clock_ms(), self._find(delta, hmac_)
        _check_owner(token, principal)
        if period_ms < 0:
            delta.remove_delegation_token(token.token_id)
            return now_ms
        if token.is_expired(now_ms):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        return _set_expiry(delta, token, _later(now_ms, period_ms))

    def sweep(self, delta: MetadataDelta) -> bool:
        """Remove the expired tokens, as a periodic task; always returns False."""
        now_ms = self._clock.wall_clock_ms()
        for token in list(delta.delegation_tokens.values()):
            if token.is_expired(now_ms):
                delta.remove_delegation_token(token.token_id)
        return False

    def _check_enabled(self, delta: MetadataDelta) -> None:
        if not self.is_enabled:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
        if delta.base.features.get(METADATA_VERSION, 0) < FIRST_LEVEL:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)

    def _find(self, delta: MetadataDelta, hmac_: bytes) -> DelegationToken:
        secret_key = self._secret_key
        assert secret_key is not None
        for token in delta.delegation_tokens.values():
            if hmac.compare_digest(token_hmac(secret_key, token.token_id), hmac_):
                return token
        raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)

    def _new_id(self) -> str:
        """Return an id like Kafka's `Uuid.randomUuid`, which never begins with a dash."""
        while True:
            text = uuid_text(self._random.randbytes(_ID_BYTES))
            if not text.startswith("-"):
                return text


def _check_owner(token: DelegationToken, principal: KafkaPrincipal) -> None:
    if not token.is_owner_or_renewer(principal):
        raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _set_expiry(delta: MetadataDelta, token: DelegationToken, expiry_ms: int) -> int:
    expiry_ms = min(token.max_timestamp_ms, expiry_ms)
    delta.set_delegation_token(token._replace(expiry_timestamp_ms=expiry_ms))
    return expiry_ms


def _limited(requested_ms: int, longest_ms: int) -> int:
    return min(requested_ms, longest_ms) if requested_ms > 0 else longest_ms


def _later(now_ms: int, duration_ms: int) -> int:
    return min(now_ms + duration_ms, MAX_TIMESTAMP_MS)
