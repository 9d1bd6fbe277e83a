"""Clients that log in again, and how long a login is good for (KIP-368)."""

import base64
import json

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.protocol.errors import ProtocolError
from broker_sim.security import LoginFailedError

PLAIN = b"\0billing\0secret"


@pytest.fixture
def known(new_login):
    """A client that has logged in by PLAIN, and begins again."""
    login = new_login(session_ms=5_000)
    login.handshake("PLAIN")
    assert login.tell(PLAIN).session_lifetime_ms == 5_000
    assert login.server.session_lifetime_ms == 5_000
    login.server.reauthenticate()
    return login


def test_client_logs_in_again(known):
    assert known.user is None
    assert known.handshake("PLAIN").error_code == ErrorCode.NONE
    assert known.tell(PLAIN).session_lifetime_ms == 5_000
    assert known.user == "User:billing"


def test_user_cannot_change(known, decode_answer):
    known.handshake("PLAIN")
    with pytest.raises(LoginFailedError) as error:
        known.tell(f"\0long\0{'x' * 300}".encode())
    told = "Cannot change principals during re-authentication from User.billing: User.long"
    assert decode_answer(error.value.answer, 36, 2).error_message == told
    assert known.user is None


def test_mechanism_cannot_change(known):
    assert known.handshake("SCRAM-SHA-256").error_code == ErrorCode.NONE
    with pytest.raises(LoginFailedError, match="'SCRAM-SHA-256' requested by client") as error:
        known.tell(b"n,,n=billing,r=abc")
    assert error.value.answer is None


def test_unknown_mechanism_closes_at_once(known):
    with pytest.raises(ProtocolError, match="Unsupported SASL mechanism GSSAPI"):
        known.handshake("GSSAPI")


def test_failure_names_what_failed(new_login, decode_answer, scram_client):
    login = new_login(session_ms=5_000)
    login.handshake("SCRAM-SHA-256")
    client = scram_client("SCRAM-SHA-256", "billing", "secret")
    login.tell(client.final(login.tell(client.first).auth_bytes))
    login.server.reauthenticate()
    login.handshake("SCRAM-SHA-256")
    with pytest.raises(LoginFailedError) as error:
        login.tell(b"n,,n=nobody,r=abc")
    message = decode_answer(error.value.answer, 36, 2).error_message
    assert message.startswith("Authentication failed during re-authentication due to invalid")


@pytest.mark.parametrize(
    ("session_ms", "token_s", "lifetime_ms"),
    [(0, 10, 10_000), (4_000, 10, 4_000), (20_000, 10, 10_000), (-1, 10, 10_000)],
)
def test_session_ends_with_the_token_or_at_the_limit(new_login, session_ms, token_s, lifetime_ms):
    login = new_login(session_ms, ("OAUTHBEARER",))
    login.handshake("OAUTHBEARER")
    exp = login.now_ms // 1_000 + token_s
    parts = [{"alg": "none"}, {"sub": "a", "exp": exp}]
    text = ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).decode() for each in parts)
    token = f"n,,\x01auth=Bearer {text.replace('=', '')}.\x01\x01"
    assert login.tell(token.encode()).session_lifetime_ms == lifetime_ms


def test_session_without_a_limit_has_no_end(login):
    login.handshake("PLAIN")
    assert login.tell(PLAIN).session_lifetime_ms == 0
    assert login.server.session_lifetime_ms is None
