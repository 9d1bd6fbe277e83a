"""OffsetForLeaderEpoch (key 23), versions 2-4; mirrors ``ReplicaManager.lastOffsetForLeaderEpoch``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext

__all__ = ["handle_offset_for_leader_epoch"]


def handle_offset_for_leader_epoch(
    request: messages.OffsetForLeaderEpochRequest,
    context: RequestContext,
    respond: Callable[[messages.OffsetForLeaderEpochResponse], None],
) -> None:
    """Tell where each leader epoch asked for ends in the leader's log."""
    response = messages.OffsetForLeaderEpochResponse()
    for topic in request.topics:
        result = messages.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(result)
        for asked in topic.partitions:
            answer = messages.OffsetForLeaderEpochResponse.EpochEndOffset(partition=asked.partition)
            result.partitions.append(answer)
            try:
                partition = context.broker.replica_manager.get_partition(
                    TopicPartition(topic.topic, asked.partition)
                )
                partition.local_log(asked.current_leader_epoch, require_leader=True)
            except ApiError as error:
                answer.error_code = error.error_code
            else:
                answer.leader_epoch, answer.end_offset = partition.end_offset_for_epoch(
                    asked.leader_epoch
                )
    respond(response)
