"""Claims about all messages: decoding inverts encoding, and no input crashes the codec."""

import os
import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.codec import decode, encode, encoded_size
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from broker_sim.protocol.message import Struct

NAMES = [name for name in dir(messages) if getattr(messages, name).SPEC.versions]
REQUESTS = [name for name in NAMES if name.endswith("Request")]

WRONG = (None, -1, 1 << 70, 10**400, 1.5, True, "x", "\ud800", b"x", [], [None], {}, object(), str)

seeds = st.integers(0, (1 << 32) - 1)


def versions(name):
    cls = getattr(messages, name)
    return st.integers(cls.MIN_VERSION, cls.MAX_VERSION)


def examples(name, count):
    """Yield the class, a version and a generator, as often for each version; the seed is printed."""
    cls = getattr(messages, name)
    seed = 0 if os.environ.get("CI") == "true" else random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    for version in range(cls.MIN_VERSION, cls.MAX_VERSION + 1):
        for number in range(count):
            yield cls, version, random.Random(f"{seed} {name} {version} {number}")


def read_or_refuse(cls, version, buffer):
    """Decode `buffer`; anything but a message or a ProtocolError fails the test."""
    try:
        message = decode(cls, version, buffer)
    except ProtocolError:
        return
    again = b"".join(encode(message, version))
    assert b"".join(encode(decode(cls, version, again), version)) == again


@pytest.mark.parametrize("name", NAMES)
def test_decoded_message_equals_the_encoded_one(name, random_message):
    for cls, version, rng in examples(name, 4):
        message = random_message(rng, cls, version)
        chunks = encode(message, version)
        buffer = b"".join(chunks)
        assert encoded_size(chunks) == len(buffer)
        assert all(map(len, chunks))
        assert decode(cls, version, buffer) == message
        assert decode(cls, version, memoryview(b"x" + buffer)[1:]) == message


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from(REQUESTS), st.none() | st.text(max_size=20), seeds)
def test_decoded_frame_equals_the_encoded_one(random_message, data, name, client_id, seed):
    request_class = getattr(messages, name)
    version = data.draw(versions(name))
    header = RequestHeader(ApiKey(request_class.API_KEY), version, seed >> 1, client_id)
    request = random_message(random.Random(seed), request_class, version)
    size, frame = split(encode_request(header, request))
    decoded, offset = decode_request_header(frame)
    assert size == len(frame)
    assert decoded == header
    assert decode(request_class, version, frame, offset) == request

    response_class = getattr(messages, name.replace("Request", "Response"))
    response = random_message(random.Random(seed), response_class, version)
    size, frame = split(encode_response(header.api_key, version, seed >> 1, response))
    assert size == len(frame)
    if header.api_key is ApiKey.API_VERSIONS and response.error_code == 35:
        return
    assert decode_response(header.api_key, version, frame) == (seed >> 1, response)


def split(chunks):
    frame = b"".join(chunks)
    return int.from_bytes(frame[:4], "big"), frame[4:]


@settings(max_examples=500, deadline=None)
@given(st.data(), st.sampled_from(NAMES), st.binary(max_size=200))
def test_random_bytes_are_decoded_or_a_protocol_error(data, name, buffer):
    read_or_refuse(getattr(messages, name), data.draw(versions(name)), buffer)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=40))
def test_random_request_header_is_decoded_or_a_protocol_error(buffer):
    try:
        _, offset = decode_request_header(buffer)
    except ProtocolError:
        return
    assert offset >= 10


@pytest.mark.parametrize("name", NAMES)
def test_damaged_message_is_decoded_or_a_protocol_error(name, random_message):
    for cls, version, rng in examples(name, 2):
        good = b"".join(encode(random_message(rng, cls, version), version))
        if not good:
            continue
        for _ in range(10):
            read_or_refuse(cls, version, mutated(rng, good))
        cut = good[: rng.randrange(len(good))]
        with pytest.raises(ProtocolError):
            decode(cls, version, cut)


@pytest.mark.parametrize("name", NAMES)
def test_value_of_any_type_is_encoded_or_a_protocol_error(name, random_message):
    for cls, version, rng in examples(name, 4):
        message = random_message(rng, cls, version)
        struct_ = rng.choice([message, *nested(message)])
        if not struct_.__slots__:
            continue
        setattr(struct_, rng.choice(struct_.__slots__), rng.choice(WRONG))
        try:
            encoded = b"".join(encode(message, version))
        except ProtocolError:
            continue
        decode(cls, version, encoded)


def nested(value):
    """Yield all structs inside `value`."""
    for name in value.__slots__:
        inner = getattr(value, name)
        for item in inner if isinstance(inner, list) else [inner]:
            if isinstance(item, Struct):
                yield item
                yield from nested(item)


def mutated(rng, good):
    """Return `good` with a few bytes changed, or a length or count made to lie."""
    bad = bytearray(good)
    at = rng.randrange(len(bad))
    match rng.randrange(4):
        case 0:
            bad[at] = rng.randrange(256)
        case 1:
            bad[at : at + 4] = struct.pack(">i", rng.choice((-1, -2, 0x7FFFFFFF, -0x80000000)))
        case 2:
            bad[at : at + 1] = rng.choice((b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\xff\x01"))
        case 3:
            del bad[at : at + rng.randrange(1, 9)]
    return bytes(bad)
