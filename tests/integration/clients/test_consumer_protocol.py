"""The bytes that consumers exchange through a group's coordinator."""

import struct

import pytest
from broker_sim_integration.clients.consumer_protocol import assignment, subscription


def test_subscription_of_version_0_has_topics_and_user_data():
    expected = struct.pack(">hi", 0, 2) + b"\0\1a" + b"\0\2bc" + struct.pack(">i", 4) + b"data"
    assert subscription(["a", "bc"], user_data=b"data", version=0) == expected


def test_subscription_without_user_data_has_none():
    assert subscription([], version=0) == struct.pack(">hii", 0, 0, -1)


@pytest.mark.parametrize(
    ("version", "tail"),
    [
        (1, struct.pack(">i", 1) + b"\0\1a" + struct.pack(">iii", 2, 0, 3)),
        (2, struct.pack(">i", 1) + b"\0\1a" + struct.pack(">iiii", 2, 0, 3, 7)),
        (3, struct.pack(">i", 1) + b"\0\1a" + struct.pack(">iiiih", 2, 0, 3, 7, -1)),
    ],
)
def test_later_versions_have_owned_partitions_generation_and_rack(version, tail):
    built = subscription(["a"], owned={"a": [0, 3]}, generation=7, version=version)
    assert built == struct.pack(">hi", version, 1) + b"\0\1a" + struct.pack(">i", -1) + tail


def test_assignment_has_partitions_by_topic():
    expected = struct.pack(">hi", 3, 1) + b"\0\1a" + struct.pack(">iii", 2, 4, 5)
    assert assignment({"a": [4, 5]}) == expected + struct.pack(">i", -1)
