"""A login with both of its sides in the test: frames in, frames out."""

import base64
import hashlib
import hmac
import random
from functools import cache

import pytest

from broker_sim.handlers.error_answers import whole_answer
from broker_sim.metadata import SCRAM_MECHANISMS
from broker_sim.protocol import messages
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from broker_sim.security.oauthbearer import UnsecuredTokens
from broker_sim.security.plain import PlainUsers
from broker_sim.security.sasl_listener import SaslListener

PASSWORDS = {"billing": "secret", "ünïcode": "pässwörd", "long": "x" * 300}
SALT = b"salt of 20 bytes...."


@cache
def _salted(digest, password, salt, iterations):
    """Return what SCRAM makes of a password; it takes milliseconds."""
    return hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)


def _credential_of(user, code):
    if user not in PASSWORDS:
        return None
    mechanism = SCRAM_MECHANISMS[code]
    salted = _salted(mechanism.digest, PASSWORDS[user], SALT, mechanism.min_iterations)
    return mechanism.credential(SALT, salted, mechanism.min_iterations)


class Login:
    """A client's side; `said` has what the server answered, as messages or bare tokens."""

    def __init__(
        self, session_ms=0, mechanisms=("PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"), token_of=lambda *_: None, **tokens
    ):
        self.now_ms = 1_000_000
        listener = SaslListener(
            mechanisms,
            PlainUsers(PASSWORDS),
            UnsecuredTokens(**tokens),
            dict.fromkeys(mechanisms, session_ms),
            max_receive_bytes=1 << 19,
            failure_delay_ms=100,
        )
        self.server = listener.make_authenticator(
            _credential_of, token_of, random.Random(1), whole_answer, lambda: self.now_ms
        )

    @property
    def user(self):
        return self.server.principal and str(self.server.principal)

    def receive(self, data):
        return self.server.receive(memoryview(data))

    def ask(self, request, version):
        """Return the answer to a request, None where the broker has to give it."""
        header = RequestHeader(request.API_KEY, version, 7, "client")
        frame = b"".join(encode_request(header, request))[4:]
        return decoded(self.receive(frame), request.API_KEY, version)

    def handshake(self, mechanism, version=1):
        return self.ask(messages.SaslHandshakeRequest(mechanism=mechanism), version)

    def tell(self, token, version=2):
        """Return the answer to a token in SaslAuthenticate."""
        return self.ask(messages.SaslAuthenticateRequest(auth_bytes=token), version)


def decoded(chunks, api_key, version):
    if chunks is None:
        return None
    frame = b"".join(chunks)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    correlation_id, message = decode_response(api_key, version, frame[4:])
    assert correlation_id == 7
    return message


class ScramClient:
    """A client of SCRAM, by RFC 5802; `challenge` is the server's first message."""

    def __init__(self, user, password, digest, *, header="n,,", extensions=""):
        self.user = user.replace("=", "=3D").replace(",", "=2C")
        self.password = password
        self.digest = digest
        self.header = header
        self.bare = f"n={self.user},r=nonce-of-the-client{extensions}"

    @property
    def first(self):
        return f"{self.header}{self.bare}".encode()

    def final(self, challenge, *, nonce=None, cut=0):
        challenge = str(challenge, "utf-8")
        parts = dict(part.split("=", 1) for part in challenge.split(","))
        salt = base64.b64decode(parts["s"])
        salted = _salted(self.digest, self.password, salt, int(parts["i"]))
        client_key = hmac.digest(salted, b"Client Key", self.digest)
        channel = base64.b64encode(self.header.encode()).decode()
        without_proof = f"c={channel},r={nonce or parts['r']}"
        told = f"{self.bare},{challenge},{without_proof}".encode()
        stored = hashlib.new(self.digest, client_key).digest()
        signature = hmac.digest(stored, told, self.digest)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self.digest)
        self.expected = b"v=" + base64.b64encode(hmac.digest(server_key, told, self.digest))
        return f"{without_proof},p={base64.b64encode(proof[cut:]).decode()}".encode()


MECHANISMS = {"PLAIN": None, "SCRAM-SHA-512": "sha512", "SCRAM-SHA-256": "sha256"}


@pytest.fixture(scope="session")
def new_login():
    return Login


@pytest.fixture
def login():
    return Login()


@pytest.fixture(scope="session")
def decode_answer():
    return decoded


@pytest.fixture(scope="session")
def scram_client():
    """Return a function that makes a client: mechanism, user, password."""
    return lambda mechanism, user, password, **more: ScramClient(user, password, MECHANISMS[mechanism], **more)


@pytest.fixture(scope="session")
def credential_of():
    return _credential_of
