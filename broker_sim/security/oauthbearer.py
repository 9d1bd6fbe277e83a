"""SASL OAUTHBEARER (KIP-255), and unsigned tokens, which are for tests only.

Mirrors `OAuthBearerSaslServer`, `OAuthBearerClientInitialResponse`, `OAuthBearerUnsecuredJws` and
`OAuthBearerUnsecuredValidatorCallbackHandler`. A refused token is answered with JSON; the client then
sends one more byte, and the login fails with the same text.

Deliberate difference: tokens are checked against the broker's wall clock, which is virtual in virtual time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.errors import ConfigError
from broker_sim.protocol.errors import ProtocolError
from broker_sim.security.bearer_token import MS, PARTS, IllegalTokenError, Token, json_object, principal_of
from broker_sim.security.sasl_server import SaslAuthenticationError, SaslError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.security.bearer_token import TokenValidator

OAUTHBEARER: Final = "OAUTHBEARER"
OPTION: Final = "unsecuredValidator"
CONTROL_A: Final = b"\x01"
"""The byte with which a client replies to an error; Kafka's `BYTE_CONTROL_A`."""

_SASL_NAME: Final = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_PAIRS: Final = "(?:[A-Za-z]+=[\\x21-\\x7e \\t\\r\\n]+\x01)*"
_FIRST: Final = re.compile(f"n,(?:a=({_SASL_NAME}))?,\x01({_PAIRS})\x01")
_BEARER: Final = re.compile(r"(\w+) +([-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


class UnsecuredTokens(NamedTuple):
    """Validates unsecured tokens by the options of a JAAS line."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    clock_skew_ms: int = 0

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> UnsecuredTokens:
        """Read `unsecuredValidatorPrincipalClaimName` and so on. Raises ConfigError."""
        skew = options.get(f"{OPTION}AllowableClockSkewMs", "").strip() or "0"
        if not skew.isdecimal():
            raise ConfigError(f"Allowable clock skew millis must be a number of at least 0, not {skew}")
        return cls(
            options.get(f"{OPTION}PrincipalClaimName", "").strip() or "sub",
            options.get(f"{OPTION}ScopeClaimName", "").strip() or "scope",
            tuple(options.get(f"{OPTION}RequiredScope", "").split()),
            int(skew),
        )

    def validate(self, text: str, now_ms: int) -> Token:
        """Return the token's claims. Raises IllegalTokenError, ProtocolError."""
        parts = text.split(".")
        if len(parts) != PARTS:
            raise IllegalTokenError("a token must have three parts separated by dots")
        header, claims = json_object(parts[0]), json_object(parts[1])
        if "alg" not in header:
            raise ProtocolError("JWS header must have an Algorithm value")
        if header["alg"] != "none" or parts[2]:
            raise IllegalTokenError("Unsecured JWS must have 'none' for an algorithm, and no signature")
        principal = principal_of(claims, self.principal_claim)
        issued, expires = _number(claims, "iat"), _number(claims, "exp")
        if issued is not None and issued * MS > now_ms + self.clock_skew_ms:
            raise IllegalTokenError("the token's issue time is in the future")
        if expires is None or now_ms - self.clock_skew_ms >= expires * MS:
            raise IllegalTokenError("the token has expired, or has no expiry time")
        if issued is not None and expires <= issued:
            raise IllegalTokenError("the token expires before it is issued")
        scope = claims.get(self.scope_claim) or ()
        scopes = {scope.strip()} if isinstance(scope, str) else set(scope)
        if not scopes.issuperset(self.required_scope):
            raise IllegalTokenError("a required scope is missing", f"[{', '.join(self.required_scope)}]")
        return Token(principal, round(expires * MS))


def _number(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    raise IllegalTokenError(f"The '{name}' claim was not of type Number")


class OAuthBearerSaslServer:
    """One login with a token."""

    __slots__ = ("_error", "_tokens", "_wall_clock_ms", "authorization_id", "expires_ms", "is_complete")
    is_token_authenticated: Final = False

    def __init__(self, tokens: TokenValidator, wall_clock_ms: Callable[[], int]) -> None:
        self._tokens = tokens
        self._wall_clock_ms = wall_clock_ms
        self._error = ""
        self.is_complete = False
        self.authorization_id = ""
        self.expires_ms: int | None = None

    def evaluate_response(self, token: bytes) -> bytes:
        """Evaluate the client's token, or its reply to an error. Raises SaslError, ProtocolError."""
        if token == CONTROL_A and self._error:
            raise SaslAuthenticationError(self._error)
        self._error = ""
        authorization_id, text = _read_first(token.decode(errors="replace"))
        try:
            claims = self._tokens.validate(text, self._wall_clock_ms())
        except IllegalTokenError as error:
            status = "invalid_token" if error.scope is None else "insufficient_scope"
            scope = "" if error.scope is None else f', "scope":"{error.scope}"'
            self._error = f'{{"status":"{status}"{scope}}}'
            return self._error.encode()
        if authorization_id not in {None, claims.principal}:
            raise SaslAuthenticationError(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) that"
                f" is different from the token's principal name ({claims.principal})"
            )
        self.authorization_id, self.expires_ms = claims
        self.is_complete = True
        return b""


def _read_first(message: str) -> tuple[str | None, str]:
    """Return the authorization id and the token of a client's first message. Raises SaslError, ProtocolError."""
    match = _FIRST.fullmatch(message)
    if match is None:
        raise SaslError("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.split("=", 1) for pair in match[2].split("\x01") if pair)
    bearer = _BEARER.fullmatch(pairs.get("auth", ""))
    if bearer is None:
        raise SaslError("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    if bearer[1].lower() != "bearer":
        raise ProtocolError(f"Invalid scheme in OAUTHBEARER client first message: {bearer[1]}")
    return match[1], bearer[2]
