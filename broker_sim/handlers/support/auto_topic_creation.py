"""Topics created automatically for a client's request; mirrors `AutoTopicCreationManager`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.controller import CreatableTopic
from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.forwarding import forward
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from broker_sim.config import BrokerConfig
    from broker_sim.controller import Outcome
    from broker_sim.handlers.context import BrokerServices

log = get_logger(__name__)

CREATE_TIMEOUT_MS: Final = 30_000


def create_coordinators_topic(name: str, broker: BrokerServices) -> None:
    """Create the topic at the controller; log a warning if that fails, because clients only see retriable errors."""
    topic = creatable_topic(name, broker.config)

    def tell(outcome: Outcome) -> None:
        if outcome.ok or outcome.error_code is ErrorCode.TOPIC_ALREADY_EXISTS:
            return
        log.bind(broker.clock, node=f"broker-{broker.broker_id}").warning(
            "topic_not_created", topic=topic.name, error=outcome.error_code.name, reason=outcome.error_message
        )

    forward(
        broker,
        CREATE_TIMEOUT_MS,
        lambda controller: controller.create_topics([topic], validate_only=False),
        lambda results: tell(results[0].outcome),
        tell,
    )


def creatable_topic(name: str, config: BrokerConfig) -> CreatableTopic:
    """Return the topic with this broker's settings, which differ for coordinators' topics."""
    if name == GROUP_METADATA_TOPIC:
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
    if name == TRANSACTION_STATE_TOPIC:
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
    if name == SHARE_GROUP_STATE_TOPIC:
        return CreatableTopic(
            name,
            config.share_coordinator_state_topic_num_partitions,
            config.share_coordinator_state_topic_replication_factor,
            configs={
                "cleanup.policy": "delete",
                "compression.type": "producer",
                "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
                "min.insync.replicas": str(config.share_coordinator_state_topic_min_isr),
                "retention.ms": "-1",
            },
        )
    return CreatableTopic(name, config.num_partitions, config.default_replication_factor)
