"""Topics that are created because a client asked for them; mirrors `AutoTopicCreationManager`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.controller import CreatableTopic

if TYPE_CHECKING:
    from broker_sim.config import BrokerConfig

__all__ = ["creatable_topic"]


def creatable_topic(name: str, config: BrokerConfig) -> CreatableTopic:
    """Return the topic as this broker's configuration sets it, which has settings for coordinators' topics."""
    if name == "__consumer_offsets":
        return CreatableTopic(
            name,
            config.offsets_topic_num_partitions,
            config.offsets_topic_replication_factor,
            configs={
                "cleanup.policy": "compact",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
                "compression.type": "producer",
            },
        )
    if name == "__transaction_state":
        return CreatableTopic(
            name,
            config.transaction_state_log_num_partitions,
            config.transaction_state_log_replication_factor,
            configs={
                "unclean.leader.election.enable": "false",
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": str(config.transaction_state_log_min_isr),
                "segment.bytes": str(config.transaction_state_log_segment_bytes),
            },
        )
    return CreatableTopic(name, config.num_partitions, config.default_replication_factor)
