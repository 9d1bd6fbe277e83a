"""The response to a fetch; see `fetch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.fetch_session import INITIAL_EPOCH, next_epoch
from broker_sim.handlers.data.fetch_request import TOPIC_ID_VERSION
from broker_sim.handlers.support.partition_errors import HINTED_ERRORS, LeaderHints
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.protocol.codec import encode, encoded_size
from broker_sim.replica import FetchPartitionData

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from broker_sim.fetch_session import CachedPartition, FetchSession
    from broker_sim.handlers.data.fetch_request import CheckedPartitions, Fetcher, Refused

    Results = Sequence[tuple[TopicPartition, FetchPartitionData]]
    PartitionResults = list[tuple[CachedPartition, FetchPartitionData]]

SESSION_VERSION: Final = 7
LEADER_HINT_VERSION: Final = 16
SIZE_BYTES: Final = 4
"""Bytes of a frame's size field, which Kafka's quota counts too."""
SESSION_ERRORS: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)


class FetchAnswer:
    """Answers one fetch in three steps.

    1. build the response: for a session only the changed partitions, then the refused ones
    2. above the quota, send an empty response and leave the session as it is
    3. record the returned partitions in the session, or make a new session
    """

    __slots__ = ("_fetcher", "_partitions", "_request", "_respond")

    def __init__(
        self,
        request: messages.FetchRequest,
        fetcher: Fetcher,
        partitions: CheckedPartitions,
        respond: Callable[[messages.FetchResponse], None],
    ) -> None:
        self._request = request
        self._fetcher = fetcher
        self._partitions = partitions
        self._respond = respond

    def send(self, results: Results) -> None:
        """Answer with the results of the readable partitions, in their order."""
        session = self._partitions.session
        if session is not None and session.epoch != next_epoch(self._request.session_epoch):
            # Another request has continued the session in the meantime.
            response = messages.FetchResponse(
                error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=session.session_id
            )
            self._is_above_quota(response)
        else:
            news = [
                (partition, data)
                for partition, (_, data) in zip(self._partitions.readable, results, strict=True)
                if session is None or partition.has_news(data)
            ]
            response = self._build(news)
            if self._fetcher.context.throttle is not None and self._is_above_quota(response):
                response = messages.FetchResponse()
                if session is not None:
                    response.session_id = session.session_id
            elif session is not None:
                response.session_id = session.session_id
                _note_in_session(session, news)
            elif self._request.session_epoch == INITIAL_EPOCH:
                response.session_id = self._new_session(news)
        self._respond(response)

    def _build(self, news: PartitionResults) -> messages.FetchResponse:
        """Return the response for all partitions, with the current leaders of those that this broker does not lead."""
        fetcher = self._fetcher
        context = fetcher.context
        response = messages.FetchResponse()
        hints: LeaderHints | None = None
        topic: messages.FetchResponse.FetchableTopicResponse | None = None
        for partition, data in news:
            # A session may have a topic twice, if it was deleted and created again.
            if topic is None or topic.topic != partition.topic or topic.topic_id != partition.fetch.topic_id:
                # The id from the request: the topic may have been deleted by now.
                topic = messages.FetchResponse.FetchableTopicResponse(partition.topic, partition.fetch.topic_id)
                response.responses.append(topic)
            number = partition.key[1]
            answer = _partition_data(number, data)
            topic.partitions.append(answer)
            if data.error_code and context.api_version >= LEADER_HINT_VERSION and data.error_code in HINTED_ERRORS:
                hints = hints or LeaderHints(context.broker.image, context.listener)
                hints.add(TopicPartition(partition.topic, number), answer.current_leader)
        if self._partitions.refused:
            _add_refused(response.responses, self._partitions.refused)
        if hints is not None and not fetcher.is_follower:  # followers know where leaders are
            for endpoint in hints.endpoints():
                response.node_endpoints.append(messages.FetchResponse.NodeEndpoint(*endpoint))
        return response

    def _is_above_quota(self, response: messages.FetchResponse) -> bool:
        """Count the response's bytes against the client's quota; return whether it must be answered empty."""
        context = self._fetcher.context
        throttle = context.throttle
        if throttle is None:
            return False
        if self._fetcher.is_follower:
            throttle.exempt()
            return False
        return throttle.refuses_fetch(SIZE_BYTES + encoded_size(encode(response, context.api_version)))

    def _new_session(self, news: PartitionResults) -> int:
        """Make a session of the partitions as returned; return its id, 0 if the session cache is full."""
        for partition, data in news:
            partition.update_response_data(data)
        partitions = self._partitions.readable + [refused.partition for refused in self._partitions.refused]
        return self._fetcher.context.broker.fetch_manager.maybe_create_session(
            partitions, privileged=self._fetcher.is_follower, uses_topic_ids=self._fetcher.uses_topic_ids
        )


def _note_in_session(session: FetchSession, news: PartitionResults) -> None:
    """Record the returned partitions; those with records are read last the next time."""
    for partition, data in news:
        partition.update_response_data(data)
        if data.size_bytes:
            session.move_to_end(partition.key)


def failed_response(request: messages.FetchRequest, version: int, error_code: ErrorCode) -> messages.FetchResponse:
    """Return the response to a request that fails as a whole.

    The response to a session error has no session id. For other errors, versions before topic ids also
    list each partition of the request.
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
        partitions = [_refused_data(partition.partition, error_code) for partition in topic.partitions]
        response.responses.append(messages.FetchResponse.FetchableTopicResponse(topic.topic, partitions=partitions))
    return response


def _add_refused(topics: list[messages.FetchResponse.FetchableTopicResponse], refused: Iterable[Refused]) -> None:
    """Add the refused partitions at the end; those of one topic in a row share one entry."""
    for partition, error_code in refused:
        topic = topics[-1] if topics else None
        if topic is None or topic.topic != partition.topic or topic.topic_id != partition.fetch.topic_id:
            topic = messages.FetchResponse.FetchableTopicResponse(partition.topic, partition.fetch.topic_id)
            topics.append(topic)
        topic.partitions.append(_refused_data(partition.key[1], error_code))


def _refused_data(number: int, error_code: ErrorCode) -> messages.FetchResponse.PartitionData:
    """Return the response of a partition that was not read."""
    answer = _partition_data(number, FetchPartitionData.failed(error_code))
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
