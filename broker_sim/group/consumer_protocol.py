"""The messages that classic consumers exchange through their group coordinator.

Mirrors `org.apache.kafka.clients.consumer.internals.ConsumerProtocol`: a version, followed by the message in that
version. As in Kafka, a newer version is decoded as the newest supported one.
"""

from __future__ import annotations

from struct import Struct, error
from typing import TYPE_CHECKING, Final, TypeVar

from broker_sim.protocol.codec import decode, encode
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PROTOCOL_TYPE: Final = "consumer"
"""Protocol type of consumers."""
VERSION: Final = Struct(">h")
"""Version prefix of each message."""
_Embedded = TypeVar("_Embedded", ConsumerProtocolAssignment, ConsumerProtocolSubscription)


class MalformedConsumerProtocolError(ValueError):
    """The bytes are not a valid message of the consumer protocol."""


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Decode a consumer's subscription. Raises MalformedConsumerProtocolError."""
    return _read(ConsumerProtocolSubscription, metadata)


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """Decode a consumer's assignment. Raises MalformedConsumerProtocolError."""
    return _read(ConsumerProtocolAssignment, assignment)


def encode_assignment(partitions: Iterable[tuple[str, Sequence[int]]], metadata: bytes) -> bytes:
    """Encode an assignment of partitions by topic name, in the version of the consumer's metadata.

    Raises MalformedConsumerProtocolError if the metadata has no valid version.
    """
    version = _version_of(metadata, ConsumerProtocolAssignment.MAX_VERSION)
    topic = ConsumerProtocolAssignment.TopicPartition
    message = ConsumerProtocolAssignment([topic(name, list(numbers)) for name, numbers in partitions], None)
    return VERSION.pack(version) + b"".join(encode(message, version))


def _read(kind: type[_Embedded], data: bytes) -> _Embedded:
    version = _version_of(data, kind.MAX_VERSION)
    try:
        return decode(kind, version, data, VERSION.size)
    except ProtocolError as decode_error:
        raise MalformedConsumerProtocolError(str(decode_error)) from decode_error


def _version_of(data: bytes, newest: int) -> int:
    try:
        version: int = VERSION.unpack_from(data)[0]
    except error as unpack_error:
        raise MalformedConsumerProtocolError("no version") from unpack_error
    if version < 0:
        raise MalformedConsumerProtocolError(f"version {version}")
    return min(version, newest)
