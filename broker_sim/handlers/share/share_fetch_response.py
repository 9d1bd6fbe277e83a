"""How a response to a share fetch is put together; see `share_fetch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.leader_hint import HINTED_ERRORS, LeaderHints
from broker_sim.hash_order.hash_codes import integer_hash, uuid_hash
from broker_sim.hash_order.scala_order import mutable_map_order
from broker_sim.metadata.topic_partition import by_topic
from broker_sim.protocol import messages
from broker_sim.protocol.codec import encode, encoded_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata.topic_partition import TopicIdPartition
    from broker_sim.share.partition.share_fetch import SharePartitionData
    from broker_sim.share.session.share_session import ShareFetchContext

    Fetched = Mapping[TopicIdPartition, SharePartitionData]
    Acknowledged = Mapping[TopicIdPartition, ApiError | None]
    Answers = dict[TopicIdPartition, messages.ShareFetchResponse.PartitionData]

SIZE_BYTES: Final = 4
"""What Kafka counts for the size before a frame."""


def response_bytes(context: RequestContext, session: ShareFetchContext, fetched: Fetched) -> int:
    """Return what the answer would have, without the session hearing of it."""
    news = {} if session.has_moved_on else session.in_response(fetched)
    answers = {partition: _partition_data(partition, data) for partition, data in news.items()}
    response = messages.ShareFetchResponse(responses=_topics(answers))
    return SIZE_BYTES + encoded_size(encode(response, context.api_version))


def throttled(
    context: RequestContext, request: messages.ShareFetchRequest, session: ShareFetchContext, acknowledged: Acknowledged
) -> messages.ShareFetchResponse:
    """Answer with what became of the acknowledgements; the session does not move on."""
    response = _empty(context, request, session)
    response.responses = _topics(_with_acknowledged({}, acknowledged))
    return response


def build_response(
    context: RequestContext,
    request: messages.ShareFetchRequest,
    session: ShareFetchContext,
    fetched: Fetched,
    acknowledged: Acknowledged,
    topic_names: Mapping[bytes, str],
) -> messages.ShareFetchResponse:
    """Answer all that the member must be told of, with the leaders where this broker is not the leader.

    `topic_names` are those of when the request came. Kafka fails to count the bytes of a topic that was not there.
    """
    response = _empty(context, request, session)
    hints = LeaderHints(context.broker.image, context.listener)
    answers: Answers = {}
    if not session.has_moved_on:
        for partition, data in session.update(fetched).items():
            if partition.topic_id not in topic_names:
                return messages.ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
            answer = answers[partition] = _partition_data(partition, data)
            if data.error_code in HINTED_ERRORS:
                hints.add(partition.topic_partition, answer.current_leader)
    response.responses = _topics(_with_acknowledged(answers, acknowledged))
    response.node_endpoints = [messages.ShareFetchResponse.NodeEndpoint(*endpoint) for endpoint in hints.endpoints()]
    return response


def _empty(
    context: RequestContext, request: messages.ShareFetchRequest, session: ShareFetchContext
) -> messages.ShareFetchResponse:
    """Return an answer without partitions; another request may have continued the session."""
    settings = context.broker.share_partitions.settings
    return messages.ShareFetchResponse(
        error_code=(ErrorCode.INVALID_SHARE_SESSION_EPOCH if session.has_moved_on else ErrorCode.NONE),
        acquisition_lock_timeout_ms=settings.record_lock_duration_ms(request.group_id or ""),
    )


def _partition_data(partition: TopicIdPartition, data: SharePartitionData) -> messages.ShareFetchResponse.PartitionData:
    """Return the answer for one partition; Kafka gives no texts of errors here."""
    response = messages.ShareFetchResponse
    return response.PartitionData(
        partition_index=partition.partition,
        error_code=data.error_code,
        records=data.records,
        acquired_records=[response.AcquiredRecords(*one) for one in data.acquired],
    )


def _with_acknowledged(answers: Answers, acknowledged: Acknowledged) -> Answers:
    """Add what became of the acknowledgements; a partition may have nothing else to be told."""
    for partition in _in_map_order(acknowledged):
        error = acknowledged[partition]
        answer = answers.get(partition)
        if answer is None:
            answer = answers[partition] = messages.ShareFetchResponse.PartitionData(
                partition_index=partition.partition, records=()
            )
        if error is not None:
            answer.acknowledge_error_code = error.error_code
            answer.acknowledge_error_message = error.error_message
    return answers


def _in_map_order(partitions: Iterable[TopicIdPartition]) -> Iterator[TopicIdPartition]:
    """Yield partitions as Kafka's map of topics does, whose partitions are in maps of their own."""
    topics = by_topic((partition.topic_id, partition) for partition in partitions)
    for topic_id in mutable_map_order(topics, uuid_hash):
        yield from mutable_map_order(topics[topic_id], lambda one: integer_hash(one.partition))


def _topics(answers: Answers) -> list[messages.ShareFetchResponse.ShareFetchableTopicResponse]:
    topics = by_topic((partition.topic_id, answer) for partition, answer in answers.items())
    return [messages.ShareFetchResponse.ShareFetchableTopicResponse(*topic) for topic in topics.items()]
