"""A Kafka that runs already, for tests that otherwise run on the simulator.

It takes what any Kafka can do: bootstrap servers and topics. It deletes the topics that it made, by
their id, and nothing else. Kafka deletes the offsets of groups with the topics that they are of.
"""

from __future__ import annotations

import socket
import struct
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

import pytest

from broker_sim.cluster.cluster import Cluster
from broker_sim.cluster.topic_text import parse_topic
from broker_sim.config import to_texts
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from broker_sim.protocol.message import Message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from io import BufferedReader

    from broker_sim.config import GivenValue
    from broker_sim.testing.marked_clusters import MarkedArguments

__all__ = ["RealKafka"]

R = TypeVar("R", bound=Message)

OPTION: Final = "--kafka-bootstrap"
TIMEOUT_S: Final = 30
METADATA_VERSION: Final = 12
CREATE_TOPICS_VERSION: Final = 7
DELETE_TOPICS_VERSION: Final = 6
_SIZE: Final = struct.Struct(">i")


class RealKafka:
    """The Kafka at an address. A test that asks it for what only the simulator can do is skipped."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._made: dict[str, bytes] = {}

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or not hasattr(Cluster, name):
            raise AttributeError(f"the fixture kafka has no {name!r}")
        pytest.skip(f"kafka.{name} needs the simulator, and {OPTION} was given")

    @contextmanager
    def lend(self, arguments: MarkedArguments) -> Iterator[RealKafka]:
        """Make the topics for a test, and delete them and those that it makes afterwards.

        The test is skipped where this Kafka is not what the arguments want. Raises ApiError for a
        topic that is there already, which is not touched, and OSError where no Kafka answers.
        """
        if arguments.configs:
            pytest.skip(f"configs need the simulator, and {OPTION} was given")
        try:
            for topic in map(parse_topic, arguments.topics):
                self.create_topic(*topic)
            yield self
        finally:
            for name in list(self._made):
                self.delete_topic(name)

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, GivenValue] | None = None,
    ) -> None:
        """Create a topic; brokers may hear of it later. Raises ApiError."""
        request = messages.CreateTopicsRequest
        texts = to_texts(configs or {}).items()
        wanted = request.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[request.CreatableTopicConfig(key, value) for key, value in texts],
        )
        answer = self._ask(
            request(topics=[wanted], timeout_ms=TIMEOUT_S * 1_000),
            CREATE_TOPICS_VERSION,
            messages.CreateTopicsResponse,
        )
        (made,) = answer.topics
        _raise_error(f"create {name}", made.error_code, made.error_message)
        self._made[name] = bytes(made.topic_id)

    def delete_topic(self, name: str) -> None:
        """Delete a topic that `create_topic` made. Raises KeyError for others, and ApiError."""
        request = messages.DeleteTopicsRequest
        topic_id = self._made.pop(name)
        answer = self._ask(
            request(
                topics=[request.DeleteTopicState(name=None, topic_id=topic_id)],
                timeout_ms=TIMEOUT_S * 1_000,
            ),
            DELETE_TOPICS_VERSION,
            messages.DeleteTopicsResponse,
        )
        (gone,) = answer.responses
        if gone.error_code != ErrorCode.UNKNOWN_TOPIC_ID:  # the test has deleted it by a client
            _raise_error(f"delete {name}", gone.error_code, gone.error_message)

    def _ask(self, message: Message, version: int, expected: type[R]) -> R:
        """Send a request to the first server that can be reached, and return its answer."""
        assert message.API_KEY is not None
        header = RequestHeader(ApiKey(message.API_KEY), version, 1, "broker-sim")
        with _connected(self.bootstrap_servers) as connection:
            connection.sendall(b"".join(encode_request(header, message)))
            with connection.makefile("rb") as stream:
                (size,) = _SIZE.unpack(_read(stream, _SIZE.size))
                frame = _read(stream, size)
        _correlation_id, answer = decode_response(message.API_KEY, version, frame)
        assert isinstance(answer, expected)
        return answer


def _connected(bootstrap_servers: str) -> socket.socket:
    wrong: OSError | None = None
    for server in bootstrap_servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            return socket.create_connection((host.strip("[]"), int(port)), timeout=TIMEOUT_S)
        except OSError as error:
            wrong = error
    raise ConnectionError(f"no Kafka at {OPTION}={bootstrap_servers}: {wrong}")


def _read(stream: BufferedReader, size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise ConnectionError(f"the Kafka of {OPTION} closed the connection without an answer")
    return found


def _raise_error(what: str, code: int, text: str | None) -> None:
    if code != ErrorCode.NONE:
        error = ErrorCode(code)
        raise ApiError(error, f"{what}: {error.name}: {text}")
