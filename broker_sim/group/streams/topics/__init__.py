"""The partition counts of a topology's topics, and the missing internal topics."""

from __future__ import annotations

from broker_sim.group.streams.topics.configured_topology import (
    ConfiguredInternalTopic,
    ConfiguredSubtopology,
    ConfiguredTopology,
    TopicConfigurationError,
    endpoint_to_partitions,
)
from broker_sim.group.streams.topics.internal_topic_manager import configure_topics

__all__ = [
    "ConfiguredInternalTopic",
    "ConfiguredSubtopology",
    "ConfiguredTopology",
    "TopicConfigurationError",
    "configure_topics",
    "endpoint_to_partitions",
]
