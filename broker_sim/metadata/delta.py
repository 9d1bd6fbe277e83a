"""Builds the next metadata image from changes, and compares two images.

Mirrors `org.apache.kafka.image.MetadataDelta` (collect changes, then `apply`) and the
`TopicsDelta.localChanges` that a broker needs to follow an image.

Deliberate difference: there is no metadata log. The controller collects the changes of one request
in one `MetadataDelta`; brokers compare two images by identity with `changes_between`.
A delta belongs to one thread.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from broker_sim.metadata.acl import Acl, Acls
from broker_sim.metadata.delegation_token import DelegationToken
from broker_sim.metadata.image import BrokerState, MetadataImage, PartitionState, ScramCredential, TopicState
from broker_sim.metadata.quota_entity import QuotaEntity
from broker_sim.metadata.topic_partition import TopicPartition


class MetadataDelta:
    """Changes on top of `base`; its reads return the changed state, `apply` returns the next image.

    A dictionary is copied on the first write to it, a topic's partitions on the first write to one
    of them.
    """

    __slots__ = (
        "_acls",
        "_broker_configs",
        "_brokers",
        "_client_quotas",
        "_delegation_tokens",
        "_features",
        "_partitions",
        "_resource_configs",
        "_scram",
        "_topic_names",
        "_topics",
        "_written",
        "base",
    )

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self._brokers: dict[int, BrokerState] | None = None
        self._topics: dict[str, TopicState] | None = None
        self._topic_names: dict[bytes, str] | None = None
        self._partitions: dict[str, list[PartitionState]] = {}
        self._written: set[str] = set()
        self._broker_configs: dict[str, Mapping[str, str]] | None = None
        self._resource_configs: dict[tuple[int, str], Mapping[str, str]] | None = None
        self._features: Mapping[str, int] | None = None
        self._scram: dict[str, Mapping[int, ScramCredential]] | None = None
        self._client_quotas: dict[QuotaEntity, Mapping[str, float]] | None = None
        self._acls: Acls | None = None
        self._delegation_tokens: dict[str, DelegationToken] | None = None

    @property
    def brokers(self) -> Mapping[int, BrokerState]:
        """The brokers with the changes so far."""
        return self.base.brokers if self._brokers is None else self._brokers

    @property
    def broker_configs(self) -> Mapping[str, Mapping[str, str]]:
        """The dynamic broker configurations with the changes so far."""
        return self.base.broker_configs if self._broker_configs is None else self._broker_configs

    @property
    def resource_configs(self) -> Mapping[tuple[int, str], Mapping[str, str]]:
        """The configurations of groups and subscriptions with the changes so far."""
        own = self._resource_configs
        return self.base.resource_configs if own is None else own

    @property
    def scram(self) -> Mapping[str, Mapping[int, ScramCredential]]:
        """The SCRAM credentials with the changes so far."""
        return self.base.scram if self._scram is None else self._scram

    @property
    def client_quotas(self) -> Mapping[QuotaEntity, Mapping[str, float]]:
        """The client quotas with the changes so far."""
        return self.base.client_quotas if self._client_quotas is None else self._client_quotas

    @property
    def delegation_tokens(self) -> Mapping[str, DelegationToken]:
        """The delegation tokens with the changes so far."""
        own = self._delegation_tokens
        return self.base.delegation_tokens if own is None else own

    @property
    def acls(self) -> Acls:
        """The ACLs with the changes so far."""
        return self.base.acls if self._acls is None else self._acls

    @property
    def _current_topics(self) -> Mapping[str, TopicState]:
        """The topics with the changes so far, except changes of single partitions."""
        return self.base.topics if self._topics is None else self._topics

    def has_topic(self, name: str) -> bool:
        """Return whether the topic exists after the changes so far."""
        return name in self._current_topics

    def topic(self, name: str) -> TopicState | None:
        """Return the topic with the changes so far, or None."""
        topic = self._current_topics.get(name)
        partitions = self._partitions.get(name)
        if topic is None or partitions is None:
            return topic
        return topic._replace(partitions=tuple(partitions))

    def topic_head(self, name: str) -> TopicState | None:
        """Return the topic with its id and configurations, without copying its partitions, or None.

        Its partitions may be out of date.
        """
        return self._current_topics.get(name)

    def all_topics(self) -> list[TopicState]:
        """Return all topics with the changes so far."""
        if not self._partitions:
            return list(self._current_topics.values())
        return [self.topic(name) or topic for name, topic in self._current_topics.items()]

    def topic_by_id(self, topic_id: bytes) -> TopicState | None:
        """Return the topic with that id and the changes so far, or None."""
        name = self.topic_name(topic_id)
        return None if name is None else self.topic(name)

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with that id, or None."""
        names = self.base.topic_names if self._topic_names is None else self._topic_names
        return names.get(topic_id)

    def partition(self, topic: str, partition: int) -> PartitionState | None:
        """Return the partition with the changes so far, or None."""
        partitions = self._partitions.get(topic)
        if partitions is not None:
            return partitions[partition] if 0 <= partition < len(partitions) else None
        state = self._current_topics.get(topic)
        return None if state is None else state.partition(partition)

    def set_broker(self, broker: BrokerState) -> None:
        """Register the broker or replace its state."""
        if self._brokers is None:
            self._brokers = dict(self.base.brokers)
        self._brokers[broker.broker_id] = broker

    def remove_broker(self, broker_id: int) -> None:
        """Unregister the broker. Raises KeyError if it is not registered."""
        brokers = dict(self.brokers)
        del brokers[broker_id]
        self._brokers = brokers

    @property
    def features(self) -> Mapping[str, int]:
        """The finalized levels of features with the changes so far."""
        return self.base.features if self._features is None else self._features

    def set_features(self, levels: Mapping[str, int]) -> None:
        """Replace the finalized levels of all features."""
        self._features = levels

    def set_topic(self, topic: TopicState) -> None:
        """Create the topic or replace it completely."""
        topics, names = self._writable_topics(topic.name)
        self._partitions.pop(topic.name, None)
        topics[topic.name] = topic
        names[topic.topic_id] = topic.name

    def remove_topic(self, name: str) -> None:
        """Delete the topic. Raises KeyError if it is unknown."""
        topics, names = self._writable_topics(name)
        self._partitions.pop(name, None)
        del names[topics.pop(name).topic_id]

    def set_topic_configs(self, name: str, configs: Mapping[str, str]) -> None:
        """Replace the configurations of a topic. Raises KeyError if it is unknown."""
        topics, _ = self._writable_topics(name)
        topics[name] = topics[name]._replace(configs=dict(configs))

    def set_partition(self, topic: str, partition: int, state: PartitionState) -> None:
        """Replace one partition, or append the topic's next one.

        Raises KeyError if the topic is unknown.
        """
        topics, _ = self._writable_topics(topic)
        partitions = self._partitions.get(topic)
        if partitions is None:
            partitions = self._partitions[topic] = list(topics[topic].partitions)
        if partition == len(partitions):
            partitions.append(state)
        else:
            partitions[partition] = state

    def set_broker_configs(self, entity: str, configs: Mapping[str, str]) -> None:
        """Replace the dynamic configurations of all brokers (`""`) or of one broker id."""
        if self._broker_configs is None:
            self._broker_configs = dict(self.base.broker_configs)
        if configs:
            self._broker_configs[entity] = dict(configs)
        else:
            self._broker_configs.pop(entity, None)

    def set_resource_configs(self, type_code: int, name: str, configs: Mapping[str, str]) -> None:
        """Replace the configurations of a group or a client metrics subscription."""
        if self._resource_configs is None:
            self._resource_configs = dict(self.base.resource_configs)
        if configs:
            self._resource_configs[type_code, name] = dict(configs)
        else:
            self._resource_configs.pop((type_code, name), None)

    def set_scram_credentials(self, user: str, credentials: Mapping[int, ScramCredential]) -> None:
        """Replace the SCRAM credentials of a user; an empty mapping removes the user."""
        if self._scram is None:
            self._scram = dict(self.base.scram)
        if credentials:
            self._scram[user] = credentials
        else:
            self._scram.pop(user, None)

    def set_client_quotas(self, entity: QuotaEntity, quotas: Mapping[str, float]) -> None:
        """Replace the quotas of an entity; an empty mapping removes the entity."""
        if self._client_quotas is None:
            self._client_quotas = dict(self.base.client_quotas)
        if quotas:
            self._client_quotas[entity] = dict(quotas)
        else:
            self._client_quotas.pop(entity, None)

    def set_delegation_token(self, token: DelegationToken) -> None:
        """Add the token or replace it."""
        self._writable_tokens()[token.token_id] = token

    def remove_delegation_token(self, token_id: str) -> None:
        """Remove the token. Raises KeyError if it is unknown."""
        del self._writable_tokens()[token_id]

    def change_acls(self, added: Iterable[Acl], removed: Iterable[Acl]) -> None:
        """Remove and add ACLs."""
        self._acls = self.acls.with_changes(added, removed)

    @property
    def is_empty(self) -> bool:
        """Whether there are no changes."""
        return (
            self._brokers is None
            and self._topics is None
            and self._broker_configs is None
            and self._resource_configs is None
            and self._features is None
            and self._scram is None
            and self._client_quotas is None
            and self._acls is None
            and self._delegation_tokens is None
        )

    def apply(self) -> MetadataImage:
        """Return the next image, with the next version; the base itself if there are no changes.

        Call it once, after all writes: the image then owns the copies.
        """
        if self.is_empty:
            return self.base
        if self._topics is not None:
            for name, partitions in self._partitions.items():
                self._topics[name] = self._topics[name]._replace(partitions=tuple(partitions))
            self._partitions.clear()
        base = self.base
        return replace(
            base,
            version=base.version + 1,
            brokers=self.brokers,
            topics=self._current_topics,
            topic_names=base.topic_names if self._topic_names is None else self._topic_names,
            broker_configs=self.broker_configs,
            resource_configs=self.resource_configs,
            features=self.features,
            scram=self.scram,
            client_quotas=self.client_quotas,
            acls=self.acls,
            delegation_tokens=self.delegation_tokens,
            written_topics=frozenset(self._written),
        )

    def _writable_tokens(self) -> dict[str, DelegationToken]:
        if self._delegation_tokens is None:
            self._delegation_tokens = dict(self.base.delegation_tokens)
        return self._delegation_tokens

    def _writable_topics(self, name: str) -> tuple[dict[str, TopicState], dict[bytes, str]]:
        self._written.add(name)
        if self._topics is None or self._topic_names is None:
            self._topics = dict(self.base.topics)
            self._topic_names = dict(self.base.topic_names)
        return self._topics, self._topic_names


class ImageChanges(NamedTuple):
    """Differences between two images, for a broker that applies them.

    A topic that was deleted and recreated is in `deleted_topics` with its old state, and all its new
    partitions are in `partitions`.
    """

    deleted_topics: tuple[TopicState, ...]
    partitions: tuple[tuple[TopicPartition, TopicState, PartitionState], ...]
    topics_with_new_configs: tuple[TopicState, ...]
    broker_configs_changed: bool


def changes_between(old: MetadataImage, new: MetadataImage) -> ImageChanges:
    """Return the changes from `old` to `new`; mirrors `TopicsDelta` and its siblings.

    Costs one identity test per topic, unless `new` is the next version and wrote a single topic, and one
    per partition of the changed topics.
    """
    deleted_topics: list[TopicState] = []
    partitions: list[tuple[TopicPartition, TopicState, PartitionState]] = []
    topics_with_new_configs: list[TopicState] = []
    if old.topics is not new.topics:
        old_topics, new_topics = _topics_to_compare(old, new)
        for name, old_topic in old_topics.items():
            new_topic = new.topics.get(name)
            if new_topic is None or new_topic.topic_id != old_topic.topic_id:
                deleted_topics.append(old_topic)
        for name, topic in new_topics.items():
            previous = old.topics.get(name)
            if previous is topic:
                continue
            if previous is not None and previous.topic_id != topic.topic_id:
                previous = None
            old_partitions = () if previous is None else previous.partitions
            for number, state in enumerate(topic.partitions):
                if number >= len(old_partitions) or old_partitions[number] is not state:
                    partitions.append((TopicPartition(name, number), topic, state))
            if previous is not None and previous.configs != topic.configs:
                topics_with_new_configs.append(topic)
    return ImageChanges(
        deleted_topics=tuple(deleted_topics),
        partitions=tuple(partitions),
        topics_with_new_configs=tuple(topics_with_new_configs),
        broker_configs_changed=old.broker_configs is not new.broker_configs,
    )


def _topics_to_compare(
    old: MetadataImage, new: MetadataImage
) -> tuple[Mapping[str, TopicState], Mapping[str, TopicState]]:
    """Return the topics of both images that may differ, in image order.

    Otherwise creating a thousand topics one by one would take half a million comparisons.
    """
    if old.version + 1 != new.version or new.written_topics is None or len(new.written_topics) != 1:
        return old.topics, new.topics
    (name,) = new.written_topics
    return _only(name, old.topics), _only(name, new.topics)


def _only(name: str, topics: Mapping[str, TopicState]) -> Mapping[str, TopicState]:
    topic = topics.get(name)
    return {} if topic is None else {name: topic}
