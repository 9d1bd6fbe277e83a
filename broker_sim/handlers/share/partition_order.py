"""The order of the partitions in answers to members, which is that of Scala's maps in `KafkaApis`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from broker_sim.hash_order.hash_codes import topic_id_partition_hash
from broker_sim.hash_order.scala_order import mutable_map_order, to_map_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.metadata.topic_partition import TopicIdPartition

Answer = TypeVar("Answer")


def in_mutable_map_order(answers: Mapping[TopicIdPartition, Answer]) -> dict[TopicIdPartition, Answer]:
    """Return the answers in the order of a map that is still being filled: of those that are all refused."""
    return {one: answers[one] for one in mutable_map_order(answers, _hash)}


def in_to_map_order(answers: Mapping[TopicIdPartition, Answer]) -> dict[TopicIdPartition, Answer]:
    """Return the answers in the order of a map that is done."""
    return {one: answers[one] for one in to_map_order(answers, _hash)}


def _hash(partition: TopicIdPartition) -> int:
    return topic_id_partition_hash(*partition)
