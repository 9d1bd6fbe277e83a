"""A running Kafka, for tests that otherwise run on the simulator.

It offers what every Kafka can do: bootstrap servers, topics and configurations of groups. Kafka deletes the
committed offsets of a topic with the topic.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import pytest

from broker_sim.cluster.arguments import ClusterOptions
from broker_sim.cluster.cluster import Cluster
from broker_sim.cluster.listeners.client_config import client_config
from broker_sim.config import PLAINTEXT, to_texts
from broker_sim.controller import AlterOp, ConfigResourceType
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.network.one_request import ask
from broker_sim.protocol import messages
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.message import Message
from broker_sim.testing.shared_clusters import SharedClusters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager

    from broker_sim.config import GivenValue

R = TypeVar("R", bound=Message)

BOOTSTRAP: Final = "--kafka-bootstrap"
TIMEOUT_S: Final = 30
LOOK_S: Final = 10
"""Timeout of the first request to the address of `--kafka-bootstrap`, in seconds."""
API_VERSIONS_VERSION: Final = 0
METADATA_VERSION: Final = 12
CREATE_TOPICS_VERSION: Final = 7
DELETE_TOPICS_VERSION: Final = 6
ALTER_CONFIGS_VERSION: Final = 1


class RealKafka:
    """The Kafka at an address. A test that uses a verb of the simulator only is skipped.

    `option` is the command-line option that selected it. With `is_ours` nobody else uses it, and all topics are
    deleted after a test, not only those that the fixture created.
    """

    def __init__(self, bootstrap_servers: str, option: str, *, is_ours: bool) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._option = option
        self._is_ours = is_ours
        self._made: dict[str, bytes] = {}
        self._configured: dict[str, set[str]] = {}
        """Names of the configurations that were set, by group."""

    if not TYPE_CHECKING:  # so that mypy reports missing methods

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_") or not hasattr(Cluster, name):
                raise AttributeError(f"the fixture kafka has no {name!r}")
            pytest.skip(f"kafka.{name} needs the simulator; run it without {self._option}")

    def client_config(self, client: str) -> dict[str, Any]:
        """Return the configuration of a client without login, as `Cluster.client_config` does."""
        return client_config(client, self.bootstrap_servers, PLAINTEXT)

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, GivenValue] | None = None,
    ) -> None:
        """Create a topic; brokers may learn of it later. Raises ApiError, and OSError if Kafka does not answer."""
        request = messages.CreateTopicsRequest
        texts = to_texts(configs or {}).items()
        topic = request.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[request.CreatableTopicConfig(key, value) for key, value in texts],
        )
        answer = self._ask(
            request(topics=[topic], timeout_ms=TIMEOUT_S * 1_000), CREATE_TOPICS_VERSION, messages.CreateTopicsResponse
        )
        (result,) = answer.topics
        _raise_error(f"create {name}", result.error_code, result.error_message)
        self._made[name] = bytes(result.topic_id)

    def delete_topic(self, name: str) -> None:
        """Delete a topic that `create_topic` created. Raises KeyError for other topics, and ApiError."""
        self._delete([self._made.pop(name)])

    def set_group_configs(self, group_id: str, configs: Mapping[str, GivenValue] | None = None) -> None:
        """Set configurations of a group, until `reset`. Raises ApiError."""
        texts = to_texts(configs or {})
        self._configured.setdefault(group_id, set()).update(texts)
        self._alter_group(group_id, AlterOp.SET, texts)

    def _alter_group(self, group_id: str, operation: AlterOp, values: Mapping[str, str | None]) -> None:
        request = messages.IncrementalAlterConfigsRequest
        changes = [request.AlterableConfig(name, operation, text) for name, text in values.items()]
        resource = request.AlterConfigsResource(ConfigResourceType.GROUP, group_id, changes)
        answer = self._ask(request([resource]), ALTER_CONFIGS_VERSION, messages.IncrementalAlterConfigsResponse)
        (altered,) = answer.responses
        _raise_error(f"configure group {group_id}", altered.error_code, altered.error_message)

    def reset(self) -> None:
        """Delete the topics that `create_topic` created, with `is_ours` all topics but Kafka's own.

        The configurations that `set_group_configs` has set are removed too.
        """
        configured, self._configured = self._configured, {}
        for group_id, names in configured.items():
            self._alter_group(group_id, AlterOp.DELETE, dict.fromkeys(names))
        topic_ids, self._made = self._made, {}
        self._delete(self._all_topics() if self._is_ours else topic_ids.values())

    def _all_topics(self) -> list[bytes]:
        answer = self._ask(
            messages.MetadataRequest(topics=None, allow_auto_topic_creation=False),
            METADATA_VERSION,
            messages.MetadataResponse,
        )
        return [bytes(topic.topic_id) for topic in answer.topics if not topic.is_internal]

    def _delete(self, topic_ids: Iterable[bytes]) -> None:
        request = messages.DeleteTopicsRequest
        topics = [request.DeleteTopicState(name=None, topic_id=topic_id) for topic_id in topic_ids]
        if not topics:
            return
        answer = self._ask(
            request(topics=topics, timeout_ms=TIMEOUT_S * 1_000), DELETE_TOPICS_VERSION, messages.DeleteTopicsResponse
        )
        for topic in answer.responses:
            if topic.error_code != ErrorCode.UNKNOWN_TOPIC_ID:  # a client of the test has deleted it
                _raise_error(f"delete {topic.name}", topic.error_code, topic.error_message)

    def _ask(self, message: Message, version: int, expected: type[R]) -> R:
        servers = self.bootstrap_servers
        try:
            return ask(servers, message, version, expected, timeout_s=TIMEOUT_S)
        except OSError as error:
            raise ConnectionError(f"no Kafka at {self._option}={servers}: {error}") from error


def check_address(bootstrap_servers: str) -> None:
    """Raise UsageError unless a Kafka answers at one of the addresses."""
    request, response = messages.ApiVersionsRequest(), messages.ApiVersionsResponse
    try:
        ask(bootstrap_servers, request, API_VERSIONS_VERSION, response, timeout_s=LOOK_S)
    except (OSError, ProtocolError) as error:
        raise pytest.UsageError(f"no Kafka at {BOOTSTRAP}={bootstrap_servers}: {error}") from error


class KafkaAtAddress(SharedClusters[RealKafka]):
    """The Kafka of `--kafka-bootstrap`, which others may use too."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__()
        self._bootstrap_servers = bootstrap_servers

    def _fit(self, options: ClusterOptions) -> ClusterOptions:
        skip_logins(options, BOOTSTRAP)
        if options.configs:
            pytest.skip(f"configs need the simulator, and {BOOTSTRAP} was given")
        return ClusterOptions(topics=options.topics)

    def _open(self, options: ClusterOptions) -> AbstractContextManager[RealKafka]:
        del options
        return nullcontext(RealKafka(self._bootstrap_servers, BOOTSTRAP, is_ours=False))


def skip_logins(options: ClusterOptions, option: str) -> None:
    """Skip a test whose options require logins or TLS."""
    if options.security not in {None, "plaintext"}:
        pytest.skip(f"security needs the simulator; run it without {option}")


def _raise_error(what: str, code: int, text: str | None) -> None:
    if code != ErrorCode.NONE:
        error = ErrorCode(code)
        raise ApiError(error, f"{what}: {error.name}: {text}")
