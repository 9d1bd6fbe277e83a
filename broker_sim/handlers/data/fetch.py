"""Fetch (key 1), versions 4-18; mirrors ``KafkaApis.handleFetchRequest``.

Version notes: 7 brings fetch sessions, 9 leader epochs, 11 racks and fetching from followers
(KIP-392), 12 the last fetched epoch (KIP-595), 13 topic ids (KIP-516), 15 the replica state,
16 tells where the leader is (KIP-951), 18 a follower's high watermark.

Deliberate difference: no fetch sessions are kept. A client that asks for one gets session id 0,
which the protocol allows, and sends whole requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.handlers.support.leader_hint import LeaderHints
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.replica import FetchIsolation, FetchParams, FetchPartition, FetchPartitionData

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.handlers.context import BrokerServices, RequestContext

__all__ = ["handle_fetch"]

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
SESSION_VERSION = 7
RACK_VERSION = 11
TOPIC_ID_VERSION = 13
REPLICA_STATE_VERSION = 15
LEADER_HINT_VERSION = 16
FINAL_EPOCH = -1
INITIAL_EPOCH = 0
HINTED_ERRORS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

Unknown = tuple["messages.FetchRequest.FetchTopic", int]


def handle_fetch(
    request: messages.FetchRequest,
    context: RequestContext,
    respond: Callable[[messages.FetchResponse], None],
) -> None:
    """Read what is asked for, now or when there is enough; unknown partitions do not end a wait."""
    version = context.api_version
    if request.isolation_level not in (READ_UNCOMMITTED, READ_COMMITTED):
        respond(_failed(request, version))
        return
    if version >= SESSION_VERSION and request.session_epoch not in (FINAL_EPOCH, INITIAL_EPOCH):
        respond(messages.FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
        return
    infos, unknown = _partitions_to_fetch(context.broker, request, version)
    builder = _ResponseBuilder(context.broker, version, infos, unknown)
    if not infos:
        respond(builder.build(()))
        return
    context.broker.replica_manager.fetch_messages(
        _fetch_params(context.broker, request, context),
        list(infos.items()),
        lambda results: respond(builder.build(results)),
    )


def _failed(request: messages.FetchRequest, version: int) -> messages.FetchResponse:
    """Return what answers a request that means nothing; before topic ids each partition is told."""
    response = messages.FetchResponse()
    if version >= SESSION_VERSION:
        response.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    if version >= TOPIC_ID_VERSION:
        return response
    for topic in request.topics:
        partitions = [
            _refused(partition.partition, ErrorCode.UNKNOWN_SERVER_ERROR)
            for partition in topic.partitions
        ]
        response.responses.append(
            messages.FetchResponse.FetchableTopicResponse(topic.topic, partitions=partitions)
        )
    return response


def _refused(index: int, error_code: ErrorCode) -> messages.FetchResponse.PartitionData:
    """Return the answer of a partition that was not even looked for in the logs."""
    answer = _partition_data(index, FetchPartitionData.failed(error_code))
    answer.aborted_transactions = []
    return answer


def _partitions_to_fetch(
    broker: BrokerServices, request: messages.FetchRequest, version: int
) -> tuple[dict[TopicPartition, FetchPartition], list[Unknown]]:
    image = broker.image
    infos: dict[TopicPartition, FetchPartition] = {}
    unknown: list[Unknown] = []
    for topic in request.topics:
        if version >= TOPIC_ID_VERSION:
            name = image.topic_names.get(topic.topic_id, "")
        else:
            name = topic.topic
        state = image.topics.get(name)
        count = 0 if state is None else len(state.partitions)
        for partition in topic.partitions:
            if not 0 <= partition.partition < count:
                unknown.append((topic, partition.partition))
                continue
            infos[TopicPartition(name, partition.partition)] = FetchPartition(
                fetch_offset=partition.fetch_offset,
                max_bytes=partition.partition_max_bytes,
                topic_id=topic.topic_id,
                log_start_offset=partition.log_start_offset,
                current_leader_epoch=partition.current_leader_epoch,
                last_fetched_epoch=partition.last_fetched_epoch,
            )
    return infos, unknown


def _fetch_params(
    broker: BrokerServices, request: messages.FetchRequest, context: RequestContext
) -> FetchParams:
    version = context.api_version
    if version >= REPLICA_STATE_VERSION:
        replica_id = request.replica_state.replica_id
        replica_epoch = request.replica_state.replica_epoch
    else:
        replica_id, replica_epoch = request.replica_id, -1
    max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
    if replica_id >= 0:
        isolation = FetchIsolation.LOG_END
    elif request.isolation_level == READ_COMMITTED:
        isolation = FetchIsolation.TXN_COMMITTED
    else:
        isolation = FetchIsolation.HIGH_WATERMARK
    return FetchParams(
        max_wait_ms=request.max_wait_ms,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation=isolation,
        replica_id=replica_id,
        replica_epoch=replica_epoch,
        has_client_metadata=version >= RACK_VERSION,
        client_id=context.client_id,
    )


class _ResponseBuilder:
    """Builds the response when the fetch ends, with the metadata of that moment."""

    __slots__ = ("_broker", "_infos", "_unknown", "_version")

    def __init__(
        self,
        broker: BrokerServices,
        version: int,
        infos: Mapping[TopicPartition, FetchPartition],
        unknown: list[Unknown],
    ) -> None:
        self._broker = broker
        self._version = version
        self._infos = infos
        self._unknown = unknown

    def build(
        self, results: Sequence[tuple[TopicPartition, FetchPartitionData]]
    ) -> messages.FetchResponse:
        response = messages.FetchResponse()
        hints: LeaderHints | None = None
        topic: messages.FetchResponse.FetchableTopicResponse | None = None
        topic_name: str | None = None
        for topic_partition, data in results:
            if topic is None or topic_partition.topic != topic_name:
                topic_name = topic_partition.topic
                # The id of the request: the topic may be gone by the time of the answer.
                topic = messages.FetchResponse.FetchableTopicResponse(
                    topic=topic_name, topic_id=self._infos[topic_partition].topic_id
                )
                response.responses.append(topic)
            answer = _partition_data(topic_partition.partition, data)
            if data.error_code in HINTED_ERRORS and self._version >= LEADER_HINT_VERSION:
                hints = hints or LeaderHints(self._broker.image)
                hints.add(topic_partition, answer.current_leader)
            topic.partitions.append(answer)
        for asked, index in self._unknown:
            response.responses.append(self._unknown_topic(asked, index))
        if hints is not None:
            for endpoint in hints.endpoints():
                response.node_endpoints.append(messages.FetchResponse.NodeEndpoint(*endpoint))
        return response

    def _unknown_topic(
        self, asked: messages.FetchRequest.FetchTopic, index: int
    ) -> messages.FetchResponse.FetchableTopicResponse:
        known = asked.topic_id in self._broker.image.topic_names
        by_name = self._version < TOPIC_ID_VERSION
        error_code = (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if by_name or known else ErrorCode.UNKNOWN_TOPIC_ID
        )
        return messages.FetchResponse.FetchableTopicResponse(
            topic=asked.topic,
            topic_id=asked.topic_id,
            partitions=[_refused(index, error_code)],
        )


def _partition_data(index: int, data: FetchPartitionData) -> messages.FetchResponse.PartitionData:
    answer = messages.FetchResponse.PartitionData(
        partition_index=index,
        error_code=data.error_code,
        high_watermark=data.high_watermark,
        last_stable_offset=data.last_stable_offset,
        log_start_offset=data.log_start_offset,
        records=data.records,
    )
    answer.aborted_transactions = None
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
