"""Validation of signed tokens; mirrors `BrokerJwtValidator`, `ClaimValidationUtils`, and jose4j's checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from broker_sim.protocol.errors import ProtocolError
from broker_sim.security.bearer_token import MS, PARTS, IllegalTokenError, Token, decode_part, json_object, principal_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.config import BrokerConfig
    from broker_sim.runtime.process import Process


class TokenKeys(Protocol):
    """Keys for signed tokens, from a file, a URL or the cluster's own issuer."""

    def start(self, process: Process) -> None:
        """Keep the keys up to date while the broker's process lives."""

    def verify(self, header: Mapping[str, Any], signature: bytes, signed: bytes) -> bool:
        """Whether the signature was made with one of the keys."""


class SignedTokens(NamedTuple):
    """Validates signed tokens: their keys, and the claims they must have."""

    keys: TokenKeys
    audiences: tuple[str, ...] = ()
    issuer: str | None = None
    scope_claim: str = "scope"
    principal_claim: str = "sub"
    clock_skew_s: int = 30
    allows_any_audience: bool = False
    """Whether tokens with any audience are accepted if no audiences are configured; otherwise they must have none."""

    @classmethod
    def from_config(cls, config: BrokerConfig, keys: TokenKeys) -> SignedTokens:
        """Return the validator for the `sasl.oauthbearer.` configurations."""
        return cls(
            keys,
            config.sasl_oauthbearer_expected_audience,
            config.sasl_oauthbearer_expected_issuer,
            config.sasl_oauthbearer_scope_claim_name,
            config.sasl_oauthbearer_sub_claim_name,
            config.sasl_oauthbearer_clock_skew_seconds,
            config.sasl_oauthbearer_allow_unverified_audience,
        )

    def validate(self, text: str, now_ms: int) -> Token:
        """Return the token's claims. Raises IllegalTokenError, ProtocolError."""
        parts = text.split(".")
        if len(parts) != PARTS or not all(parts):
            raise IllegalTokenError("a token must have three parts separated by dots")
        header, claims = json_object(parts[0]), json_object(parts[1])
        if header.get("crit") or not self._is_signed(header, parts):
            raise IllegalTokenError("the token is not signed with a known key")
        expires_s = self._check_times(claims, now_ms // MS)
        self._check_audience(claims.get("aud"))
        issuer, token_id = claims.get("iss"), claims.get("jti")
        if not isinstance(issuer, str | None) or not isinstance(token_id, str | None):
            raise IllegalTokenError("the token's issuer or id is not a string")
        if self.issuer not in (None, issuer):
            raise IllegalTokenError("the token has another issuer")
        _check_scopes(claims.get(self.scope_claim))
        principal = principal_of(claims, self.principal_claim).strip()
        return Token(principal, expires_s * MS)

    def _is_signed(self, header: Mapping[str, Any], parts: list[str]) -> bool:
        try:
            signature = decode_part(parts[2])
        except ValueError:
            return False
        return self.keys.verify(header, signature, f"{parts[0]}.{parts[1]}".encode())

    def _check_times(self, claims: Mapping[str, Any], now_s: int) -> int:
        """Return the time at which the token expires."""
        expires_s, issued_s, begins_s = (_seconds(claims, name) for name in ("exp", "iat", "nbf"))
        if expires_s is None or issued_s is None:
            raise IllegalTokenError("the token has no issue time or no expiry time")
        if now_s - self.clock_skew_s >= expires_s:
            raise IllegalTokenError("the token has expired")
        if begins_s is not None and now_s + self.clock_skew_s < begins_s:
            raise IllegalTokenError("the token is not valid yet")
        if expires_s < issued_s or (begins_s is not None and expires_s < begins_s):
            raise IllegalTokenError("the token expires before it is issued or valid")
        if issued_s < 0:
            raise IllegalTokenError("the token has a negative issue time")
        return expires_s

    def _check_audience(self, audience: object) -> None:
        """Raise IllegalTokenError unless the token is for one of the audiences.

        Without audiences, a token with one is refused, unless any audience is allowed.
        """
        if self.allows_any_audience and not self.audiences:
            return
        token_audiences = {audience} if isinstance(audience, str) else set(_texts(audience))
        if token_audiences.isdisjoint(self.audiences) if self.audiences else audience is not None:
            raise IllegalTokenError("the token is for another audience")


def _texts(value: object) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise IllegalTokenError("a claim of the token must be a string or a list of strings")
    return value


def _seconds(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise IllegalTokenError(f"the claim {name} is not a time")
    try:
        return int(value)
    except (ValueError, OverflowError):  # NaN and infinity, which Python's JSON has
        raise IllegalTokenError(f"the claim {name} is not a time") from None


def _check_scopes(value: object) -> None:
    """Raise IllegalTokenError for empty or duplicate scopes, ProtocolError where Kafka fails."""
    scopes = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    names: set[str] = set()
    for scope in scopes:
        if scope is not None and not isinstance(scope, str):
            raise ProtocolError("a scope is not a string")
        trimmed = (scope or "").strip()
        if not trimmed or trimmed in names:
            raise IllegalTokenError("a scope is empty or duplicate")
        names.add(trimmed)
