"""Answers that are only an error, made without the handler; mirrors ``AbstractRequest.getErrorResponse``.

For the APIs that answer partition by partition the request is split: the partitions that shall fail
leave it and become entries of the response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from broker_sim.protocol.api_keys import ApiKey, response_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.errors import ErrorCode
    from broker_sim.handlers.context import BrokerServices

    IsMeant = Callable[[str, int], bool]

__all__ = ["PARTITION_APIS", "can_fail_whole", "has_partitions", "names_partition", "split_off"]


class _Shape(NamedTuple):
    """Where an API's messages have their topics and partitions."""

    topics: str
    topic_name: str
    partitions: str
    number: str
    answered_topics: str
    answered_topic: str
    answered_partitions: str
    answered_partition: str
    answered_number: str


PARTITION_APIS = {
    ApiKey.PRODUCE: _Shape(
        topics="topic_data",
        topic_name="name",
        partitions="partition_data",
        number="index",
        answered_topics="responses",
        answered_topic="TopicProduceResponse",
        answered_partitions="partition_responses",
        answered_partition="PartitionProduceResponse",
        answered_number="index",
    ),
    ApiKey.FETCH: _Shape(
        topics="topics",
        topic_name="topic",
        partitions="partitions",
        number="partition",
        answered_topics="responses",
        answered_topic="FetchableTopicResponse",
        answered_partitions="partitions",
        answered_partition="PartitionData",
        answered_number="partition_index",
    ),
    ApiKey.LIST_OFFSETS: _Shape(
        topics="topics",
        topic_name="name",
        partitions="partitions",
        number="partition_index",
        answered_topics="topics",
        answered_topic="ListOffsetsTopicResponse",
        answered_partitions="partitions",
        answered_partition="ListOffsetsPartitionResponse",
        answered_number="partition_index",
    ),
}
"""The APIs that answer for each partition."""


def can_fail_whole(api: ApiKey) -> bool:
    """Whether the API's response has one error for all of it, in every version."""
    cls = response_class(api)
    return any(
        field.name == "error_code"
        and cls.MIN_VERSION in field.versions
        and cls.MAX_VERSION in field.versions
        for field in cls.SPEC.root.fields
    )


def has_partitions(api: ApiKey, request: Any) -> bool:
    """Whether the request is about any partition."""
    shape = PARTITION_APIS[api]
    return any(getattr(topic, shape.partitions) for topic in getattr(request, shape.topics))


def names_partition(broker: BrokerServices, api: ApiKey, request: Any, is_meant: IsMeant) -> bool:
    """Whether the request is about any partition that is meant."""
    shape = PARTITION_APIS[api]
    return any(
        is_meant(_name_of(broker, topic, shape), getattr(partition, shape.number))
        for topic in getattr(request, shape.topics)
        for partition in getattr(topic, shape.partitions)
    )


def split_off(
    broker: BrokerServices, api: ApiKey, request: Any, is_meant: IsMeant, error_code: ErrorCode
) -> Callable[[Any], None]:
    """Take the partitions that are meant out of the request.

    Returns a function that puts them, with the error, into the response about the rest.
    """
    shape = PARTITION_APIS[api]
    response = response_class(api)
    answers = []
    for topic in getattr(request, shape.topics):
        name = _name_of(broker, topic, shape)
        kept: list[Any] = []
        refused: list[Any] = []
        for partition in getattr(topic, shape.partitions):
            meant = is_meant(name, getattr(partition, shape.number))
            (refused if meant else kept).append(partition)
        if not refused:
            continue
        setattr(topic, shape.partitions, kept)
        answer = response.STRUCTS[shape.answered_topic]()
        for field in (shape.topic_name, "topic_id"):
            if hasattr(answer, field):
                setattr(answer, field, getattr(topic, field))
        getattr(answer, shape.answered_partitions).extend(
            _refusal(response.STRUCTS[shape.answered_partition], shape, partition, error_code)
            for partition in refused
        )
        answers.append(answer)
    setattr(
        request,
        shape.topics,
        [topic for topic in getattr(request, shape.topics) if getattr(topic, shape.partitions)],
    )
    return lambda message: getattr(message, shape.answered_topics).extend(answers)


def _refusal(struct: Any, shape: _Shape, partition: Any, error_code: ErrorCode) -> Any:
    refusal = struct(error_code=error_code)
    setattr(refusal, shape.answered_number, getattr(partition, shape.number))
    for offset in ("base_offset", "high_watermark"):
        if hasattr(refusal, offset):
            setattr(refusal, offset, -1)
    return refusal


def _name_of(broker: BrokerServices, topic: Any, shape: _Shape) -> str:
    """Return the topic's name, also where the request has only its id."""
    name: str = getattr(topic, shape.topic_name)
    return name or broker.image.topic_names.get(getattr(topic, "topic_id", b""), "")
