"""The states of a login. The answers, and whether they are delayed, are those of Kafka 4.3.1 to the same frames."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.errors import ProtocolError
from broker_sim.security import LoginFailedError

PLAIN = b"\0billing\0secret"
WRONG = b"\0billing\0wrong"
MECHANISMS = ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]
METADATA = messages.MetadataRequest(topics=[])
VERSIONS = messages.ApiVersionsRequest(client_software_name="x", client_software_version="1")


def refused(answer_of, api_key=None, version=0, *, decode=None):
    """Return what is logged, and what the client is told after the delay."""
    with pytest.raises(LoginFailedError) as error:
        answer_of()
    answer = error.value.answer
    if api_key is None:
        assert answer is None
        return str(error.value)
    return str(error.value), decode(answer, api_key, version)


def raw(api_key, version, rest=b""):
    return struct.pack(">hhih", api_key, version, 7, 1) + b"c" + rest


def test_password_makes_a_user_known(login):
    assert login.ask(VERSIONS, 3) is None
    login.server.versions_answered()
    answer = login.handshake("PLAIN")
    assert (answer.error_code, answer.mechanisms) == (ErrorCode.NONE, MECHANISMS)
    assert login.user is None
    answer = login.tell(PLAIN)
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
    assert login.user == "User:billing"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_wrong_password_gets_its_error_after_the_delay(login, decode_answer, version):
    login.handshake("PLAIN")
    told = "Authentication failed: Invalid username or password"
    reason, answer = refused(lambda: login.tell(WRONG, version), 36, version, decode=decode_answer)
    assert (reason, answer.error_message) == (told, told)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert login.user is None


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("mechanism", ["GSSAPI", "plain", ""])
def test_unknown_mechanism_gets_the_list_of_enabled_ones(login, decode_answer, mechanism, version):
    reason, answer = refused(lambda: login.handshake(mechanism, version), 17, version, decode=decode_answer)
    assert reason == f"Unsupported SASL mechanism {mechanism}"
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == MECHANISMS


def test_old_clients_send_their_token_bare(login):
    login.handshake("PLAIN", 0)
    assert b"".join(login.receive(PLAIN)) == bytes(4)
    assert login.user == "User:billing"


def test_bare_token_that_is_wrong_gets_no_answer(new_login):
    login = new_login()
    login.handshake("PLAIN", 0)
    assert "Invalid username" in refused(lambda: login.receive(WRONG))
    login = new_login()
    login.handshake("SCRAM-SHA-256", 0)
    with pytest.raises(ProtocolError, match="Invalid user credentials"):
        login.receive(b"n,,n=nobody,r=abc")


@pytest.mark.parametrize(
    ("request_", "version"),
    [(messages.SaslHandshakeRequest(mechanism="PLAIN"), 1), (VERSIONS, 3), (messages.ListGroupsRequest(), 2)],
    ids=lambda value: str(value).partition("(")[0],
)
def test_another_request_than_a_token_is_out_of_order(login, decode_answer, request_, version):
    login.handshake("PLAIN")
    _, answer = refused(lambda: login.ask(request_, version), request_.API_KEY, version, decode=decode_answer)
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize(
    "frame",
    [b"x", b"\x60\x01\x02", raw(999, 0), raw(17, 9, b"\0\5PLAIN"), raw(17, 1, b"\0\x50PL"), raw(36, 2, b"\0\1\0")],
    ids=["short", "garbage", "unknown api", "newer handshake", "cut handshake", "authenticate"],
)
def test_request_other_than_a_handshake_closes_at_once(login, frame):
    with pytest.raises(ProtocolError):
        login.receive(frame)


@pytest.mark.parametrize("ask_versions", [False, True])
def test_request_before_the_login_closes_at_once(login, ask_versions):
    if ask_versions:
        login.ask(VERSIONS, 3)
        login.server.versions_answered()
    with pytest.raises(ProtocolError, match="type METADATA during SASL handshake"):
        login.ask(METADATA, 9)


def test_versions_are_told_once_unless_they_are_refused(login):
    for _ in range(2):  # refused, so `versions_answered` is not called
        assert login.ask(VERSIONS, 3) is None
    login.server.versions_answered()
    with pytest.raises(ProtocolError, match="state HANDSHAKE_REQUEST"):
        login.ask(VERSIONS, 3)


@pytest.mark.parametrize("frame", [raw(999, 0), raw(36, 9, b"\0\1\1\0"), raw(36, 0, b"\0\0\7\0PL")])
def test_request_other_than_a_token_closes_at_once(login, frame):
    login.handshake("PLAIN")
    with pytest.raises(ProtocolError):
        login.receive(frame)


TOKENS = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([PLAIN, WRONG, b"n,,n=billing,r=a", b"c=biws,r=a,p=", b"n,,\x01auth=Bearer a.b.\x01\x01"]),
)
STEPS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "X"]),
    TOKENS.map(lambda token: (token, 2)),
    st.builds(raw, st.sampled_from([3, 17, 18, 36]), st.integers(0, 4), TOKENS),
)


@given(st.lists(STEPS, max_size=6))
def test_whatever_a_stranger_sends_only_ends_its_own_login(new_login, steps):
    login = new_login(mechanisms=("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"))
    with suppress(LoginFailedError, ProtocolError):
        for step in steps:
            if login.user is not None:
                break
            if isinstance(step, str):
                login.handshake(step)
            elif isinstance(step, tuple):
                login.tell(*step)
            else:
                login.receive(step)
    assert login.user in {None, "User:billing"}
    assert login.user is None or any(PLAIN in as_bytes(step) for step in steps)


def as_bytes(step):
    token = step[0] if isinstance(step, tuple) else step
    return token.encode() if isinstance(token, str) else token
