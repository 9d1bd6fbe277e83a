"""The newest metadata that one broker has received; mirrors `KRaftMetadataCache`."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from broker_sim.config import applicable, override_topic_config, topic_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.config import BrokerConfig, TopicConfig
    from broker_sim.metadata.image import MetadataImage, TopicState
    from broker_sim.metadata.topic_partition import TopicPartition

NO_CONFIGS: Final[Mapping[str, str]] = MappingProxyType({})


class MetadataCache:
    """The broker's current metadata image, with the lookups that its partitions need.

    The broker replaces `image` when it receives a newer one.
    """

    def __init__(self, broker_id: int, config: BrokerConfig, image: MetadataImage) -> None:
        self._broker_id = broker_id
        self._config = config
        self.image = image
        self._dynamic_configs: object = None
        self._topic_defaults = topic_defaults(config)

    def is_known(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition exists in the cluster."""
        return self.image.partition(topic_partition) is not None

    def is_hosted(self, topic_partition: TopicPartition, topic_id: bytes) -> bool:
        """Whether the topic still has that id, and this broker is a replica of the partition."""
        topic = self.image.topics.get(topic_partition.topic)
        state = self.image.partition(topic_partition)
        return (
            topic is not None and topic.topic_id == topic_id and state is not None and self._broker_id in state.replicas
        )

    def is_alive(self, broker_id: int) -> bool:
        """Whether the broker is registered and unfenced."""
        return self.image.alive_broker(broker_id) is not None

    def rack_of(self, broker_id: int) -> str | None:
        """Return the rack of a live broker; None if it has no rack or is not alive."""
        broker = self.image.alive_broker(broker_id)
        return None if broker is None else broker.rack

    def is_isr_eligible(self, broker_id: int, stored_epoch: int | None) -> bool:
        """Whether the broker may join an ISR: active, and in the epoch in which it fetched (KIP-841)."""
        broker = self.image.brokers.get(broker_id)
        return (
            broker is not None and broker.is_active and stored_epoch is not None and stored_epoch in (-1, broker.epoch)
        )

    def is_stale_epoch(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether the live broker has registered again since `broker_epoch` (-1: unknown)."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and not broker.fenced and -1 != broker_epoch < broker.epoch

    def broker_config(self) -> BrokerConfig:
        """Return the broker's configuration, with dynamic configurations applied."""
        return self._config.with_dynamic(self.dynamic_configs())

    def dynamic_configs(self) -> dict[str, str]:
        """Return the valid dynamic configurations of this broker, including the cluster-wide ones."""
        image = self.image
        return applicable(self._config, image.dynamic_cluster_configs(), image.dynamic_broker_configs(self._broker_id))

    def configs_of_topic(self, topic: str) -> Mapping[str, str]:
        """Return the configurations set on the topic; empty for an unknown topic."""
        state = self.image.topics.get(topic)
        return NO_CONFIGS if state is None else state.configs

    def topic_config(self, topic: TopicState) -> TopicConfig:
        """Return the topic's effective configuration on this broker."""
        if self._dynamic_configs is not self.image.broker_configs:
            self._dynamic_configs = self.image.broker_configs
            self._topic_defaults = topic_defaults(self.broker_config())
        return override_topic_config(self._topic_defaults, topic.configs)
