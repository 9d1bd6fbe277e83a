"""Fetch (key 1), versions 4-18; mirrors `KafkaApis.handleFetchRequest`.

Behaviour:
* answers at once with an error or with enough data, else when data comes or at the timeout
* with a quota, a consumer that has read more than it may is answered empty, and one fetch reads no more
  than the whole window of the quota allows
* a partition that does not exist is answered, but does not end the wait for the others
* `fetch.max.bytes` limits what the request asks for
* an incremental fetch (KIP-227) reads all partitions of its session and answers those with news; those
  that had records are read last the next time

Version notes: 7 brings fetch sessions, 9 leader epochs, 11 racks and fetching from followers
(KIP-392), 12 the last fetched epoch (KIP-595), 13 topic ids (KIP-516), 15 the replica state,
16 tells where the leader is (KIP-951), 18 a follower's high watermark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, CachedPartition, FetchSession, next_epoch
from broker_sim.handlers.data.fetch_response import TOPIC_ID_VERSION, add_refused, add_results, failed, throttled
from broker_sim.handlers.data.wanted_partitions import (
    REPLICA_STATE_VERSION,
    WantedPartitions,
    fetcher_id,
    partitions_of_request,
    partitions_of_session,
)
from broker_sim.protocol import messages
from broker_sim.protocol.codec import encode, encoded_size
from broker_sim.protocol.special_values import ISOLATION_LEVELS, READ_COMMITTED
from broker_sim.replica import FetchIsolation, FetchParams, FetchPartition, FetchPartitionData

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker_sim.handlers.context import RequestContext
    from broker_sim.metadata.topic_partition import TopicPartition

    Infos = list[tuple[TopicPartition, FetchPartition]]
    Results = Sequence[tuple[TopicPartition, FetchPartitionData]]

FULL_FETCHES: Final = (FINAL_EPOCH, INITIAL_EPOCH)
"""The session epochs of requests that name all that they want."""
RACK_VERSION = 11
SIZE_BYTES = 4
"""What Kafka counts for the size before a frame."""
# Python 3.11 takes 0.1 us to look an enum's member up, and every fetch needs one of these.
_HIGH_WATERMARK: Final = FetchIsolation.HIGH_WATERMARK
_LOG_END: Final = FetchIsolation.LOG_END
_TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED


def handle_fetch(
    request: messages.FetchRequest, context: RequestContext, respond: Callable[[messages.FetchResponse], None]
) -> None:
    """Read what is asked for, now or when there is enough."""
    epoch = request.session_epoch
    try:
        if epoch in FULL_FETCHES:
            if request.session_id != NO_SESSION:
                context.broker.fetch_manager.close(request.session_id)
            wanted = partitions_of_request(request, context)
        else:
            wanted = partitions_of_session(request, context)
        params = _fetch_params(request, context, wanted) if wanted.infos else None
    except ApiError as error:
        respond(failed(request, context.api_version, error.error_code))
        return
    if params is None:
        respond(_answer(request, context, wanted, ()))
        return
    context.broker.replica_manager.fetch_messages(
        params, wanted.infos, lambda results: respond(_answer(request, context, wanted, results))
    )


def _answer(
    request: messages.FetchRequest, context: RequestContext, wanted: WantedPartitions, results: Results
) -> messages.FetchResponse:
    """Answer, but a consumer that has read too much with nothing; then its session does not move on."""
    throttle = context.throttle
    if throttle is not None:
        if fetcher_id(request, context.api_version) >= 0:
            throttle.exempt()
        elif throttle.refuses_fetch(_response_bytes(request, context, wanted, results)):
            return throttled(request, wanted.session)
    return _build_response(request, context, wanted, results)


def _response_bytes(
    request: messages.FetchRequest, context: RequestContext, wanted: WantedPartitions, results: Results
) -> int:
    """Return what the answer would have, without anything but its size being told."""
    response = messages.FetchResponse()
    session, infos = wanted.session, wanted.infos
    if session is None or session.epoch == next_epoch(request.session_epoch):
        if session is not None:
            asked = zip(wanted.cached, infos, results, strict=True)
            news = [(info, result) for cached, info, result in asked if cached.has_news(result[1])]
            infos, results = [info for info, _ in news], [result for _, result in news]
        add_results(response, context, infos, results, in_session=session is not None)
        add_refused(response.responses, wanted.refused)
    return SIZE_BYTES + encoded_size(encode(response, context.api_version))


def _fetch_params(request: messages.FetchRequest, context: RequestContext, wanted: WantedPartitions) -> FetchParams:
    """Return what holds for all partitions.

    Raises ApiError with UNKNOWN_SERVER_ERROR for an isolation level that does not exist.
    """
    version = context.api_version
    if request.isolation_level not in ISOLATION_LEVELS:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if version >= REPLICA_STATE_VERSION:
        replica_id = request.replica_state.replica_id
        replica_epoch = request.replica_state.replica_epoch
    else:
        replica_id, replica_epoch = request.replica_id, -1
    max_bytes = min(request.max_bytes, context.broker.config.fetch_max_bytes)
    if context.throttle is not None and replica_id < 0:
        limit = context.throttle.max_fetch_bytes()
        max_bytes = max_bytes if limit is None else min(max_bytes, int(limit))
    knows_racks = version >= RACK_VERSION
    if replica_id >= 0:
        isolation = _LOG_END
    elif request.isolation_level == READ_COMMITTED:
        isolation = _TXN_COMMITTED
    else:
        isolation = _HIGH_WATERMARK
    return FetchParams(
        # As an error of the log does, an injected one ends the wait.
        max_wait_ms=0 if wanted.has_injected_error else request.max_wait_ms,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation=isolation,
        replica_id=replica_id,
        replica_epoch=replica_epoch,
        has_client_metadata=knows_racks,
        client_id=context.client_id,
        rack_id=request.rack_id if knows_racks else "",
        as_views=context.connection.sends_files,
    )


def _build_response(
    request: messages.FetchRequest, context: RequestContext, wanted: WantedPartitions, results: Results
) -> messages.FetchResponse:
    """Answer for all partitions; in a session only for those with news for the fetcher."""
    response = messages.FetchResponse()
    session, infos = wanted.session, wanted.infos
    if session is not None:
        response.session_id = session.session_id
        if session.epoch != next_epoch(request.session_epoch):
            # Another request has continued the session meanwhile.
            response.error_code = ErrorCode.INVALID_FETCH_SESSION_EPOCH
            return response
        infos, results = _news(session, wanted, results)
    elif request.session_epoch == INITIAL_EPOCH:
        response.session_id = _new_session(request, context, wanted, results)
    add_results(response, context, infos, results, in_session=session is not None)
    if wanted.refused:
        add_refused(response.responses, wanted.refused)
    if response.node_endpoints and fetcher_id(request, context.api_version) >= 0:
        response.node_endpoints = []  # followers know where leaders are
    return response


def _news(session: FetchSession, wanted: WantedPartitions, results: Results) -> tuple[Infos, Results]:
    """Return those partitions of which the fetcher must be told, and their results."""
    infos: Infos = []
    news: list[tuple[TopicPartition, FetchPartitionData]] = []
    for cached, info, result in zip(wanted.cached, wanted.infos, results, strict=True):
        data = result[1]
        if cached.update_response_data(data):
            infos.append(info)
            news.append(result)
            if data.size_bytes:
                session.move_to_end(cached.key)
    return infos, news


def _new_session(
    request: messages.FetchRequest, context: RequestContext, wanted: WantedPartitions, results: Results
) -> int:
    """Return the id of a session with what is answered now, 0 if there is no room for one."""
    by_id = context.api_version >= TOPIC_ID_VERSION

    def partitions() -> Iterator[CachedPartition]:
        for (topic_partition, fetch), (_, data) in zip(wanted.infos, results, strict=True):
            topic, number = topic_partition
            cached = CachedPartition((fetch.topic_id if by_id else topic, number), topic, fetch)
            cached.update_response_data(data)
            yield cached
        for key, (topic, fetch, error_code) in wanted.refused.items():
            cached = CachedPartition(key, topic, fetch)
            cached.update_response_data(FetchPartitionData.failed(error_code))
            yield cached

    return context.broker.fetch_manager.maybe_create_session(
        len(results) + len(wanted.refused),
        partitions,
        privileged=fetcher_id(request, context.api_version) >= 0,
        uses_topic_ids=by_id,
    )
