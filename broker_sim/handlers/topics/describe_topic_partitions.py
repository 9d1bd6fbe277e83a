"""DescribeTopicPartitions (key 75), version 0 (KIP-966).

Mirrors `DescribeTopicPartitionsRequestHandler` and `KRaftMetadataCache.describeTopicResponse`.

Behaviour:
* topics are sorted by name
* `max.request.partition.size.limit` and the request limit the number of partitions; the next request
  continues at the cursor of the response
* without a cursor, an empty name fails the whole request with a server error
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.authorization import authorized_operations, unauthorized_names
from broker_sim.handlers.topics.metadata import offline_replicas
from broker_sim.metadata import NO_LEADER
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_name import invalid_topic_name, is_internal_topic
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata import MetadataImage, PartitionState, TopicState

Cursor = messages.DescribeTopicPartitionsResponse.Cursor
Topic = messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = messages.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition


def handle_describe_topic_partitions(
    request: messages.DescribeTopicPartitionsRequest,
    context: RequestContext,
    respond: Callable[[messages.DescribeTopicPartitionsResponse], None],
) -> None:
    """Describe the topics (all if none are listed) from the cursor on, up to the limit."""
    image = context.broker.image
    requested_names = {topic.name for topic in request.topics}
    cursor = request.cursor
    if cursor is not None and _is_invalid(cursor, requested_names):
        respond(_refused(request, ErrorCode.INVALID_REQUEST))
        return
    if cursor is None and "" in requested_names:
        respond(_refused(request, ErrorCode.UNKNOWN_SERVER_ERROR))
        return
    names = requested_names or image.topics.keys()
    if cursor is not None:
        names = {name for name in names if name >= cursor.topic_name}
    denied = unauthorized_names(context, AclOperation.DESCRIBE, ResourceType.TOPIC, sorted(names))
    limit = context.broker.config.max_request_partition_size_limit
    page_size = max(1, min(limit, request.response_partition_limit))
    page = _Page(context, page_size)
    for name in sorted(names - denied):
        start = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        if not page.add(name, start):
            break
    for topic in page.response.topics:
        topic.topic_authorized_operations = authorized_operations(context, ResourceType.TOPIC, topic.name or "")
    if requested_names:
        page.response.topics += [Topic(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name) for name in sorted(denied)]
    respond(page.response)


def _refused(
    request: messages.DescribeTopicPartitionsRequest, error_code: ErrorCode
) -> messages.DescribeTopicPartitionsResponse:
    topics = [Topic(error_code, topic.name) for topic in request.topics]
    return messages.DescribeTopicPartitionsResponse(topics=topics)


class _Page:
    """A response with at most `limit` partitions."""

    def __init__(self, context: RequestContext, limit: int) -> None:
        self._image = context.broker.image
        self._listener = context.listener
        self._remaining = limit
        self.response = messages.DescribeTopicPartitionsResponse()

    def add(self, name: str, start: int) -> bool:
        """Add a topic from partition `start` on; return False if the page is full and its cursor is set."""
        if self._remaining == 0:
            self.response.next_cursor = Cursor(name, 0)
            return False
        topic = self._image.topics.get(name)
        if topic is None:
            self.response.topics.append(_unknown_topic(name))
            return True
        states = topic.partitions[start : start + self._remaining]
        partitions = [
            _partition(self._image, number, state, self._listener) for number, state in enumerate(states, start)
        ]
        self.response.topics.append(_describe(topic, partitions))
        self._remaining -= len(states)
        end = start + len(states)
        if end < len(topic.partitions):
            self.response.next_cursor = Cursor(name, end)
            return False
        return True


def _is_invalid(cursor: messages.DescribeTopicPartitionsRequest.Cursor, requested_names: set[str]) -> bool:
    """Whether the cursor is outside the requested topics, or has a negative partition."""
    return cursor.partition_index < 0 or bool(requested_names and cursor.topic_name not in requested_names)


def _unknown_topic(name: str) -> Topic:
    valid = invalid_topic_name(name) is None
    return Topic(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name,
        is_internal=is_internal_topic(name),
    )


def _describe(topic: TopicState, partitions: list[Partition]) -> Topic:
    return Topic(ErrorCode.NONE, topic.name, topic.topic_id, is_internal_topic(topic.name), partitions)


def _partition(image: MetadataImage, number: int, state: PartitionState, listener: str) -> Partition:
    has_leader = image.alive_endpoint(state.leader, listener) is not None
    return Partition(
        partition_index=number,
        leader_id=state.leader if has_leader else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=list(state.replicas),
        isr_nodes=list(state.isr),
        eligible_leader_replicas=list(state.elr),
        last_known_elr=list(state.last_known_elr),
        offline_replicas=offline_replicas(image, state, listener),
    )
