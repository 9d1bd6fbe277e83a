"""SCRAM between a client by RFC 5802 and the server; what is refused is what Kafka 4.3.1 refuses."""

import base64
import random

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata import SCRAM_MECHANISMS
from broker_sim.protocol.errors import ProtocolError
from broker_sim.security import LoginFailedError
from broker_sim.security.scram import ScramSaslServer

SCRAM = ["SCRAM-SHA-256", "SCRAM-SHA-512"]
HIDDEN = "Authentication failed during authentication due to invalid credentials with SASL mechanism "


def refusal(login, decode, token):
    with pytest.raises(LoginFailedError) as error:
        login.tell(token)
    answer = decode(error.value.answer, 36, 2)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not login.user
    return answer.error_message


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize(("user", "password"), [("billing", "secret"), ("long", "x" * 300)], ids=["short", "long"])
def test_each_side_shows_that_it_knows_the_password(login, scram_client, mechanism, user, password):
    login.handshake(mechanism)
    client = scram_client(mechanism, user, password, extensions=",x=y")
    final = client.final(login.tell(client.first).auth_bytes)
    assert login.tell(final).auth_bytes == client.expected
    assert login.user == f"User:{user}"


@pytest.mark.parametrize("mechanism", SCRAM)
def test_wrong_password_looks_like_an_unknown_user(login, decode_answer, scram_client, mechanism):
    login.handshake(mechanism)
    client = scram_client(mechanism, "billing", "wrong")
    final = client.final(login.tell(client.first).auth_bytes)
    assert refusal(login, decode_answer, final) == HIDDEN + mechanism


@pytest.mark.parametrize(
    "first",
    [
        b"hello",
        b"y,,n=billing,r=abc",
        b"n,,n=a=2X,r=abc",
        b"n,,n=nobody,r=abc",
        b"n,,n=billing,r=a bc",
        b"n,,n=billing,r=abc,tokenauth=true",
        b"n,,n=b\xc3\xbc,r=abc",
    ],
)
def test_first_message_that_is_refused(login, decode_answer, first):
    login.handshake(SCRAM[0])
    assert refusal(login, decode_answer, first) == HIDDEN + SCRAM[0]


def test_other_authorization_id_is_an_error(login, decode_answer, scram_client):
    login.handshake(SCRAM[0])
    client = scram_client(SCRAM[0], "billing", "secret", header="n,a=other,")
    assert "authorization id that is different" in refusal(login, decode_answer, client.first)


def test_nonce_of_another_login_is_refused(login, decode_answer, scram_client):
    login.handshake(SCRAM[0])
    client = scram_client(SCRAM[0], "billing", "secret", header="n,a=billing,")
    final = client.final(login.tell(client.first).auth_bytes, nonce="abc")
    assert refusal(login, decode_answer, final) == HIDDEN + SCRAM[0]


def test_proof_of_another_length_closes_at_once(login, scram_client):
    login.handshake(SCRAM[0])
    client = scram_client(SCRAM[0], "billing", "secret")
    final = client.final(login.tell(client.first).auth_bytes, cut=1)
    with pytest.raises(ProtocolError, match="same length"):
        login.tell(final)


def test_each_login_has_its_own_nonce(credential_of):
    nonces = random.Random(1)
    servers = [ScramSaslServer(SCRAM_MECHANISMS[1], credential_of, None, nonces) for _ in range(3)]
    told = {each.evaluate_response(b"n,,n=billing,r=abc").split(b",")[0] for each in servers}
    assert len(told) == 3
    assert all(nonce.startswith(b"r=abc") and len(nonce) > 25 for nonce in told)


def test_the_example_of_rfc_7677():
    sha_256 = SCRAM_MECHANISMS[1]
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    credential = sha_256.credential(salt, sha_256.salted_password("pencil", salt, 4096), 4096)
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    told = f"n=user,r=rOprNGfwEbeRWgbNEkqO,r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r={nonce}"
    signature = sha_256.signature(credential.server_key, told.encode())
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
