"""The response to a share fetch, which waits for acknowledgements and records; see `share_fetch`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.fetch_session import FINAL_EPOCH
from broker_sim.handlers.share.acknowledgements import in_mutable_map_order, in_to_map_order
from broker_sim.handlers.support.partition_errors import HINTED_ERRORS, LeaderHints
from broker_sim.hash_order.hash_codes import integer_hash, uuid_hash
from broker_sim.hash_order.scala_order import mutable_map_order
from broker_sim.metadata.topic_partition import by_topic
from broker_sim.protocol import messages
from broker_sim.protocol.codec import encode, encoded_size
from broker_sim.share.partition.share_fetch import SharePartitionData
from broker_sim.share.session.share_session import ShareSessionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from broker_sim.errors import ApiError
    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata.topic_partition import TopicIdPartition
    from broker_sim.share.session.share_session import ShareFetchContext

    Acknowledged = Mapping[TopicIdPartition, ApiError | None]
    Fetched = Mapping[TopicIdPartition, SharePartitionData]
    Answers = dict[TopicIdPartition, messages.ShareFetchResponse.PartitionData]

SIZE_BYTES: Final = 4
"""Bytes of a frame's size field, which Kafka's quota counts too."""


class ShareFetchAnswer:
    """Responds to one share fetch when it has acknowledged and fetched."""

    __slots__ = (
        "_acknowledged",
        "_context",
        "_fetched",
        "_refused",
        "_request",
        "_respond",
        "_session",
        "_topic_names",
    )

    def __init__(
        self,
        request: messages.ShareFetchRequest,
        context: RequestContext,
        session: ShareFetchContext,
        respond: Callable[[messages.ShareFetchResponse], None],
    ) -> None:
        self._request = request
        self._context = context
        self._session = session
        self._respond = respond
        self._topic_names = context.broker.image.topic_names
        """Topic names by id when the request arrived."""
        self._refused: dict[TopicIdPartition, SharePartitionData] = {}
        self._acknowledged: Acknowledged | None = None
        self._fetched: Fetched | None = None

    def acknowledged(self, errors: Acknowledged) -> None:
        """Set the errors of the acknowledgements."""
        self._acknowledged = errors
        self._maybe_respond()

    def refuse(self, partition: TopicIdPartition, error_code: ErrorCode) -> None:
        """Answer a partition with an error; it is not fetched."""
        self._refused[partition] = SharePartitionData(error_code)

    def all_refused(self) -> None:
        """Record that no partition is fetched."""
        self._fetched = in_mutable_map_order(self._refused)
        self._maybe_respond()

    def fetched(self, data: Fetched) -> None:
        """Set the results of the fetched partitions."""
        self._fetched = in_to_map_order({**data, **self._refused})
        self._maybe_respond()

    def fail(self) -> None:
        """Answer the whole request with UNKNOWN_SERVER_ERROR; nothing may be fetched after that."""
        self._respond(messages.ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))

    def _maybe_respond(self) -> None:
        """Respond once both results are there; a member above its quota gets no records."""
        if self._fetched is None or self._acknowledged is None:
            return
        throttle = self._context.throttle
        if throttle is not None and throttle.refuses_fetch(self._response_bytes(self._fetched)):
            response = self._empty_response()
            response.responses = _topics(_with_acknowledged({}, self._acknowledged))
        else:
            response = self._response(self._fetched, self._acknowledged)
        if self._request.share_session_epoch == FINAL_EPOCH:
            key = ShareSessionKey(self._request.group_id or "", self._request.member_id or "")
            self._context.broker.share_partitions.release_session(key)
        self._respond(response)

    def _response_bytes(self, fetched: Fetched) -> int:
        """Return the size of the response, without changing the session."""
        session = self._session
        in_response = {} if session.has_moved_on else session.in_response(fetched)
        answers = {partition: _partition_data(partition, data) for partition, data in in_response.items()}
        response = messages.ShareFetchResponse(responses=_topics(answers))
        return SIZE_BYTES + encoded_size(encode(response, self._context.api_version))

    def _response(self, fetched: Fetched, acknowledged: Acknowledged) -> messages.ShareFetchResponse:
        """Return the response, with the leaders of partitions that this broker does not lead.

        Before 4.4, Kafka does not count the bytes of a topic that did not exist when the request arrived.
        """
        context, session = self._context, self._session
        response = self._empty_response()
        hints = LeaderHints(context.broker.image, context.listener)
        answers: Answers = {}
        if not session.has_moved_on:
            for partition, data in session.update(fetched).items():
                if partition.topic_id not in self._topic_names and not context.broker.release.is_at_least("4.4"):
                    return messages.ShareFetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
                answer = answers[partition] = _partition_data(partition, data)
                if data.error_code in HINTED_ERRORS:
                    hints.add(partition.topic_partition, answer.current_leader)
        response.responses = _topics(_with_acknowledged(answers, acknowledged))
        response.node_endpoints = [
            messages.ShareFetchResponse.NodeEndpoint(*endpoint) for endpoint in hints.endpoints()
        ]
        return response

    def _empty_response(self) -> messages.ShareFetchResponse:
        """Return a response without partitions; another request may have continued the session."""
        settings = self._context.broker.share_partitions.settings
        return messages.ShareFetchResponse(
            error_code=(ErrorCode.INVALID_SHARE_SESSION_EPOCH if self._session.has_moved_on else ErrorCode.NONE),
            acquisition_lock_timeout_ms=settings.record_lock_duration_ms(self._request.group_id or ""),
        )


def _partition_data(partition: TopicIdPartition, data: SharePartitionData) -> messages.ShareFetchResponse.PartitionData:
    """Return the response for one partition; as in Kafka, without error messages."""
    response = messages.ShareFetchResponse
    return response.PartitionData(
        partition_index=partition.partition,
        error_code=data.error_code,
        records=data.records,
        acquired_records=[response.AcquiredRecords(*acquired) for acquired in data.acquired],
    )


def _with_acknowledged(answers: Answers, acknowledged: Acknowledged) -> Answers:
    """Add the results of the acknowledgements, including partitions that were not fetched."""
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
        yield from mutable_map_order(topics[topic_id], lambda partition: integer_hash(partition.partition))


def _topics(answers: Answers) -> list[messages.ShareFetchResponse.ShareFetchableTopicResponse]:
    topics = by_topic((partition.topic_id, answer) for partition, answer in answers.items())
    return [messages.ShareFetchResponse.ShareFetchableTopicResponse(*topic) for topic in topics.items()]
