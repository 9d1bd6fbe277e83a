"""How a response to a fetch is put together; see `fetch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.fetch_session import next_epoch
from broker_sim.handlers.support.leader_hint import HINTED_ERRORS, LeaderHints
from broker_sim.protocol import messages
from broker_sim.replica import FetchPartition, FetchPartitionData

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker_sim.fetch_session import FetchSession, PartitionKey
    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata.topic_partition import TopicPartition

    Infos = list[tuple[TopicPartition, FetchPartition]]
    Results = Sequence[tuple[TopicPartition, FetchPartitionData]]

SESSION_VERSION: Final = 7
TOPIC_ID_VERSION: Final = 13
LEADER_HINT_VERSION: Final = 16
SESSION_ERRORS: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


class Refused(NamedTuple):
    """A partition that is not read; the topic is empty where no name is known for its id."""

    topic: str
    fetch: FetchPartition
    error_code: ErrorCode


def failed(request: messages.FetchRequest, version: int, error_code: ErrorCode) -> messages.FetchResponse:
    """Answer a request that fails as a whole.

    What is wrong with a session is said without one. Otherwise, before topic ids, each partition of
    the request is answered too.
    """
    response = messages.FetchResponse()
    if version >= SESSION_VERSION:
        response.error_code = error_code
        if error_code in SESSION_ERRORS:
            return response
        response.session_id = request.session_id
    if version >= TOPIC_ID_VERSION:
        return response
    for topic in request.topics:
        partitions = [_refused_data(asked.partition, error_code) for asked in topic.partitions]
        response.responses.append(messages.FetchResponse.FetchableTopicResponse(topic.topic, partitions=partitions))
    return response


def throttled(request: messages.FetchRequest, session: FetchSession | None) -> messages.FetchResponse:
    """Answer with nothing; no session is made, and an error of its own stays an error."""
    if session is None:
        return messages.FetchResponse()
    response = messages.FetchResponse(session_id=session.session_id)
    if session.epoch != next_epoch(request.session_epoch):
        response.error_code = ErrorCode.INVALID_FETCH_SESSION_EPOCH
    return response


def add_results(
    response: messages.FetchResponse, context: RequestContext, infos: Infos, results: Results, *, in_session: bool
) -> None:
    """Add what was read, with the leaders known now where this broker is not the leader."""
    hints: LeaderHints | None = None
    topic: messages.FetchResponse.FetchableTopicResponse | None = None
    topic_name: str | None = None
    for (topic_partition, fetch), (_, data) in zip(infos, results, strict=True):
        if (
            topic is None
            or topic_partition.topic != topic_name
            # A session may have a topic twice, when it was deleted and made again.
            or (in_session and topic.topic_id != fetch.topic_id)
        ):
            topic_name = topic_partition.topic
            # The id of the request: the topic may be gone by the time of the answer.
            topic = messages.FetchResponse.FetchableTopicResponse(topic_name, fetch.topic_id)
            response.responses.append(topic)
        answer = _partition_data(topic_partition.partition, data)
        topic.partitions.append(answer)
        if data.error_code and context.api_version >= LEADER_HINT_VERSION and data.error_code in HINTED_ERRORS:
            hints = hints or LeaderHints(context.broker.image, context.listener)
            hints.add(topic_partition, answer.current_leader)
    if hints is not None:
        for endpoint in hints.endpoints():
            response.node_endpoints.append(messages.FetchResponse.NodeEndpoint(*endpoint))


def add_refused(
    topics: list[messages.FetchResponse.FetchableTopicResponse], refused: Mapping[PartitionKey, Refused]
) -> None:
    """Add the refused partitions at the end; those of one topic in a row share one entry."""
    for (_, number), (name, fetch, error_code) in refused.items():
        topic = topics[-1] if topics else None
        if topic is None or topic.topic != name or topic.topic_id != fetch.topic_id:
            topic = messages.FetchResponse.FetchableTopicResponse(topic=name, topic_id=fetch.topic_id)
            topics.append(topic)
        topic.partitions.append(_refused_data(number, error_code))


def _refused_data(partition: int, error_code: ErrorCode) -> messages.FetchResponse.PartitionData:
    """Return the answer of a partition that was not looked for in the logs."""
    answer = _partition_data(partition, FetchPartitionData.failed(error_code))
    answer.aborted_transactions = []
    return answer


def _partition_data(index: int, data: FetchPartitionData) -> messages.FetchResponse.PartitionData:
    answer = messages.FetchResponse.PartitionData(
        partition_index=index,
        error_code=data.error_code,
        high_watermark=data.high_watermark,
        last_stable_offset=data.last_stable_offset,
        log_start_offset=data.log_start_offset,
        records=data.records if data.view is None else data.view,
        preferred_read_replica=data.preferred_read_replica,
        aborted_transactions=None,
    )
    if data.aborted_transactions is not None:
        answer.aborted_transactions = [
            messages.FetchResponse.AbortedTransaction(
                producer_id=aborted.producer_id, first_offset=aborted.first_offset
            )
            for aborted in data.aborted_transactions
        ]
    if data.diverging_epoch is not None:
        answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset = data.diverging_epoch
    return answer
