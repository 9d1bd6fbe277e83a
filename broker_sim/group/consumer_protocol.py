"""The messages that consumers of the classic protocol exchange through their coordinator.

Mirrors `org.apache.kafka.clients.consumer.internals.ConsumerProtocol`: a version, and after it the
message in that version. A newer version is read as the newest known one, as in Kafka.
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
"""The protocol type of consumers."""
VERSION: Final = Struct(">h")
"""The version in front of each message."""
_Embedded = TypeVar("_Embedded", ConsumerProtocolAssignment, ConsumerProtocolSubscription)


class MalformedConsumerProtocolError(ValueError):
    """Bytes that are no message of the consumer protocol."""


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """Return what a consumer subscribes to. Raises MalformedConsumerProtocolError."""
    return _read(ConsumerProtocolSubscription, metadata)


def read_assignment(assignment: bytes) -> ConsumerProtocolAssignment:
    """Return what a consumer was assigned. Raises MalformedConsumerProtocolError."""
    return _read(ConsumerProtocolAssignment, assignment)


def encode_assignment(partitions: Iterable[tuple[str, Sequence[int]]], metadata: bytes) -> bytes:
    """Return an assignment of topics' partitions in the version that a consumer's metadata has.

    Raises MalformedConsumerProtocolError for metadata without a version.
    """
    version = _version_of(metadata, ConsumerProtocolAssignment.MAX_VERSION)
    topic = ConsumerProtocolAssignment.TopicPartition
    message = ConsumerProtocolAssignment([topic(name, list(numbers)) for name, numbers in partitions], None)
    return VERSION.pack(version) + b"".join(encode(message, version))


def _read(kind: type[_Embedded], data: bytes) -> _Embedded:
    version = _version_of(data, kind.MAX_VERSION)
    try:
        return decode(kind, version, data, VERSION.size)
    except ProtocolError as wrong:
        raise MalformedConsumerProtocolError(str(wrong)) from wrong


def _version_of(data: bytes, newest: int) -> int:
    try:
        version: int = VERSION.unpack_from(data)[0]
    except error as wrong:
        raise MalformedConsumerProtocolError("no version") from wrong
    if version < 0:
        raise MalformedConsumerProtocolError(f"version {version}")
    return min(version, newest)
