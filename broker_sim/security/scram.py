"""SASL SCRAM: both sides prove that they know a password without sending it (RFC 5802).

Mirrors `ScramSaslServer`, `ScramMessages` and `ScramFormatter`.

    client first   n,[a=AUTHZID],n=USER,r=CLIENT-NONCE[,extensions]
    server first   r=CLIENT-NONCE SERVER-NONCE,s=SALT,i=ITERATIONS
    client final   c=CHANNEL,r=BOTH NONCES,p=PROOF
    server final   v=SIGNATURE

With the extension `tokenauth=true` USER is the id of a delegation token, and its HMAC the password; the
client then authenticates as the token's owner.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.protocol.errors import ProtocolError
from broker_sim.security.sasl_server import SaslAuthenticationError, SaslError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from broker_sim.metadata import ScramCredential, ScramMechanism

    CredentialOf = Callable[[str, int], ScramCredential | None]
    TokenOf = Callable[[str, int], "TokenCredential | None"]

NONCE_BITS: Final = 130
NONCE_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"

_NAME: Final = r"(?:[\x01-+\--<>-\x7f]|=2C|=3D)+"
_VALUE: Final = r"[\x01-+\--\x7f]+"
_PRINTABLE: Final = r"[!-+\--~]+"
_BASE64: Final = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS: Final = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST: Final = re.compile(rf"n,(?:a=({_NAME}))?,(?:m={_VALUE},)?n=({_NAME}),r=({_PRINTABLE})({_EXTENSIONS})")
_TOKEN_AUTH: Final = re.compile(",tokenauth=(?i:true)(?:,|$)")
_CLIENT_FINAL: Final = re.compile(rf"c=({_BASE64}),r=({_PRINTABLE}){_EXTENSIONS},p=({_BASE64})")


class TokenCredential(NamedTuple):
    """The credential of a delegation token."""

    credential: ScramCredential
    owner: str
    """Principal of a login with the token."""
    expires_ms: int
    """Time at which the token expires (wall clock, ms)."""


class _Challenge(NamedTuple):
    """A challenge that the client has not answered yet."""

    credential: ScramCredential
    client_first: str
    """The client's first message without its header."""
    server_first: str
    nonce: str


class ScramSaslServer:
    """One SCRAM login.

    `credential_of(user, mechanism)` returns a user's credential, `token_of(token_id, mechanism)` that of a
    delegation token; both return None if there is none.
    """

    __slots__ = (
        "_challenge",
        "_credential_of",
        "_mechanism",
        "_random",
        "_token_of",
        "authorization_id",
        "expires_ms",
        "is_complete",
        "is_token_authenticated",
    )

    def __init__(
        self, mechanism: ScramMechanism, credential_of: CredentialOf, token_of: TokenOf, nonces: random.Random
    ) -> None:
        self._mechanism = mechanism
        self._credential_of = credential_of
        self._token_of = token_of
        self._random = nonces
        self._challenge: _Challenge | None = None
        self.is_complete = False
        self.is_token_authenticated = False
        self.authorization_id = ""
        self.expires_ms: int | None = None

    def evaluate_response(self, token: bytes) -> bytes:
        """Evaluate the client's first message, then its final one. Raises SaslError, ProtocolError."""
        message = token.decode(errors="replace")
        challenge, self._challenge = self._challenge, None
        if challenge is None:
            self._challenge = challenge = self._challenge_for(message)
            return challenge.server_first.encode()
        signature = self._verify(message, challenge)
        self.is_complete = True
        return b"v=" + b64encode(signature)

    def _challenge_for(self, message: str) -> _Challenge:
        match = _CLIENT_FIRST.fullmatch(message)
        if match is None:
            raise SaslError("Invalid SCRAM client first message format")
        authorization_id, name, client_nonce, extensions = match.groups()
        user = name.replace("=2C", ",").replace("=3D", "=")
        if _TOKEN_AUTH.search(extensions):
            credential: ScramCredential | None = self._token_credential(user)
        else:
            credential = self._credential_of(user, self._mechanism.code)
            self.authorization_id = user
        if credential is None:
            raise SaslError("Authentication failed: Invalid user credentials")
        if authorization_id not in {None, user}:
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        if credential.iterations < self._mechanism.min_iterations:
            raise SaslError(
                f"Iterations {credential.iterations} is less than the minimum"
                f" {self._mechanism.min_iterations} for {self._mechanism.name}"
            )
        nonce = client_nonce + self._make_nonce()
        salt = b64encode(credential.salt).decode()
        return _Challenge(
            credential,
            client_first=f"n={name},r={client_nonce}{extensions}",
            server_first=f"r={nonce},s={salt},i={credential.iterations}",
            nonce=nonce,
        )

    def _token_credential(self, token_id: str) -> ScramCredential:
        token = self._token_of(token_id, self._mechanism.code)
        if token is None:
            raise SaslError(f"Token Authentication failed: Invalid tokenId : {token_id}")
        self.authorization_id, self.expires_ms = token.owner, token.expires_ms
        self.is_token_authenticated = True
        return token.credential

    def _verify(self, message: str, challenge: _Challenge) -> bytes:
        """Return the server's signature if the client has proved that it knows the password."""
        match = _CLIENT_FINAL.fullmatch(message)
        if match is None:
            raise SaslError("Invalid SCRAM client final message format")
        channel, nonce, proof_text = match.groups()
        if not nonce.endswith(challenge.nonce):
            raise SaslError("Invalid client nonce in the final client message.")
        credential, mechanism = challenge.credential, self._mechanism
        auth_message = f"{challenge.client_first},{challenge.server_first},c={channel},r={nonce}".encode()
        proof = b64decode(proof_text)
        signature = mechanism.signature(credential.stored_key, auth_message)
        if len(proof) != len(signature):
            raise ProtocolError("Argument arrays must be of the same length.")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(mechanism.stored_key(client_key), credential.stored_key):
            raise SaslError("Invalid client credentials")
        return mechanism.signature(credential.server_key, auth_message)

    def _make_nonce(self) -> str:
        number, digits = self._random.getrandbits(NONCE_BITS), ""
        while number:
            number, digit = divmod(number, len(NONCE_DIGITS))
            digits = NONCE_DIGITS[digit] + digits
        return digits or "0"
