"""Tests of encoding and decoding the consumer protocol in all versions."""

import pytest

from broker_sim.group.consumer_protocol import (
    MalformedConsumerProtocolError,
    encode_assignment,
    read_assignment,
    read_subscription,
)
from broker_sim.protocol.codec import encode
from broker_sim.protocol.messages import ConsumerProtocolSubscription

NEWEST = 3
# Written by Kafka's own ConsumerProtocol: topic "foo", partitions 0 and 2, no data.
KAFKAS_ASSIGNMENT = bytes.fromhex("0000 00000001 0003666f6f 00000002 00000000 00000002 ffffffff")


def subscription(version, written_as=None):
    message = ConsumerProtocolSubscription(["t"], None, [], -1, None)
    number = version if written_as is None else written_as
    return number.to_bytes(2, "big", signed=True) + b"".join(encode(message, version))


@pytest.mark.parametrize("version", range(NEWEST + 1))
def test_every_version_of_a_subscription_is_decoded(version):
    assert read_subscription(subscription(version)).topics == ["t"]


def test_newer_version_is_decoded_as_the_newest_supported_one():
    assert read_subscription(subscription(NEWEST, 9) + b"more").topics == ["t"]


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0\0", b"any", subscription(0, -1)])
def test_invalid_bytes_are_malformed(data):
    for read in (read_subscription, read_assignment):
        with pytest.raises(MalformedConsumerProtocolError):
            read(data)


@pytest.mark.parametrize(("told", "written"), [(0, 0), (1, 1), (3, 3), (9, 3)])
def test_assignment_uses_the_version_of_the_subscription(told, written):
    data = encode_assignment([("foo", [0, 2])], subscription(min(told, NEWEST), told))
    assert data == bytes([0, written]) + KAFKAS_ASSIGNMENT[2:]
    (topic,) = read_assignment(data).assigned_partitions
    assert (topic.topic, list(topic.partitions)) == ("foo", [0, 2])


def test_assignment_for_metadata_without_version_raises():
    with pytest.raises(MalformedConsumerProtocolError):
        encode_assignment([], b"")
