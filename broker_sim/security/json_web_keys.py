"""Public keys of token issuers (RFC 7517), and signatures (RFC 7518); needs `cryptography`.

Mirrors the choice of keys of jose4j.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from broker_sim.errors import ConfigError
from broker_sim.security.bearer_token import decode_part
from broker_sim.security.certificates import check_cryptography

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurve, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

    from broker_sim.runtime.process import Process

TIMEOUT_S: Final = 10
SMALLEST_RSA_BITS: Final = 2_048
_SCHEMES: Final = ("file", "http", "https")
_KEY_TYPES: Final = {"RS": "RSA", "ES": "EC"}
_CURVES: Final = {"P-256": ("secp256r1", 32), "P-384": ("secp384r1", 48), "P-521": ("secp521r1", 66)}
_CURVE_OF: Final = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
_ALGORITHMS: Final = frozenset({"RS256", "RS384", "RS512", *_CURVE_OF})


class WebKey(NamedTuple):
    """A public key of the set; only RSA and elliptic curve keys are used."""

    members: Mapping[str, Any]

    def fits(self, name: str, value: object, *, may_be_missing: bool) -> bool:
        """Whether the key's member `name` has the value, or is missing if it may be."""
        own = self.members.get(name)
        return own == value or (own is None and may_be_missing)

    def verifies(self, algorithm: str, signature: bytes, signed: bytes) -> bool:
        """Whether the signature was made with this key. Raises ValueError for an invalid key."""
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra

        try:
            if algorithm.startswith("RS"):
                self._verify_rsa(algorithm, signature, signed)
            else:
                self._verify_ec(algorithm, signature, signed)
        except InvalidSignature:
            return False
        return True

    def _verify_rsa(self, algorithm: str, signature: bytes, signed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric import padding, rsa  # noqa: PLC0415 - an extra

        key: RSAPublicKey = rsa.RSAPublicNumbers(self._number("e"), self._number("n")).public_key()
        if key.key_size < SMALLEST_RSA_BITS:
            raise ValueError(f"an RSA key of {key.key_size} bits is too short")
        key.verify(signature, signed, padding.PKCS1v15(), _hash_of(algorithm))

    def _verify_ec(self, algorithm: str, signature: bytes, signed: bytes) -> None:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415 - the same

        name, half = _CURVES[_CURVE_OF[algorithm]]
        if self.members.get("crv") != _CURVE_OF[algorithm] or len(signature) != 2 * half:
            raise InvalidSignature
        curve: EllipticCurve = getattr(ec, name.upper())()
        numbers = ec.EllipticCurvePublicNumbers(self._number("x"), self._number("y"), curve)
        key: EllipticCurvePublicKey = numbers.public_key()
        r, s = (int.from_bytes(each, "big") for each in (signature[:half], signature[half:]))
        key.verify(utils.encode_dss_signature(r, s), signed, ec.ECDSA(_hash_of(algorithm)))

    def _number(self, name: str) -> int:
        return int.from_bytes(decode_part(str(self.members.get(name, ""))), "big")


class JsonWebKeys:
    """A set of keys. Raises MissingExtraError without `cryptography`."""

    def __init__(self, members: Sequence[Mapping[str, Any]]) -> None:
        check_cryptography()
        self._keys = [WebKey(each) for each in members]

    @classmethod
    def parse(cls, text: str | bytes) -> JsonWebKeys:
        """Parse a key set. Raises ValueError, MissingExtraError."""
        key_set = json.loads(text)
        keys = key_set.get("keys") if isinstance(key_set, dict) else None
        if not isinstance(keys, list) or not all(isinstance(each, dict) for each in keys):
            raise ValueError("the key set has no list of keys")
        return cls(keys)

    @classmethod
    def read(cls, url: str) -> JsonWebKeys:
        """Read the key set at a URL. Raises ConfigError, MissingExtraError."""
        # Slow to import, and only for signed tokens.
        from http.client import HTTPException  # noqa: PLC0415
        from urllib.request import ProxyHandler, build_opener  # noqa: PLC0415

        if urlsplit(url).scheme not in _SCHEMES:
            raise ConfigError(f"{url} must be a URL that begins with {': or '.join(_SCHEMES)}:")
        try:
            # Like Java, it ignores proxies in the environment.
            with build_opener(ProxyHandler({})).open(url, timeout=TIMEOUT_S) as response:
                return cls.parse(response.read())
        except (OSError, ValueError, RecursionError, HTTPException) as error:
            raise ConfigError(f"{url} has no JSON Web Key Set: {error}") from None

    @property
    def ids(self) -> list[str]:
        """Ids of the keys."""
        key_ids = (key.members.get("kid") for key in self._keys)
        return [key_id for key_id in key_ids if isinstance(key_id, str)]

    def start(self, process: Process) -> None:
        """Do nothing: these keys never change."""

    def has_key_for(self, header: Mapping[str, Any]) -> bool:
        """Whether any key may have signed a token with that header."""
        algorithm = header.get("alg")
        return algorithm in _ALGORITHMS and self._find(algorithm, header.get("kid")) is not None

    def verify(self, header: Mapping[str, Any], signature: bytes, signed: bytes) -> bool:
        """Whether the signature was made with a key of the set; mirrors jose4j's `VerificationJwkSelector`."""
        algorithm = header.get("alg")
        if algorithm not in _ALGORITHMS:
            return False
        key = self._find(str(algorithm), header.get("kid"))
        if key is None:
            return False
        try:
            return key.verifies(str(algorithm), signature, signed)
        except ValueError:  # an invalid key
            return False

    def _find(self, algorithm: str, key_id: object) -> WebKey | None:
        candidates = [
            key
            for key in self._keys
            if key.fits("kty", _KEY_TYPES[algorithm[:2]], may_be_missing=False)
            and key.fits("use", "sig", may_be_missing=True)
            and (key_id is None or key.fits("kid", key_id, may_be_missing=False))
        ]
        if len(candidates) > 1:
            candidates = [key for key in candidates if key.fits("alg", algorithm, may_be_missing=True)]
        curve = _CURVE_OF.get(algorithm)
        if len(candidates) > 1 and curve is not None:
            candidates = [key for key in candidates if key.fits("crv", curve, may_be_missing=False)]
        return candidates[0] if candidates else None


def _hash_of(algorithm: str) -> HashAlgorithm:
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - an extra

    algorithms: Mapping[str, HashAlgorithm] = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
    return algorithms[algorithm[2:]]
