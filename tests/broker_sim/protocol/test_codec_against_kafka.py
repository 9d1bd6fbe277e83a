"""Kafka's own message classes read what the codec writes, and write the same bytes.

Needs Java and Maven; with REQUIRE_REAL_KAFKA set their absence is a failure. Set
BROKER_SIM_SEED to repeat a failing run: its seed is in the failure.
"""

import base64
import io
import json
import os
import random
import struct
import subprocess
from pathlib import Path

import pytest

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey, request_class, response_class
from broker_sim.protocol.codec import decode, encode
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.message import Struct
from broker_sim.protocol.release import newest_release

pytestmark = pytest.mark.real_kafka

ORACLE = Path(__file__).parent / "java" / "MessageOracle.java"
MESSAGES_PER_VERSION = 6
DAMAGED_PER_VERSION = 60
VARINTS = (
    b"\0",
    b"\x80\0",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x80\x80\x08",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff\xff\x01",
)
"""Nulls, the largest length, negative ones, and one that is too long."""

NEGATIVE_TAGS = b"Invalid negative number of tagged fields"
"""Kafka refuses such a number from 4.4 on only; before, and here, it stands for none."""


@pytest.fixture(scope="module")
def oracle(newest_kafka_class_files):
    """Return a function that runs the Java program: `(mode, input) -> output`."""

    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{newest_kafka_class_files}/*", str(ORACLE)]

    def run(mode, stdin=b""):
        done = subprocess.run([*command, mode], input=stdin, capture_output=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    return run


def kafkas_versions(cls):
    """Return the versions that the newest Kafka has; here some messages have older ones too."""
    lowest, _ = newest_release().apis.get(cls.API_KEY, (cls.MIN_VERSION, 0)) if cls.API_KEY is not None else (0, 0)
    return range(max(lowest, cls.MIN_VERSION), cls.MAX_VERSION + 1)


def java_class(cls):
    """Return the name of the class that Kafka's generator makes."""
    return cls.__name__ if cls.SPEC.kind == "data" else f"{cls.__name__}Data"


def block(stream):
    """Return the next block of the oracle's answer, None for a refusal."""
    (size,) = struct.unpack(">i", stream.read(4))
    return None if size < 0 else stream.read(size)


def as_kafka_json(value):
    """Return a message in the shape of Kafka's JSON, its keys without case."""
    match value:
        case Struct():
            fields = {name: getattr(value, name) for name in value.__slots__}
            return {name.replace("_", ""): as_kafka_json(fields[name]) for name in fields}
        case list():
            return [as_kafka_json(item) for item in value]
        case _:
            return value


def assert_same_fields(ours, theirs, path):
    """Assert that every field that Kafka read has the value that was written."""
    match theirs:
        case dict():
            for name, their_value in theirs.items():
                key = name.lower()
                if key.endswith("sizeinbytes") and key not in ours:
                    records = ours[key.removesuffix("sizeinbytes")]
                    assert their_value == len(records), f"{path}.{name}"
                else:
                    assert_same_fields(ours[key], their_value, f"{path}.{name}")
        case list():
            assert len(ours) == len(theirs), path
            for i, (our_item, their_item) in enumerate(zip(ours, theirs, strict=True)):
                assert_same_fields(our_item, their_item, f"{path}[{i}]")
        case str() if isinstance(ours, bytes | memoryview):
            standard = theirs.replace("-", "+").replace("_", "/")
            assert base64.b64decode(standard + "==") == ours, path
        case str() if isinstance(ours, float):
            assert theirs.lower().startswith(str(ours)), path  # NaN, Infinity
        case str() if "\ufffd" in theirs:
            # Of bytes that are not UTF-8, Java and Python may make different numbers of these.
            assert theirs.replace("\ufffd", "") == ours.replace("\ufffd", ""), path
        case _:
            assert ours == theirs, path


def test_kafka_reads_every_version_of_every_message_and_writes_the_same_bytes(oracle, random_message):
    seed = int(os.environ.get("BROKER_SIM_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"BROKER_SIM_SEED={seed}")
    rng = random.Random(seed)
    cases = []
    stdin = io.BytesIO()
    for name in dir(messages):
        cls = getattr(messages, name)
        for version in kafkas_versions(cls):
            for _ in range(MESSAGES_PER_VERSION):
                message = random_message(rng, cls, version)
                encoded = b"".join(encode(message, version))
                cases.append((cls, version, message, encoded))
                java_name = java_class(cls).encode()
                stdin.write(struct.pack(">h", len(java_name)) + java_name)
                stdin.write(struct.pack(">hi", version, len(encoded)) + encoded)
    answer = io.BytesIO(oracle("messages", stdin.getvalue()))
    for cls, version, message, encoded in cases:
        rewritten, text = block(answer), block(answer)
        where = f"{cls.__name__} v{version} of seed {seed}"
        assert rewritten is not None, f"{where}: {text.decode()}"
        assert_same_fields(as_kafka_json(message), json.loads(text), where)
        assert rewritten == encoded, where
        assert decode(cls, version, rewritten) == message, where
    assert answer.read() == b""
    assert len(cases) > 600 * MESSAGES_PER_VERSION


def damaged(rng, good):
    """Return `good` with one lie: a byte, a length, a count, a varint, bytes missing or too many."""
    bad = bytearray(good)
    at = rng.randrange(len(bad) + 1)
    match rng.randrange(6):
        case 0:
            bad[at : at + 1] = rng.randbytes(1)
        case 1:
            bad[at : at + 2] = rng.choice((b"\xff\xff", b"\x80\x00", b"\x7f\xff"))
        case 2:
            bad[at : at + 4] = struct.pack(">i", rng.choice((-1, -2, 0x7FFFFFFF, -0x80000000, 3)))
        case 3:
            bad[at : at + 1] = rng.choice(VARINTS)
        case 4:
            del bad[at:]
        case _:
            # An unknown tagged field where the message ends with an empty list of them.
            bad[-1:] = rng.choice((b"\1\x7f\2ab", b"\1\x7f\3ab", b"\2\x7e\0\x7f\0", b"\0abc"))
    return bytes(bad)


def test_kafka_reads_and_refuses_the_same_damaged_requests(oracle, random_message):
    seed = int(os.environ.get("BROKER_SIM_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"BROKER_SIM_SEED={seed}")
    rng = random.Random(seed)
    cases = []
    stdin = io.BytesIO()
    for name in dir(messages):
        cls = getattr(messages, name)
        if not name.endswith("Request"):
            continue
        for version in kafkas_versions(cls):
            for _ in range(DAMAGED_PER_VERSION):
                good = b"".join(encode(random_message(rng, cls, version), version))
                case = damaged(rng, good)
                cases.append((cls, version, case))
                java_name = java_class(cls).encode()
                stdin.write(struct.pack(">h", len(java_name)) + java_name)
                stdin.write(struct.pack(">hi", version, len(case)) + case)
    answer = io.BytesIO(oracle("messages", stdin.getvalue()))
    refused = 0
    for cls, version, case in cases:
        rewritten, text = block(answer), block(answer)
        where = f"{cls.__name__} v{version} of seed {seed}: {case.hex()}"
        if rewritten is None:
            refused += 1
            try:
                decode(cls, version, case)
            except ProtocolError:
                continue
            if NEGATIVE_TAGS in text:
                continue
            pytest.fail(f"{where} is refused by Kafka: {text.decode()}")
        else:
            assert_same_fields(as_kafka_json(decode(cls, version, case)), json.loads(text), where)
    assert 0.1 < refused / len(cases) < 0.9


def test_apis_versions_and_header_versions_are_those_of_kafka(oracle):
    described = {}
    for line in oracle("apis").decode().splitlines():
        api_key, name, oldest, newest, newest_stable, *headers = line.split()
        described[int(api_key)] = name
        request, response = request_class(int(api_key)), response_class(int(api_key))
        assert ApiKey[name] == int(api_key)
        if not headers:
            assert not request.SPEC.versions
            continue
        versions = kafkas_versions(request)
        assert (int(oldest), int(newest)) == (versions[0], versions[-1]), name
        assert (newest != newest_stable) == request.LATEST_VERSION_UNSTABLE, name
        for version, header in enumerate(headers, int(oldest)):
            request_header, response_header = map(int, header.split("/"))
            is_v0 = ApiKey[name] is ApiKey.API_VERSIONS
            assert (version in request.SPEC.flexible_versions) == (request_header == 2)
            expected = version in response.SPEC.flexible_versions and not is_v0
            assert expected == (response_header == 1), (name, version)
    assert set(described) == set(ApiKey)
