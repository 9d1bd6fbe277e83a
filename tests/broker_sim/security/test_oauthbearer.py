"""OAUTHBEARER with tokens that nobody has signed: what Kafka's validator takes and refuses."""

import base64
import json

import pytest

from broker_sim.errors import ConfigError
from broker_sim.protocol.errors import ProtocolError
from broker_sim.security.oauthbearer import OAuthBearerSaslServer, UnsecuredTokens
from broker_sim.security.sasl_server import SaslAuthenticationError, SaslError

NOW_S = 1_000
INVALID = b'{"status":"invalid_token"}'


def encoded(value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def token(signature="", header=None, **claims):
    return f"{encoded(header or {'alg': 'none'})}.{encoded(claims)}.{signature}"


def first(text, authorization_id=""):
    who = f"a={authorization_id}" if authorization_id else ""
    return f"n,{who},\x01auth=Bearer {text}\x01x=y\x01\x01".encode()


def server(**options):
    tokens = UnsecuredTokens.from_options({f"unsecuredValidator{k}": v for k, v in options.items()})
    return OAuthBearerSaslServer(tokens, lambda: NOW_S * 1_000)


@pytest.mark.parametrize(
    ("options", "claims", "user"),
    [
        ({}, {"sub": "billing", "exp": 1_001}, "billing"),
        ({}, {"sub": "billing", "exp": 1_000.5, "iat": 1_000}, "billing"),
        ({"PrincipalClaimName": "name"}, {"name": "audit", "exp": 2_000}, "audit"),
        ({"AllowableClockSkewMs": "2000"}, {"sub": "late", "exp": 999}, "late"),
        ({"RequiredScope": "a b"}, {"sub": "x", "exp": 2_000, "scope": ["b", "a", "c"]}, "x"),
        ({"RequiredScope": "a"}, {"sub": "x", "exp": 2_000, "scope": "a"}, "x"),
    ],
)
def test_good_token(options, claims, user):
    login = server(**options)
    assert login.evaluate_response(first(token(**claims))) == b""
    assert (login.is_complete, login.authorization_id) == (True, user)
    assert login.expires_ms == round(claims["exp"] * 1_000)


@pytest.mark.parametrize(
    "text",
    [
        token(sub="a", exp=1_000),
        token(sub="a"),
        token(exp=2_000),
        token(sub=" ", exp=2_000),
        token(sub=5, exp=2_000),
        token(sub="a", exp="2000"),
        token(sub="a", exp=True),
        token(sub="a", exp=2_000, iat=1_001),
        token("signed", sub="a", exp=2_000),
        token(header={"alg": "RS256"}, sub="a", exp=2_000),
        f"{encoded({'alg': 'none'})}.{encoded(['sub'])}.",
        encoded(b"{") + "." + encoded({}) + ".",
        "a.b.c",
        "a.b",
        "a..b",
        encoded(b"[" * 100_000) + ".x.",
    ],
)
def test_error_of_a_bad_token_precedes_the_failed_login(text):
    login = server()
    assert login.evaluate_response(first(text)) == INVALID
    assert not login.is_complete
    with pytest.raises(SaslAuthenticationError) as error:
        login.evaluate_response(b"\x01")
    assert str(error.value) == INVALID.decode()


def test_missing_scope_is_named():
    login = server(RequiredScope="a b")
    answer = login.evaluate_response(first(token(sub="x", exp=2_000, scope=["a"])))
    assert answer == b'{"status":"insufficient_scope", "scope":"[a, b]"}'


@pytest.mark.parametrize(
    "message",
    [b"", b"\x01", b"n,,\x01x=y\x01\x01", b"y,,\x01auth=Bearer abc\x01\x01", b"n,,\x01auth=Bearer a b\x01\x01"],
)
def test_invalid_first_message_is_rejected(message):
    with pytest.raises(SaslError, match="Invalid OAUTHBEARER client first message"):
        server().evaluate_response(message)


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\x01auth=Basic abc\x01\x01",
        first(token(header={"typ": "JWT"}, sub="a", exp=2_000)),
        first(token(header=["alg"], sub="a", exp=2_000)),
    ],
)
def test_what_kafka_fails_at_closes_at_once(message):
    with pytest.raises(ProtocolError):
        server().evaluate_response(message)


def test_authorization_id_must_be_the_principal():
    good = token(sub="billing", exp=2_000)
    assert server().evaluate_response(first(good, "billing")) == b""
    with pytest.raises(SaslAuthenticationError, match=r"id \(other\) that is different"):
        server().evaluate_response(first(good, "other"))


def test_options_are_checked():
    with pytest.raises(ConfigError, match="clock skew"):
        server(AllowableClockSkewMs="-1")
