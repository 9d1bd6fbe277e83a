"""The topics of the coordinators when a cluster is reset; Kafka has no counterpart.

They stay, without groups and transactions. A client that finds no coordinator asks again only after a
while, librdkafka after a second; each test with a consumer would wait that long for a topic to be made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.controller import CreatableTopic
from broker_sim.handlers.support.auto_topic_creation import creatable_topic
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection, Container

    from broker_sim.broker.broker import Broker
    from broker_sim.config import BrokerConfig
    from broker_sim.metadata import MetadataImage, TopicState

_TOPICS: Final = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC)


def emptied_topics(
    brokers: Collection[Broker], image: MetadataImage, config: BrokerConfig, others: Container[str]
) -> tuple[list[str], list[CreatableTopic]]:
    """Return which coordinators' topics that are there may stay, and which are to be made anew.

    Those that nobody has used stay: to make 50 partitions anew takes 15 ms. `others` are not looked at.
    """
    kept, anew = [], []
    for name in _TOPICS:
        topic = image.topics.get(name)
        if topic is None or name in others:
            continue
        configs = creatable_topic(name, config).configs
        if topic.configs == configs and not _is_used(brokers, topic):
            kept.append(name)
            continue
        count, replicas = len(topic.partitions), len(topic.partitions[0].replicas)
        anew.append(CreatableTopic(name, count, replicas, configs=configs))
    return kept, anew


def _is_used(brokers: Collection[Broker], topic: TopicState) -> bool:
    """Whether a coordinator has written, or has a group that it has not written yet."""
    if topic.name == GROUP_METADATA_TOPIC and any(
        shard.groups for broker in brokers for shard in broker.groups.shards()
    ):
        return True
    keys = [TopicPartition(topic.name, number) for number in range(len(topic.partitions))]
    return any(
        key in partitions and partitions[key].log.log_end_offset
        for partitions in (broker.replica_manager.partitions for broker in brokers)
        for key in keys
    )
