"""Fetch (key 1), versions 4-18; mirrors `KafkaApis.handleFetchRequest`.

Behaviour:
* answers at once with an error or with enough data, else when data comes or at the timeout
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
from broker_sim.fetch_session import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    CachedPartition,
    FetchSession,
    PartitionKey,
    next_epoch,
)
from broker_sim.handlers.data.fetch_response import (
    TOPIC_ID_VERSION,
    Refused,
    add_refused,
    add_results,
    failed,
)
from broker_sim.handlers.support.authorization import is_authorized_on_cluster, unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.replica import FetchIsolation, FetchParams, FetchPartition, FetchPartitionData

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext

    Infos = list[tuple[TopicPartition, FetchPartition]]
    Results = Sequence[tuple[TopicPartition, FetchPartitionData]]

__all__ = ["handle_fetch"]

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
ISOLATION_LEVELS: Final = (READ_UNCOMMITTED, READ_COMMITTED)
FULL_FETCHES: Final = (FINAL_EPOCH, INITIAL_EPOCH)
"""The session epochs of requests that name all that they want."""
RACK_VERSION = 11
REPLICA_STATE_VERSION = 15
# Python 3.11 takes 0.1 us to look an enum's member up, and every fetch needs one of these.
_HIGH_WATERMARK: Final = FetchIsolation.HIGH_WATERMARK
_LOG_END: Final = FetchIsolation.LOG_END
_TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED
UNKNOWN_PARTITION: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NOBODY: Final[AbstractSet[str]] = frozenset()
UNKNOWN_TOPIC_ID: Final = ErrorCode.UNKNOWN_TOPIC_ID


class _Wanted:
    """The partitions that one request reads, in order, and those that are refused before."""

    __slots__ = ("cached", "has_injected_error", "infos", "refused", "session")

    def __init__(self) -> None:
        self.infos: Infos = []
        self.refused: dict[PartitionKey, Refused] = {}
        self.has_injected_error = False
        self.session: FetchSession | None = None
        """The session that an incremental fetch continues."""
        self.cached: Sequence[CachedPartition] = ()
        """What the session has of `infos`."""


def handle_fetch(
    request: messages.FetchRequest,
    context: RequestContext,
    respond: Callable[[messages.FetchResponse], None],
) -> None:
    """Read what is asked for, now or when there is enough."""
    epoch = request.session_epoch
    try:
        if epoch in FULL_FETCHES:
            if request.session_id != NO_SESSION:
                context.broker.fetch_manager.close(request.session_id)
            wanted = _sort_out(request, context)
        else:
            wanted = _continue(request, context)
        params = _fetch_params(request, context, wanted) if wanted.infos else None
    except ApiError as error:
        respond(failed(request, context.api_version, error.error_code))
        return
    if params is None:
        respond(_build_response(request, context, wanted, ()))
        return
    context.broker.replica_manager.fetch_messages(
        params,
        wanted.infos,
        lambda results: respond(_build_response(request, context, wanted, results)),
    )


def _sort_out(request: messages.FetchRequest, context: RequestContext) -> _Wanted:
    """Return what can be read of the partitions in the request, and what is refused before."""
    faults, image = context.faults, context.broker.image
    by_id = context.api_version >= TOPIC_ID_VERSION
    wanted = _Wanted()
    infos = wanted.infos
    denied = _NOBODY
    if context.broker.authorizer is not None:
        names = [
            image.topic_names.get(topic.topic_id, "") if by_id else topic.topic
            for topic in request.topics
        ]
        denied = _denied_topics(request, context, names)
    for topic in request.topics:
        name = image.topic_names.get(topic.topic_id, "") if by_id else topic.topic
        state = image.topics.get(name)
        count = 0 if state is None else len(state.partitions)
        for asked in topic.partitions:
            number = asked.partition
            error_code = None
            if faults is not None and (injected := faults.error_for(name, number)):
                error_code = injected
                wanted.has_injected_error = True
            elif denied and name in denied:
                error_code = DENIED
            elif not 0 <= number < count:
                error_code = UNKNOWN_TOPIC_ID if by_id and not name else UNKNOWN_PARTITION
            # Written out, not `_fetch_partition`: a call for each partition would be felt.
            fetch = FetchPartition(
                fetch_offset=asked.fetch_offset,
                max_bytes=asked.partition_max_bytes,
                topic_id=topic.topic_id,
                log_start_offset=asked.log_start_offset,
                current_leader_epoch=asked.current_leader_epoch,
                last_fetched_epoch=asked.last_fetched_epoch,
            )
            if error_code is None:
                infos.append((TopicPartition(name, number), fetch))
            else:
                key = topic.topic_id if by_id else name
                wanted.refused[key, number] = Refused(name, fetch, error_code)
    if len(infos) > 1:
        # As in Kafka, of a partition that is named twice the last one counts, at the first one's place.
        wanted.infos = list(dict(infos).items())
    if len(wanted.refused) > 1:
        _put_in_order(request, context, wanted)
    return wanted


def _denied_topics(
    request: messages.FetchRequest, context: RequestContext, names: Iterable[str]
) -> AbstractSet[str]:
    """Return those of the topics that the fetcher may not read: for a follower all or none.

    A consumer is told of an unknown id before anybody looks at what it may read.
    """
    if _replica_id(request, context.api_version) < 0:
        return unauthorized_names(
            context, AclOperation.READ, ResourceType.TOPIC, filter(None, names)
        )
    if is_authorized_on_cluster(context, [AclOperation.CLUSTER_ACTION]):
        return _NOBODY
    return set(names)


def _fetch_partition(
    topic_id: bytes, asked: messages.FetchRequest.FetchPartition
) -> FetchPartition:
    return FetchPartition(
        fetch_offset=asked.fetch_offset,
        max_bytes=asked.partition_max_bytes,
        topic_id=topic_id,
        log_start_offset=asked.log_start_offset,
        current_leader_epoch=asked.current_leader_epoch,
        last_fetched_epoch=asked.last_fetched_epoch,
    )


def _continue(request: messages.FetchRequest, context: RequestContext) -> _Wanted:
    """Return what can be read of the partitions in the session, after the changes of the request.

    Raises ApiError as `FetchManager.resume`.
    """
    by_id = context.api_version >= TOPIC_ID_VERSION
    manager, topic_names = context.broker.fetch_manager, context.broker.image.topic_names
    session = manager.resume(request.session_id, request.session_epoch, uses_topic_ids=by_id)
    for topic in request.topics:
        key = topic.topic_id if by_id else topic.topic
        for asked in topic.partitions:
            fetch = _fetch_partition(topic.topic_id, asked)
            if not session.change((key, asked.partition), fetch):
                name = topic_names.get(topic.topic_id, "") if by_id else topic.topic
                session.add(CachedPartition((key, asked.partition), name, fetch))
    for forgotten in request.forgotten_topics_data:
        key = forgotten.topic_id if by_id else forgotten.topic
        for number in forgotten.partitions:
            session.forget((key, number))
    if not manager.advance(session):
        return _sort_out(request, context)
    return _sort_out_session(request, session, context)


def _sort_out_session(
    request: messages.FetchRequest, session: FetchSession, context: RequestContext
) -> _Wanted:
    """Return what can be read of the partitions in the session, and what is refused before."""
    faults, image = context.faults, context.broker.image
    topics = image.topics
    wanted = _Wanted()
    wanted.session = session
    readable: list[CachedPartition] = []
    wanted.cached = readable
    denied = _NOBODY
    if context.broker.authorizer is not None:
        names = [
            cached.topic or image.topic_names.get(cached.fetch.topic_id, "") for cached in session
        ]
        denied = _denied_topics(request, context, names)
    for cached in session:
        number = cached.key[1]
        if not cached.topic:
            # The topic may have become known to this broker since.
            cached.topic = image.topic_names.get(cached.fetch.topic_id, "")
        name = cached.topic
        state = topics.get(name)
        error_code = None
        if faults is not None and (injected := faults.error_for(name, number)):
            error_code = injected
            wanted.has_injected_error = True
        elif denied and name in denied:
            error_code = DENIED
        elif state is None or not 0 <= number < len(state.partitions):
            error_code = UNKNOWN_PARTITION if name else UNKNOWN_TOPIC_ID
        if error_code is None:
            wanted.infos.append((TopicPartition(name, number), cached.fetch))
            readable.append(cached)
        else:
            cached.update_response_data(FetchPartitionData.failed(error_code))
            wanted.refused[cached.key] = Refused(name, cached.fetch, error_code)
    if len(wanted.refused) > 1:
        _put_in_order(request, context, wanted)
    return wanted


def _put_in_order(request: messages.FetchRequest, context: RequestContext, wanted: _Wanted) -> None:
    """Put a consumer's unknown topic ids before what else is refused, as Kafka does."""
    if _replica_id(request, context.api_version) >= 0:
        return
    wanted.refused = dict(
        sorted(wanted.refused.items(), key=lambda item: item[1].error_code is not UNKNOWN_TOPIC_ID)
    )


def _fetch_params(
    request: messages.FetchRequest, context: RequestContext, wanted: _Wanted
) -> FetchParams:
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


def _replica_id(request: messages.FetchRequest, version: int) -> int:
    """Return the follower that fetches, -1 for a consumer."""
    if version >= REPLICA_STATE_VERSION:
        return request.replica_state.replica_id
    return request.replica_id


def _build_response(
    request: messages.FetchRequest,
    context: RequestContext,
    wanted: _Wanted,
    results: Results,
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
    if response.node_endpoints and _replica_id(request, context.api_version) >= 0:
        response.node_endpoints = []  # followers know where leaders are
    return response


def _news(
    session: FetchSession,
    wanted: _Wanted,
    results: Results,
) -> tuple[Infos, Results]:
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
    request: messages.FetchRequest,
    context: RequestContext,
    wanted: _Wanted,
    results: Results,
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
        privileged=_replica_id(request, context.api_version) >= 0,
        uses_topic_ids=by_id,
    )
