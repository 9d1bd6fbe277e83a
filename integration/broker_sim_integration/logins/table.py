"""The cases: the frames of a client, one after the other, as a function of the responses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim_integration.logins.configs import MAX_BYTES, SESSION_MS
from broker_sim_integration.logins.frames import (
    Pause,
    ScramClient,
    Sent,
    bare,
    bearer,
    handshake,
    raw,
    request,
    token,
    with_tags,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    Steps = Generator[Sent | Pause, bytes, None]

RECORDING: Final = Path(__file__).with_name("recorded.jsonl")
"""The recorded outcomes of the cases on a real broker."""
GOOD: Final = b"\0billing\0secret"
WRONG: Final = b"\0billing\0wrong"
GROUPS: Final = request(messages.ListGroupsRequest(), 2)
"""Any request that needs a login; there is no group."""
METADATA: Final = request(messages.MetadataRequest([]), 1)
FUTURE: Final = Sent(raw(18, 99, b"\0").data, ApiKey.API_VERSIONS)
"""ApiVersions of a future version, whose response has version 0."""
SCRAMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
AGAIN: Final = Pause(1_100)
"""Clients may log in again once per second."""


class Case(NamedTuple):
    """The frames of a client on a listener."""

    steps: Callable[[], Steps]
    listener: str = "LOGIN"


def _says(*steps: Sent | Pause, listener: str = "LOGIN") -> Case:
    def generate() -> Steps:
        for step in steps:  # noqa: UP028 - a tuple takes no responses
            yield step

    return Case(generate, listener)


def _versions(version: int = 3, name: str = "client") -> Sent:
    return request(messages.ApiVersionsRequest(name, "1"), version)


def _authenticated(data: bytes, mechanism: str = "PLAIN") -> Case:
    return _says(handshake(mechanism), token(data))


def _scram(
    mechanism: str = SCRAMS[0],
    user: str = "billing",
    password: str = "secret",  # noqa: S107 - of a user of the table
    *,
    header: str = "n,,",
    nonce: str | None = None,
    cut: int = 0,
    is_bare: bool = False,
) -> Case:
    def steps() -> Steps:
        send = bare if is_bare else token
        yield handshake(mechanism, 0 if is_bare else 1)
        client = ScramClient(user, password, mechanism, header=header)
        challenge = yield send(client.first)
        yield send(client.final(challenge, nonce=nonce, cut=cut))
        yield GROUPS

    return Case(steps)


def _beginnings() -> dict[str, Case]:
    return {
        "a request before the login": _says(METADATA),
        "another request before the login": _says(GROUPS),
        "a token before its handshake": _says(token(GOOD)),
        "a request after ApiVersions": _says(_versions(), METADATA),
        "a token after ApiVersions": _says(_versions(), token(GOOD)),
        "a login after ApiVersions": _says(_versions(), handshake(), token(GOOD), GROUPS),
        "ApiVersions of version 0": _says(_versions(0), handshake()),
        "ApiVersions of a version to come": _says(FUTURE, _versions(), handshake()),
        "ApiVersions of a client with a bad name": _says(_versions(name="a b!"), _versions(), handshake()),
        "ApiVersions twice": _says(_versions(), _versions()),
        "a short frame": _says(bare(b"x")),
        "an empty frame": _says(bare(b"")),
        "a frame of a negative size": _says(Sent(b"\xff\xff\xff\xff")),
        "an unknown API": _says(raw(999, 0)),
        "bytes that are no request": _says(bare(b"\x60\x01\x02\x03\x04\x05\x06\x07")),
        "a handshake cut off": _says(raw(17, 1, b"\0\x50PL")),
        "a handshake of a version to come": _says(raw(17, 9, b"\0\5PLAIN")),
        "a handshake with bytes behind it": _says(raw(17, 1, b"\0\5PLAINmore"), token(GOOD)),
    }


def _mechanisms() -> dict[str, Case]:
    cases = {
        f"handshake {version} for {mechanism or 'nothing'}": _says(handshake(mechanism, version))
        for version in (0, 1)
        for mechanism in ("GSSAPI", "plain", "", "PLAIN")
    }
    return cases | {
        "another handshake instead of a token": _says(handshake(), handshake()),
        "another handshake 0 instead of a token": _says(handshake(), handshake(version=0)),
        "ApiVersions instead of a token": _says(handshake(), _versions()),
        "ApiVersions 0 instead of a token": _says(handshake(), _versions(0)),
        "another request instead of a token": _says(handshake(), GROUPS),
        "an unknown API instead of a token": _says(handshake(), raw(999, 0)),
        "a token of a version to come": _says(handshake(), raw(36, 9, b"\0\1\1\0")),
        "a token cut off": _says(handshake(), raw(36, 0, b"\0\0\7\0PL")),
        "a request with a bare token's handshake": _says(handshake(version=0), token(GOOD)),
    }


def _plain() -> dict[str, Case]:
    cases = {
        f"{name} in a token {version}": _says(handshake(), token(data, version))
        for version in (0, 1, 2)
        for name, data in (("a password", GOOD), ("a wrong password", WRONG))
    }
    return cases | {
        "an unknown user": _authenticated(b"\0nobody\0secret"),
        "no user": _authenticated(b"\0\0secret"),
        "no password": _authenticated(b"\0billing\0"),
        "nothing": _authenticated(b""),
        "two texts": _authenticated(b"billing\0secret"),
        "four texts": _authenticated(b"\0billing\0secret\0more"),
        "an own authorization id": _authenticated(b"billing\0billing\0secret"),
        "another authorization id": _authenticated(b"audit\0billing\0secret"),
        "bytes that are no text": _authenticated(b"\0\xff\xfe\0\xc3\x28"),
        "a bare password": _says(handshake(version=0), bare(GOOD), GROUPS),
        "a bare wrong password": _says(handshake(version=0), bare(WRONG)),
        "an empty bare token": _says(handshake(version=0), bare(b"")),
    }


def _scrams() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for mechanism in SCRAMS:
        cases |= {
            f"{mechanism}": _scram(mechanism),
            f"{mechanism} with a wrong password": _scram(mechanism, password="wrong"),  # noqa: S106
            f"{mechanism} of an unknown user": _authenticated(b"n,,n=nobody,r=abc", mechanism),
        }
    firsts = {
        "that is no message": b"hello",
        "that asks for a channel": b"y,,n=billing,r=abc",
        "that binds a channel": b"p=tls-unique,,n=billing,r=abc",
        "with a name badly escaped": b"n,,n=a=2X,r=abc",
        "with a nonce with a blank": b"n,,n=billing,r=a bc",
        "with a name that is not of ASCII": b"n,,n=b\xc3\xbc,r=abc",
        "with another authorization id": b"n,a=audit,n=billing,r=abc",
        "by delegation token": b"n,,n=billing,r=abc,tokenauth=true",
    }
    cases |= {f"SCRAM {what}": _authenticated(data, SCRAMS[0]) for what, data in firsts.items()}
    return cases | {
        "SCRAM with an own authorization id": _scram(header="n,a=billing,"),
        "SCRAM with another nonce": _scram(nonce="abc"),
        "SCRAM with a short proof": _scram(cut=1),
        "SCRAM with two first messages": _says(
            handshake(SCRAMS[0]), token(b"n,,n=billing,r=nonce-of-the-client"), token(b"n,,n=b,r=a")
        ),
        "SCRAM bare": _scram(is_bare=True),
        "SCRAM bare with a wrong password": _scram(password="wrong", is_bare=True),  # noqa: S106
    }


def _tokens() -> dict[str, Case]:
    bearers = {
        "good": bearer(),
        "of an own authorization id": bearer(authzid="billing"),
        "of another authorization id": bearer(authzid="audit"),
        "of another scheme": bearer(scheme="Basic"),
        "of nobody": bearer({"sub": " "}),
        "of a number": bearer({"sub": 5}),
        "with a text for its end": bearer({"exp": "tomorrow"}),
        "that is no message": b"hello",
        "of two parts": b"n,,\x01auth=Bearer e30.e30\x01\x01",
        "that is no JSON": b"n,,\x01auth=Bearer YQ.YQ.\x01\x01",
        "without an algorithm": bearer(typ="JWT"),
    }
    refused = {
        "that has expired": bearer({"exp": 1_000}),
        "that is signed": bearer(alg="RS256"),
        "from the future": bearer({"iat": 3_999_999_999}),
    }
    cases = {f"a token {what}": _authenticated(data, "OAUTHBEARER") for what, data in bearers.items()}
    for what, data in refused.items():
        steps = handshake("OAUTHBEARER"), token(data), token(b"\x01")
        cases[f"a token {what}"] = _says(*steps)
    return cases


def _sizes() -> dict[str, Case]:
    large = b"\0billing\0" + b"x" * MAX_BYTES
    return {
        "a small login": _says(handshake(), token(GOOD), GROUPS, listener="SMALL"),
        "a large token": _says(handshake(), token(large), listener="SMALL"),
        "a large bare token": _says(handshake(version=0), bare(large), listener="SMALL"),
        "a large handshake": _says(handshake("X" * MAX_BYTES), listener="SMALL"),
        "a large request after the login": _says(
            handshake(), token(GOOD), request(messages.DescribeGroupsRequest(["x" * MAX_BYTES]), 0), listener="SMALL"
        ),
    }


def _tagged() -> dict[str, Case]:
    """Kafka accepts up to 10 000 tagged fields since 4.4, and any number before."""
    return {
        f"{count} tagged fields in the {place} of a token": _says(
            handshake(), with_tags(GOOD, **{f"of_{place}": count}), GROUPS
        )
        for place in ("header", "body")
        for count in (1, 10_000, 10_001)
    }


def _known() -> dict[str, Case]:
    login = handshake(), token(GOOD)
    return {
        "a login again, without sessions": _says(*login, handshake(), token(GOOD), GROUPS),
        "a token again, without sessions": _says(*login, token(GOOD), GROUPS),
        "a bare login again": _says(*login, handshake(version=0), GROUPS),
        "ApiVersions after the login": _says(*login, _versions(), GROUPS),
        "an unknown API after the login": _says(*login, raw(999, 0)),
    }


def _again() -> dict[str, Case]:
    login = handshake(), token(GOOD)

    def says(*steps: Sent | Pause) -> Case:
        return _says(*login, *steps, listener="SHORT")

    return {
        "a login again": says(AGAIN, *login, AGAIN, *login, GROUPS),
        "a login again too soon": says(*login, handshake(), GROUPS),
        "a login again as another user": says(AGAIN, handshake(), token(b"\0audit\0other")),
        "a login again with a wrong password": says(AGAIN, handshake(), token(WRONG)),
        "a login again by another mechanism": says(
            AGAIN, handshake(SCRAMS[0]), token(ScramClient("billing", "").first)
        ),
        "a login again by an unknown mechanism": says(AGAIN, handshake("GSSAPI")),
        "a login again by a bare token": says(AGAIN, handshake(version=0), bare(GOOD), GROUPS),
        "a request in the middle of a login again": says(AGAIN, handshake(), GROUPS),
        "a token again without its handshake": says(AGAIN, token(GOOD), GROUPS),
        "a request behind the end of the session": says(Pause(SESSION_MS + 500), GROUPS),
        "a login behind the end of the session": says(Pause(SESSION_MS + 500), *login, GROUPS),
        "a session by a token that ends later": _says(handshake("OAUTHBEARER"), token(bearer()), listener="SHORT"),
    }


TABLE: Final = {
    **_beginnings(),
    **_mechanisms(),
    **_plain(),
    **_scrams(),
    **_tokens(),
    **_sizes(),
    **_tagged(),
    **_known(),
    **_again(),
}
"""The logins by name."""
