"""The metadata of the cluster: immutable images and the changes between them."""

from broker_sim.metadata.delta import ImageChanges, MetadataDelta, changes_between
from broker_sim.metadata.image import (
    NO_LEADER,
    NO_TOPIC_ID,
    BrokerState,
    MetadataImage,
    PartitionState,
    ScramCredential,
    TopicState,
)

__all__ = [
    "NO_LEADER",
    "NO_TOPIC_ID",
    "BrokerState",
    "ImageChanges",
    "MetadataDelta",
    "MetadataImage",
    "PartitionState",
    "ScramCredential",
    "TopicState",
    "changes_between",
]
