"""The topics and partitions in a request, for the APIs that answer by partition or by topic.

A fault can be narrowed to a topic or partition for these APIs, and their handlers call
`context.faults.error_for` for each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.fetch_session import INITIAL_EPOCH
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.api_keys import ApiKey, request_class
from broker_sim.share.session.share_session import ShareSessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from broker_sim.handlers.context import RequestContext
    from broker_sim.protocol import messages

NO_PARTITION = -1
GROUP_FIELDS: Final = ("group_id", "group_ids", "groups", "groups_names")
"""Request fields that have group ids, or lists of structs with them."""
TRANSACTION_FIELDS: Final = (
    "transactional_id",
    "transactional_ids",
    "transactions",
    "v3_and_below_transactional_id",
)
"""Request fields that have transactional ids, or lists of structs with them."""
GROUP_KEY, TRANSACTION_KEY = 0, 1
"""Values of FindCoordinator's `key_type`."""


def names_any(api: ApiKey, fields: Iterable[str]) -> bool:
    """Whether requests of the API have one of these fields, or coordinator keys."""
    of_request = {field.name for field in request_class(api).SPEC.root.fields}
    return api is ApiKey.FIND_COORDINATOR or not of_request.isdisjoint(fields)


def named_in(request: Any, fields: Iterable[str], key_type: int) -> set[str]:
    """Return the group or transactional ids in these fields of a request."""
    if request.API_KEY == ApiKey.FIND_COORDINATOR:
        return {request.key, *request.coordinator_keys} if request.key_type == key_type else set()
    names: set[str] = set()
    for value in (getattr(request, field) for field in fields if hasattr(request, field)):
        for each in value if isinstance(value, list) else [value]:
            inner = (getattr(each, field) for field in fields if hasattr(each, field))
            names.update([each] if isinstance(each, str) else inner)
    return names


def targets_of(request: Any, context: RequestContext) -> list[TopicPartition]:
    """Return the partitions in a request, or its topics with the partition -1.

    The topic is "" for an unknown topic id. Empty for an API that answers for the request as a whole.
    """
    api = context.api_key
    if api in PARTITIONS:
        return list(PARTITIONS[api](request, context))
    if api in TOPICS:
        return [TopicPartition(name, NO_PARTITION) for name in TOPICS[api](request, context)]
    return []


def _name_of(topic_id: bytes, context: RequestContext) -> str:
    return context.broker.image.topic_names.get(topic_id, "")


def _produce(request: messages.ProduceRequest, context: RequestContext) -> Iterator[TopicPartition]:
    for topic in request.topic_data:
        name = topic.name or _name_of(topic.topic_id, context)
        for partition in topic.partition_data:
            yield TopicPartition(name, partition.index)


def _fetch(request: messages.FetchRequest, context: RequestContext) -> Iterator[TopicPartition]:
    for topic in request.topics:
        name = topic.topic or _name_of(topic.topic_id, context)
        for partition in topic.partitions:
            yield TopicPartition(name, partition.partition)
    session = context.broker.fetch_manager.cache.find(request.session_id)
    if session is None or request.session_epoch <= INITIAL_EPOCH:
        return
    # An incremental fetch is for all partitions of its session, except those that it forgets.
    forgotten = {
        (topic.topic_id if session.uses_topic_ids else topic.topic, number)
        for topic in request.forgotten_topics_data
        for number in topic.partitions
    }
    for cached in session:
        if cached.key not in forgotten:
            yield TopicPartition(cached.topic, cached.key[1])


def _share_fetch(request: messages.ShareFetchRequest, context: RequestContext) -> Iterator[TopicPartition]:
    yield from _share_acknowledge(request, context)
    key = ShareSessionKey(request.group_id or "", request.member_id or "")
    session = context.broker.share_partitions.sessions.get(key)
    if session is None or request.share_session_epoch <= INITIAL_EPOCH:
        return
    forgotten = {(topic.topic_id, number) for topic in request.forgotten_topics_data for number in topic.partitions}
    for cached in session:
        if cached[:2] not in forgotten:
            yield cached.topic_partition


def _share_acknowledge(
    request: messages.ShareFetchRequest | messages.ShareAcknowledgeRequest, context: RequestContext
) -> Iterator[TopicPartition]:
    for topic in request.topics:
        name = _name_of(topic.topic_id, context)
        for partition in topic.partitions:
            yield TopicPartition(name, partition.partition_index)


def _describe_producers(request: messages.DescribeProducersRequest, _: RequestContext) -> Iterator[TopicPartition]:
    for topic in request.topics:
        for number in topic.partition_indexes:
            yield TopicPartition(topic.name, number)


def _by_index(
    request: messages.ListOffsetsRequest
    | messages.DeleteRecordsRequest
    | messages.OffsetDeleteRequest
    | messages.TxnOffsetCommitRequest,
    _: RequestContext,
) -> Iterator[TopicPartition]:
    for topic in request.topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition.partition_index)


def _offset_for_leader_epoch(
    request: messages.OffsetForLeaderEpochRequest, _: RequestContext
) -> Iterator[TopicPartition]:
    for topic in request.topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.topic, partition.partition)


def _offset_commit(request: messages.OffsetCommitRequest, context: RequestContext) -> Iterator[TopicPartition]:
    for topic in request.topics:
        name = topic.name or _name_of(topic.topic_id, context)
        for partition in topic.partitions:
            yield TopicPartition(name, partition.partition_index)


def _offset_fetch(request: messages.OffsetFetchRequest, context: RequestContext) -> Iterator[TopicPartition]:
    for topic in request.topics or ():
        for index in topic.partition_indexes:
            yield TopicPartition(topic.name, index)
    for group in request.groups:
        for requested_topic in group.topics or ():
            name = requested_topic.name or _name_of(requested_topic.topic_id, context)
            for index in requested_topic.partition_indexes:
                yield TopicPartition(name, index)


def _metadata(request: messages.MetadataRequest, context: RequestContext) -> Iterator[str]:
    # Null asks for all topics; in version 0, which has no null, an empty list does.
    if request.topics is None or (context.api_version == 0 and not request.topics):
        yield from context.broker.image.topics
    for topic in request.topics or ():
        yield topic.name or _name_of(topic.topic_id, context)


def _delete_topics(request: messages.DeleteTopicsRequest, context: RequestContext) -> Iterator[str]:
    yield from request.topic_names
    for topic in request.topics:
        yield topic.name or _name_of(topic.topic_id, context)


def _names_of_topics(
    request: messages.CreateTopicsRequest | messages.CreatePartitionsRequest, _: RequestContext
) -> Iterator[str]:
    for topic in request.topics:
        yield topic.name


PARTITIONS: Mapping[ApiKey, Callable[[Any, RequestContext], Iterator[TopicPartition]]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: _by_index,
    ApiKey.DELETE_RECORDS: _by_index,
    ApiKey.OFFSET_COMMIT: _offset_commit,
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.OFFSET_DELETE: _by_index,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    ApiKey.TXN_OFFSET_COMMIT: _by_index,
    ApiKey.DESCRIBE_PRODUCERS: _describe_producers,
    ApiKey.SHARE_FETCH: _share_fetch,
    ApiKey.SHARE_ACKNOWLEDGE: _share_acknowledge,
}
"""The APIs whose responses have an error for each partition."""

TOPICS: Mapping[ApiKey, Callable[[Any, RequestContext], Iterator[str]]] = {
    ApiKey.METADATA: _metadata,
    ApiKey.CREATE_TOPICS: _names_of_topics,
    ApiKey.CREATE_PARTITIONS: _names_of_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
}
"""The APIs whose responses have an error for each topic."""
