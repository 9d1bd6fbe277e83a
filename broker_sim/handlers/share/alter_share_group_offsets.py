"""AlterShareGroupOffsets (key 91), version 0; mirrors `KafkaApis.handleAlterShareGroupOffsetsRequest`.

Behaviour:
* share partitions of a group without members restart at the offsets of the request
* a group that does not exist is created; a group of another kind is GROUP_ID_NOT_FOUND
* topics that the client may not read, or that do not exist, fail alone, with each of their partitions
* a negative partition fails the whole request
* answered once the share coordinator has the new state
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.handlers.share.checks import group_error
from broker_sim.handlers.support.authorization import unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata import TopicState

Response = messages.AlterShareGroupOffsetsResponse
Topic = Response.AlterShareGroupOffsetsResponseTopic
Row = Response.AlterShareGroupOffsetsResponsePartition


def handle_alter_share_group_offsets(
    request: messages.AlterShareGroupOffsetsRequest,
    context: RequestContext,
    respond: Callable[[messages.AlterShareGroupOffsetsResponse], None],
) -> None:
    """Set the offsets of the topics that exist and that the client may read."""

    def fail(code: ErrorCode, text: str | None) -> None:
        respond(Response(error_code=code, error_message=text))

    error_code = group_error(context, AclOperation.READ, request.group_id)
    if error_code:
        fail(error_code, ERROR_TEXTS.get(error_code))
        return
    topics = context.broker.image.topics
    names = [topic.topic_name for topic in request.topics]
    denied = unauthorized_names(context, AclOperation.READ, ResourceType.TOPIC, names)
    answered_topics = _AnsweredTopics(topics)
    altered_topics = []
    for topic in request.topics:
        name = topic.topic_name
        if name in denied:
            answered_topics.refuse(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif name not in topics:
            answered_topics.refuse(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            altered_topics.append(topic)

    def altered(response: messages.AlterShareGroupOffsetsResponse) -> None:
        for topic in response.responses:
            answered_topics.get(topic.topic_name).partitions += topic.partitions
        response.responses = answered_topics.topics()
        respond(response)

    def failed(error: ApiError) -> None:
        fail(error.error_code, error.error_message or ERROR_TEXTS.get(error.error_code))

    context.broker.groups.shares.alter_offsets(
        messages.AlterShareGroupOffsetsRequest(request.group_id, altered_topics), altered, failed
    )


class _AnsweredTopics:
    """The topics of a response; a topic that is in the request twice is answered once."""

    __slots__ = ("_answers", "_existing")

    def __init__(self, existing: Mapping[str, TopicState]) -> None:
        self._existing = existing
        self._answers: dict[str, messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = {}

    def topics(self) -> list[messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic]:
        """Return the answers for all topics."""
        return list(self._answers.values())

    def get(self, name: str) -> messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic:
        """Return the answer for a topic; it has the id of an existing topic even if the client may not read it."""
        if name not in self._answers:
            self._answers[name] = Topic(name)
            if name in self._existing:
                self._answers[name].topic_id = self._existing[name].topic_id
        return self._answers[name]

    def refuse(
        self, topic: messages.AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic, code: ErrorCode
    ) -> None:
        """Answer each partition of a topic with the error; a topic without partitions has no answer."""
        text = ERROR_TEXTS[code]
        for partition in topic.partitions:
            self.get(topic.topic_name).partitions.append(Row(partition.partition_index, code, text))
