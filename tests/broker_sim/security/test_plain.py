"""PLAIN: the messages are those that Kafka 4.3.1 gives."""

import pytest

from broker_sim.security.plain import PlainSaslServer, PlainUsers
from broker_sim.security.sasl_server import SaslAuthenticationError

USERS = PlainUsers({"billing": "secret", "ü": "ß"})
INVALID = "Authentication failed: Invalid username or password"
OTHER_ID = "Client requested an authorization id that is different from username"
TOKENS = "Invalid SASL/PLAIN response: expected 3 tokens, got "


@pytest.mark.parametrize(
    ("token", "user"), [("\0billing\0secret", "billing"), ("billing\0billing\0secret", "billing"), ("\0ü\0ß", "ü")]
)
def test_right_password(token, user):
    server = PlainSaslServer(USERS)
    assert server.evaluate_response(token.encode()) == b""
    assert (server.is_complete, server.authorization_id) == (True, user)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"\0billing\0wrong", INVALID),
        (b"\0billing\0secret ", INVALID),
        (b"\0nobody\0secret", INVALID),
        (b"\0\xff\xfe\0x", INVALID),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0billing\0", "Authentication failed: password not specified"),
        (b"other\0billing\0secret", f"Authentication failed: {OTHER_ID}"),
        (b"", TOKENS + "1"),
        (b"a\0b", TOKENS + "2"),
        (b"a\0b\0c\0d", TOKENS + "4"),
        (b"a\0b\0c\0d\0e\0f", TOKENS + "4"),
    ],
)
def test_refusals(token, message):
    server = PlainSaslServer(USERS)
    with pytest.raises(SaslAuthenticationError) as error:
        server.evaluate_response(token)
    assert str(error.value) == message
    assert not server.is_complete


def test_passwords_are_in_no_text():
    assert "secret" not in f"{USERS!r}{USERS}{PlainSaslServer(USERS)!r}"
