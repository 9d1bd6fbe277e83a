"""kafka-python reads what the codec writes, and writes the same bytes.

A second opinion beside Kafka's own classes that needs no Java. Left out are the messages in
which kafka-python shapes fields in a way of its own (operations as sets, ApiVersions). It knows Kafka 4.3.
"""

import random
import uuid
import warnings

import pytest

from broker_sim.protocol import messages
from broker_sim.protocol.codec import encode
from broker_sim.protocol.message import Struct

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python's own, while it loads
    import kafka.protocol.admin
    import kafka.protocol.consumer
    import kafka.protocol.metadata
    import kafka.protocol.producer

OLDER_NAMES = {"TxnOffsetCommitRequest.generation_id_or_member_epoch": "generation_id"}
"""Fields that Kafka 4.4 has renamed."""
ADDED_FIELDS = {
    *("ApiVersionsRequest.cluster_id", "ApiVersionsRequest.node_id", "DeletableGroupResult.error_message"),
    *("TxnOffsetCommitRequestTopic.topic_id", "TxnOffsetCommitResponseTopic.topic_id"),
}
"""Fields that Kafka 4.4 has added; the versions that kafka-python knows do not have them."""
MODULES = (kafka.protocol.producer, kafka.protocol.consumer, kafka.protocol.metadata, kafka.protocol.admin)
OWN_SHAPES = {"ApiVersionsResponse", "DescribeClusterResponse", "DescribeGroupsResponse", "MetadataResponse"}
PEERS = {
    name: getattr(module, name)
    for module in MODULES
    for name in dir(module)
    if name in set(dir(messages)) - OWN_SHAPES and name.endswith(("Request", "Response"))
}


def assert_same_fields(ours, theirs, path):
    match ours:
        case Struct():
            for name in ours.__slots__:
                place = f"{type(ours).__name__}.{name}"
                if place in ADDED_FIELDS:
                    continue
                value = getattr(ours, name)
                their_value = getattr(theirs, OLDER_NAMES.get(place, name))
                is_default = isinstance(value, Struct) and value == type(value)()
                if not (is_default and their_value is None):
                    assert_same_fields(value, their_value, f"{path}.{name}")
        case list():
            assert len(ours) == len(theirs), path
            for i, (our_item, their_item) in enumerate(zip(ours, theirs, strict=True)):
                assert_same_fields(our_item, their_item, f"{path}[{i}]")
        case bytes() if theirs is None or isinstance(theirs, uuid.UUID):
            assert ours == (theirs.bytes if theirs else bytes(16)), path
        case _:
            assert ours == theirs, path


def rewritten(message, version):
    """Return the bytes that kafka-python writes for a message that it has read."""
    message._header = message._min_version = message._max_version = None
    message._version = version
    return bytes(message.encode(version=version))


@pytest.mark.parametrize("name", sorted(PEERS))
def test_kafka_python_reads_the_same_fields_and_writes_the_same_bytes(name, random_message):
    ours, theirs = getattr(messages, name), PEERS[name]
    rng = random.Random(name)
    for version in range(ours.MIN_VERSION, min(ours.MAX_VERSION, theirs.max_version) + 1):
        for _ in range(4):
            message = random_message(rng, ours, version)
            encoded = b"".join(encode(message, version))
            read = theirs.decode(encoded, version=version)
            assert_same_fields(message, read, f"{name} v{version}")
            assert rewritten(read, version) == encoded


def test_messages_of_producers_and_consumers_are_compared():
    assert {"ProduceRequest", "FetchRequest", "FetchResponse", "OffsetCommitRequest"} <= set(PEERS)
    assert len(PEERS) > 80
