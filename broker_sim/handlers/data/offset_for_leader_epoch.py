"""OffsetForLeaderEpoch (key 23), versions 0-4; mirrors `ReplicaManager.lastOffsetForLeaderEpoch`.

Behaviour:
* returns the largest epoch up to the requested one, and its end offset
* epoch and offset are -1 if the leader has no such epoch
* only the leader answers; a client with another current leader epoch gets FENCED_LEADER_EPOCH or
  UNKNOWN_LEADER_EPOCH

Version notes: 3 adds the replica id, 4 is flexible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers.support.authorization import is_authorized, unauthorized_names
from broker_sim.handlers.support.partition_errors import raise_injected_error
from broker_sim.metadata.acl import CLUSTER_NAME, AclOperation, ResourceType
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext


def handle_offset_for_leader_epoch(
    request: messages.OffsetForLeaderEpochRequest,
    context: RequestContext,
    respond: Callable[[messages.OffsetForLeaderEpochResponse], None],
) -> None:
    """Answer with the end offset of each requested leader epoch in the leader's log."""
    response = messages.OffsetForLeaderEpochResponse()
    denied = _denied_topics(request, context)
    for topic in request.topics:
        result = messages.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(result)
        for epoch in topic.partitions:
            answer = messages.OffsetForLeaderEpochResponse.EpochEndOffset(partition=epoch.partition)
            result.partitions.append(answer)
            try:
                if topic.topic in denied:
                    raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)  # noqa: TRY301
                raise_injected_error(context, topic.topic, epoch.partition)
                partition = context.broker.replica_manager.get_partition(TopicPartition(topic.topic, epoch.partition))
                partition.local_log(epoch.current_leader_epoch, require_leader=True)
            except ApiError as error:
                answer.error_code = error.error_code
            else:
                answer.leader_epoch, answer.end_offset = partition.end_offset_for_epoch(epoch.leader_epoch)
    respond(response)


def _denied_topics(request: messages.OffsetForLeaderEpochRequest, context: RequestContext) -> AbstractSet[str]:
    """Return the topics that the client may not describe; a client with CLUSTER_ACTION may describe all."""
    operation, cluster = AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER
    if is_authorized(context, operation, cluster, CLUSTER_NAME, logs_denial=False):
        return frozenset()
    names = (topic.topic for topic in request.topics)
    return unauthorized_names(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
