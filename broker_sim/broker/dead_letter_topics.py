"""Serves the dead letters of share groups that brokers send to each other.

Mirrors how `KafkaApis` handles their Produce and CreateTopics requests: brokers are allowed both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.controller import CreatableTopic
from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.auto_topic_creation import CREATE_TIMEOUT_MS
from broker_sim.handlers.support.forwarding import forward
from broker_sim.protocol.special_values import ACKS_ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.controller import CreateTopicResult, Outcome
    from broker_sim.handlers.context import BrokerServices
    from broker_sim.metadata.topic_partition import TopicIdPartition, TopicPartition
    from broker_sim.replica import ProducePartitionStatus

APPEND_TIMEOUT_MS: Final = 30_000
_CONFIGS: Final[Mapping[str, str | None]] = {
    "errors.deadletterqueue.group.enable": "true",
    "message.timestamp.type": "CreateTime",
}


def append_dead_letters(
    broker: BrokerServices,
    batches: Mapping[TopicIdPartition, bytes],
    respond: Callable[[Mapping[TopicIdPartition, ErrorCode]], object],
) -> None:
    """Append to partitions that this broker leads; the error is UNKNOWN_TOPIC_ID for a deleted topic."""
    names = broker.image.topic_names
    current_batches = {key: batch for key, batch in batches.items() if names.get(key.topic_id) == key.topic}

    def appended(statuses: Mapping[TopicPartition, ProducePartitionStatus]) -> None:
        respond(
            {
                key: statuses[key.topic_partition].error_code if key in current_batches else ErrorCode.UNKNOWN_TOPIC_ID
                for key in batches
            }
        )

    entries = {key.topic_partition: batch for key, batch in current_batches.items()}
    broker.replica_manager.append_records(entries, appended, timeout_ms=APPEND_TIMEOUT_MS, required_acks=ACKS_ALL)


def create_dead_letter_topic(broker: BrokerServices, name: str, respond: Callable[[ErrorCode], object]) -> None:
    """Create the topic with the cluster's default partition count and replication factor."""

    def created(results: Sequence[CreateTopicResult]) -> None:
        respond(results[0].outcome.error_code)

    def refused(outcome: Outcome) -> None:
        respond(outcome.error_code)

    forward(
        broker,
        CREATE_TIMEOUT_MS,
        lambda controller: controller.create_topics([CreatableTopic(name, configs=_CONFIGS)], validate_only=False),
        created,
        refused,
    )
