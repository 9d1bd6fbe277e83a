"""OffsetForLeaderEpoch (key 23), versions 2-4; mirrors `ReplicaManager.lastOffsetForLeaderEpoch`.

Behaviour:
* answers with the largest epoch up to the one asked for, and with the offset at which it ends
* epoch and offset are -1 where the leader knows no such epoch
* only the leader answers; FENCED_LEADER_EPOCH and UNKNOWN_LEADER_EPOCH tell a client with another
  current epoch

Version notes: 3 adds the replica id, 4 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError
from broker_sim.handlers.support.injected_error import raise_injected_error
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
                raise_injected_error(context, topic.topic, asked.partition)
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
