"""An immutable snapshot of the cluster's metadata.

Mirrors the parts of `org.apache.kafka.image.MetadataImage` that a broker reads:
`ClusterImage`, `TopicsImage`, `ConfigurationsImage`, `ScramImage`, `AclsImage`,
`ClientQuotasImage`, `DelegationTokenImage` and `PartitionRegistration`.

Deliberate differences: a topic carries its own configurations, so that a request needs one dictionary
access; SCRAM credentials are keyed by user, then by mechanism; log directories are left out.

A `MetadataDelta` builds the next image and copies only the dictionaries that it writes to; unchanged
topics and partitions are the same objects in both images, so an identity test shows whether they
changed. Any thread may read an image.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from broker_sim.config import Endpoint
from broker_sim.metadata.acl import NO_ACLS, Acls
from broker_sim.metadata.delegation_token import DelegationToken
from broker_sim.metadata.quota_entity import QuotaEntity
from broker_sim.metadata.topic_partition import TopicPartition

NO_LEADER: Final = -1
"""Leader id of a partition without a leader."""

NO_TOPIC_ID: Final = bytes(16)
"""Kafka's `Uuid.ZERO_UUID`: stands for a missing topic id."""

GROUP_RESOURCE: Final = 32
"""Code of the configuration resource type GROUP."""

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class BrokerState(NamedTuple):
    """One registered broker; mirrors `BrokerRegistration`.

    A fenced broker is in no ISR and is left out of metadata responses.
    `endpoints` are the advertised listeners, each with its own name.
    `epoch` is the broker epoch assigned at registration; a later registration gets a higher one.
    """

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    epoch: int
    fenced: bool
    in_controlled_shutdown: bool = False
    incarnation_id: bytes = bytes(16)

    @property
    def is_active(self) -> bool:
        """Whether the broker may join an ISR: neither fenced nor shutting down."""
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the broker's advertised endpoint of that listener, None if it has no such listener."""
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


class PartitionState(NamedTuple):
    """One partition; mirrors `PartitionRegistration`.

    `leader_epoch` counts changes of the leader, `partition_epoch` every change.
    `elr` are replicas outside the ISR that may still become leader without data loss (KIP-966);
    `last_known_elr` are those that had an unclean shutdown, and its first is the last known leader.
    `recovering` is true after an unclean election until the leader has recovered.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    recovering: bool = False
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    @property
    def has_leader(self) -> bool:
        """Whether the partition has a leader."""
        return self.leader != NO_LEADER

    @property
    def preferred_replica(self) -> int:
        """The preferred leader, which is the first replica; `NO_LEADER` without replicas."""
        return self.replicas[0] if self.replicas else NO_LEADER

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are being added or removed."""
        return bool(self.adding_replicas or self.removing_replicas)


class TopicState(NamedTuple):
    """One topic: its partitions by number, and the configurations set on it."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionState, ...]
    configs: Mapping[str, str] = _NOTHING

    def partition(self, partition: int) -> PartitionState | None:
        """Return the partition with that number, or None."""
        if 0 <= partition < len(self.partitions):
            return self.partitions[partition]
        return None


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """The data with which a broker verifies a user's password; mirrors `ScramCredentialData`.

    It does not contain the password, and its `repr` shows only the iterations.
    """

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """All metadata of the cluster; `version` takes the place of Kafka's metadata offset.

    `broker_configs` are the dynamic broker configurations: under `""` the cluster-wide ones, under a
    broker id (as text) those of one broker. `resource_configs` are those of groups and client metrics
    subscriptions, by Kafka's resource type code and name.
    `scram` has the SCRAM credentials of each user, by Kafka's mechanism code.
    `client_quotas` has the quotas of each entity by Kafka's names, in the order of creation.
    `delegation_tokens` has the delegation tokens by id.
    `written_topics` are the topics that may differ from the previous version, None if unknown.
    """

    version: int
    cluster_id: str
    brokers: Mapping[int, BrokerState] = field(default_factory=dict)
    topics: Mapping[str, TopicState] = field(default_factory=dict)
    topic_names: Mapping[bytes, str] = field(default_factory=dict)
    broker_configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    resource_configs: Mapping[tuple[int, str], Mapping[str, str]] = field(default_factory=dict)
    scram: Mapping[str, Mapping[int, ScramCredential]] = field(default_factory=dict)
    acls: Acls = NO_ACLS
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    delegation_tokens: Mapping[str, DelegationToken] = field(default_factory=dict)
    written_topics: frozenset[str] | None = field(default=None, compare=False, repr=False)

    def topic_by_id(self, topic_id: bytes) -> TopicState | None:
        """Return the topic with that id, or None."""
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def partition(self, topic_partition: TopicPartition) -> PartitionState | None:
        """Return the partition, or None if the topic or the number is unknown."""
        topic = self.topics.get(topic_partition.topic)
        return None if topic is None else topic.partition(topic_partition.partition)

    def alive_broker(self, broker_id: int) -> BrokerState | None:
        """Return the broker with that id if it is registered and not fenced, otherwise None."""
        broker = self.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker

    def alive_brokers(self) -> list[BrokerState]:
        """Return all unfenced brokers by id, as a metadata response lists them."""
        return [broker for _, broker in sorted(self.brokers.items()) if not broker.fenced]

    def alive_endpoint(self, broker_id: int, listener: str) -> Endpoint | None:
        """Return the advertised endpoint of an unfenced broker, None if the broker or listener is missing."""
        broker = self.alive_broker(broker_id)
        return None if broker is None else broker.endpoint(listener)

    def alive_endpoints(self, listener: str) -> list[tuple[BrokerState, Endpoint]]:
        """Return the unfenced brokers with that listener, ordered by id, each with its endpoint."""
        endpoints = ((broker, broker.endpoint(listener)) for broker in self.alive_brokers())
        return [(broker, endpoint) for broker, endpoint in endpoints if endpoint is not None]

    def dynamic_broker_configs(self, broker_id: int) -> Mapping[str, str]:
        """Return the dynamic configurations of one broker."""
        return self.broker_configs.get(str(broker_id), _NOTHING)

    def dynamic_cluster_configs(self) -> Mapping[str, str]:
        """Return the cluster-wide dynamic configurations."""
        return self.broker_configs.get("", _NOTHING)

    def configs_of_resource(self, type_code: int, name: str) -> Mapping[str, str]:
        """Return the configurations of a group (code 32) or client metrics subscription (16)."""
        return self.resource_configs.get((type_code, name), _NOTHING)

    def each_partition(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        """Yield all partitions, topic by topic in the order of creation."""
        for topic in self.topics.values():
            for number, state in enumerate(topic.partitions):
                yield TopicPartition(topic.name, number), state
