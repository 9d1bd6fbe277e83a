"""Handshakes of valid clients, mutated: each is answered, refused or cut off, and nobody gets in by it."""

import random

import pytest

from broker_sim.protocol import messages
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.headers import RequestHeader, encode_request
from broker_sim.security import LoginFailedError

GATE = 500
SOAK = 100_000
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
EDGES = (0, 1, 2, 0x2C, 0x3D, 0x7F, 0x80, 0xFF)
TOKEN = b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJiaWxsaW5nIiwiZXhwIjo0MDAwMDAwMDAwfQ.\x01\x01"


def frame_of(request, version):
    header = RequestHeader(request.API_KEY, version, 7, "client")
    return b"".join(encode_request(header, request))[4:]


def valid_login(chance, mechanism, login, scram_client):
    """Yield the frames of a login that is valid; it is sent what the server answers."""
    is_bare = chance.random() < 0.2
    if chance.random() < 0.3:
        yield frame_of(messages.ApiVersionsRequest("x", "1"), 3)
        login.server.versions_answered()
    version = 0 if is_bare else 1
    yield frame_of(messages.SaslHandshakeRequest(mechanism), version)

    def told(token):
        if is_bare:
            return token
        return frame_of(messages.SaslAuthenticateRequest(token), token_version)

    token_version = chance.randrange(3)
    if mechanism == "PLAIN":
        yield told(b"\0billing\0secret")
    elif mechanism == "OAUTHBEARER":
        yield told(TOKEN)
    else:
        client = scram_client(mechanism, "billing", "secret")
        answer = yield told(client.first)
        start = answer.find(b"r=")
        end = answer.find(b",i=4096") + len(b",i=4096")
        if start >= 0 and end > start:
            yield told(client.final(answer[start:end]))


def mutated(chance, frame):
    """Return the frame with a few bytes changed, left out, doubled, or cut off."""
    data = bytearray(frame)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(5)
        if kind == 0 and at < len(data):
            data[at] = chance.choice((chance.randrange(256), *EDGES))
        elif kind == 1:
            del data[at : at + chance.randint(1, 8)]
        elif kind == 2:
            data[at:at] = data[at : at + chance.randint(1, 8)]
        elif kind == 3:
            data[at:at] = chance.randbytes(chance.randint(1, 8))
        else:
            del data[at:]
    return bytes(data)


def play(seed, new_login, scram_client):
    """Play a login with mutated frames from a state on that is drawn from the seed; return how it ended."""
    chance = random.Random(seed)
    login = new_login(mechanisms=MECHANISMS)
    mechanism = chance.choice(MECHANISMS)
    steps = valid_login(chance, mechanism, login, scram_client)
    hit = chance.randrange(3)
    answer, text = None, ""
    while login.user is None:
        try:
            frame = steps.send(answer)
        except StopIteration:
            return "waits"
        sent = frame if hit > 0 else mutated(chance, frame)
        hit -= 1
        try:
            answer = b"".join(login.receive(sent) or ())
        except LoginFailedError as error:
            end, text = "refused", f"{error} {error.answer}"
            break
        except ProtocolError as error:
            end, text = "cut off", str(error)
            break
    else:
        end = "known"
        # By OAUTHBEARER everybody may be anybody.
        assert login.user == "User:billing" or mechanism == "OAUTHBEARER"
    assert "secret" not in text
    return end


def play_all(seeds, new_login, scram_client):
    ends = {}
    for seed in seeds:
        try:
            end = play(seed, new_login, scram_client)
        except Exception as error:
            raise AssertionError(f"handshake of seed {seed}") from error
        ends[end] = ends.get(end, 0) + 1
    return ends


@pytest.mark.parametrize(
    "seeds",
    [pytest.param(range(GATE), id="gate"), pytest.param(range(SOAK), id="soak", marks=pytest.mark.soak(part="logins"))],
)
def test_mutated_handshakes_are_only_answered_refused_or_cut_off(new_login, scram_client, seeds):
    ends = play_all(seeds, new_login, scram_client)
    assert set(ends) == {"refused", "cut off", "waits", "known"}
