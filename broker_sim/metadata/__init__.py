"""The cluster's metadata: immutable images and the changes between them."""

from broker_sim.metadata.delta import ImageChanges, MetadataDelta, changes_between
from broker_sim.metadata.image import (
    GROUP_RESOURCE,
    NO_LEADER,
    NO_TOPIC_ID,
    BrokerState,
    MetadataImage,
    PartitionState,
    ScramCredential,
    TopicState,
)
from broker_sim.metadata.scram import SCRAM_MECHANISMS, ScramMechanism

__all__ = [
    "GROUP_RESOURCE",
    "NO_LEADER",
    "NO_TOPIC_ID",
    "SCRAM_MECHANISMS",
    "BrokerState",
    "ImageChanges",
    "MetadataDelta",
    "MetadataImage",
    "PartitionState",
    "ScramCredential",
    "ScramMechanism",
    "TopicState",
    "changes_between",
]
