"""AlterShareGroupOffsets (key 91), version 0; mirrors `KafkaApis.handleAlterShareGroupOffsetsRequest`.

Behaviour:
* share partitions of a group without members begin anew, at the offsets that are named
* a group that there is not is made; a group of another kind is GROUP_ID_NOT_FOUND
* topics that the client may not read, or that do not exist, fail by themselves, with each of their partitions
* a negative partition fails all of it
* answered once the share coordinator has the new state
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.handlers.share.share_group_refusal import share_group_refusal
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
    """Set the offsets of the topics that exist and may be read."""

    def fail(code: ErrorCode, text: str | None) -> None:
        respond(Response(error_code=code, error_message=text))

    read = AclOperation.READ
    refusal = share_group_refusal(context, read, request.group_id)
    if refusal:
        fail(refusal, ERROR_TEXTS.get(refusal))
        return
    names = [topic.topic_name for topic in request.topics]
    denied = unauthorized_names(context, read, ResourceType.TOPIC, names)
    topics = context.broker.image.topics
    told = _Told(topics)
    allowed = []
    for asked in request.topics:
        name = asked.topic_name
        if name in denied:
            told.refuse(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif name not in topics:
            told.refuse(asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            allowed.append(asked)

    def altered(response: messages.AlterShareGroupOffsetsResponse) -> None:
        for topic in response.responses:
            told.of(topic.topic_name).partitions += topic.partitions
        response.responses = told.all
        respond(response)

    def failed(error: ApiError) -> None:
        fail(error.error_code, error.error_message or ERROR_TEXTS.get(error.error_code))

    context.broker.groups.shares.alter_offsets(
        messages.AlterShareGroupOffsetsRequest(request.group_id, allowed), altered, failed
    )


class _Told:
    """What is told of each topic; one that the request names twice is told once."""

    __slots__ = ("_by_name", "_topics")

    def __init__(self, topics: Mapping[str, TopicState]) -> None:
        self._topics = topics
        self._by_name: dict[str, messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic] = {}

    @property
    def all(self) -> list[messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic]:
        return list(self._by_name.values())

    def of(self, name: str) -> messages.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic:
        """Return what is told of a topic, with its id if it is there, also one that may not be read."""
        if name not in self._by_name:
            self._by_name[name] = Topic(name)
            if name in self._topics:
                self._by_name[name].topic_id = self._topics[name].topic_id
        return self._by_name[name]

    def refuse(
        self, asked: messages.AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic, code: ErrorCode
    ) -> None:
        """Tell the error of each partition; without any, the topic is not told of."""
        text = ERROR_TEXTS[code]
        for partition in asked.partitions:
            self.of(asked.topic_name).partitions.append(Row(partition.partition_index, code, text))
