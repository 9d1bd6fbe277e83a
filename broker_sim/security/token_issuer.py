"""Issues tokens for a cluster's own clients, so that tests need no identity provider; needs `cryptography`."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.security.certificates import generate_key
from broker_sim.security.json_web_keys import JsonWebKeys

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

    from broker_sim.config import BrokerConfig

ISSUED_S: Final = 1_577_836_800
EXPIRES_S: Final = 4_102_444_800
"""Expiry time of tokens (2100) in s; they are valid from 2020 on, so that they do not depend on virtual time."""
_KEY_ID: Final = "broker-sim"
_HALF_BYTES: Final = 32


class KeySet(NamedTuple):
    """Public keys that verify signed tokens, as a JSON Web Key Set (RFC 7517)."""

    keys: tuple[Mapping[str, str], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the key set as JSON."""
        return {"keys": [dict(key) for key in self.keys]}


class TokenIssuer:
    """Issues the signed tokens of one cluster; its key is generated with the first. Raises MissingExtraError."""

    def __init__(self, key_id: str = _KEY_ID) -> None:
        self._key_id = key_id

    @cached_property
    def _key(self) -> EllipticCurvePrivateKey:
        return generate_key()

    @property
    def key_set(self) -> KeySet:
        """The issuer's public key as a JSON Web Key Set."""
        numbers = self._key.public_key().public_numbers()
        x, y = (_text(each.to_bytes(_HALF_BYTES, "big")) for each in (numbers.x, numbers.y))
        key = {"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": self._key_id}
        return KeySet(({**key, "x": x, "y": y},))

    @property
    def keys(self) -> JsonWebKeys:
        """The keys that verify its tokens."""
        return JsonWebKeys(self.key_set.keys)

    def token(self, user: str, config: BrokerConfig) -> str:
        """Return a token for the user with the claims that the configuration requires."""
        claims: dict[str, Any] = {config.sasl_oauthbearer_sub_claim_name: user, "iat": ISSUED_S, "exp": EXPIRES_S}
        if config.sasl_oauthbearer_expected_issuer is not None:
            claims["iss"] = config.sasl_oauthbearer_expected_issuer
        if config.sasl_oauthbearer_expected_audience:
            claims["aud"] = list(config.sasl_oauthbearer_expected_audience)
        return self._sign(claims)

    def _sign(self, claims: Mapping[str, Any]) -> str:
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415 - the same

        header = {"alg": "ES256", "kid": self._key_id}
        signed_text = ".".join(_text(json.dumps(each).encode()) for each in (header, claims))
        signature = self._key.sign(signed_text.encode(), ec.ECDSA(hashes.SHA256()))
        halves = utils.decode_dss_signature(signature)
        return f"{signed_text}.{_text(b''.join(each.to_bytes(_HALF_BYTES, 'big') for each in halves))}"


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
