"""The frames that clients send when they log in, valid and invalid ones."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, encode_request
from broker_sim.protocol.primitives import varint

if TYPE_CHECKING:
    from broker_sim.protocol.message import Message

CORRELATION_ID: Final = 7
CLIENT_NONCE: Final = "nonce-of-the-client"
FOR_EVER_S: Final = 4_000_000_000
"""Tokens expire in the year 2096, so that the outcome does not depend on a clock."""


class Sent(NamedTuple):
    """A frame with its size, and the API and version of its response; without an API it is a bare token."""

    data: bytes
    api_key: ApiKey | None = None
    answer_version: int = 0


class Pause(NamedTuple):
    """A time in ms in which nothing is sent."""

    ms: int


def request(message: Message, version: int) -> Sent:
    """Return the frame of a complete request."""
    assert message.API_KEY is not None
    api_key = ApiKey(message.API_KEY)
    header = RequestHeader(api_key, version, CORRELATION_ID, "client")
    frame = b"".join(encode_request(header, message))
    return Sent(frame, api_key, version)


def handshake(mechanism: str = "PLAIN", version: int = 1) -> Sent:
    """Return a SaslHandshake request."""
    return request(messages.SaslHandshakeRequest(mechanism), version)


def token(data: bytes, version: int = 2) -> Sent:
    """Return a SaslAuthenticate request."""
    return request(messages.SaslAuthenticateRequest(data), version)


def with_tags(data: bytes, *, of_header: int = 0, of_body: int = 0) -> Sent:
    """Return a SaslAuthenticate request of version 2 with these numbers of unknown tagged fields."""
    body = _tags(of_header) + varint(len(data) + 1) + data + _tags(of_body)
    return raw(ApiKey.SASL_AUTHENTICATE, 2, body)._replace(api_key=ApiKey.SASL_AUTHENTICATE, answer_version=2)


def _tags(count: int) -> bytes:
    """Return `count` empty tagged fields, after their number."""
    return varint(count) + b"".join(varint(100 + number) + b"\0" for number in range(count))


def bare(data: bytes) -> Sent:
    """Return a token in the form of clients before Kafka 1.0."""
    return Sent(len(data).to_bytes(4, "big") + data)


def raw(api_key: int, version: int, rest: bytes = b"") -> Sent:
    """Return a request with any body; a response, which is not expected, is read as bytes."""
    return bare(struct.pack(">hhih", api_key, version, CORRELATION_ID, 1) + b"c" + rest)


def bearer(claims: dict[str, Any] | None = None, *, authzid: str = "", scheme: str = "Bearer", **header: str) -> bytes:
    """Return a client's first message by OAUTHBEARER, with an unsigned token."""
    said = {"sub": "billing", "exp": FOR_EVER_S} | (claims or {})
    parts = [header or {"alg": "none"}, said]
    encoded = (base64.urlsafe_b64encode(json.dumps(each).encode()).decode() for each in parts)
    text = ".".join(encoded).replace("=", "")
    who = f"a={authzid}" if authzid else ""
    return f"n,{who},\x01auth={scheme} {text}.\x01\x01".encode()


class ScramClient:
    """A SCRAM client (RFC 5802)."""

    def __init__(self, user: str, password: str, mechanism: str = "SCRAM-SHA-256", *, header: str = "n,,") -> None:
        self._password = password
        self._digest = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        self._header = header
        self._bare = f"n={user},r={CLIENT_NONCE}"

    @property
    def first(self) -> bytes:
        """The client's first message."""
        return f"{self._header}{self._bare}".encode()

    def final(self, challenge: bytes, *, nonce: str | None = None, cut: int = 0) -> bytes:
        """Return the client's final message; `cut` shortens the proof."""
        text = challenge.decode()
        parts = dict(part.split("=", 1) for part in text.split(","))
        digest = self._digest
        salted = hashlib.pbkdf2_hmac(digest, self._password.encode(), base64.b64decode(parts["s"]), int(parts["i"]))
        key = hmac.digest(salted, b"Client Key", digest)
        channel = base64.b64encode(self._header.encode()).decode()
        without_proof = f"c={channel},r={nonce or parts['r']}"
        message = f"{self._bare},{text},{without_proof}".encode()
        signature = hmac.digest(hashlib.new(digest, key).digest(), message, digest)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))[cut:]
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
