"""The partitions that a fetch reads: those that it names, or those of its session; each is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim.fetch_session import CachedPartition, FetchSession, PartitionKey
from broker_sim.handlers.data.fetch_response import TOPIC_ID_VERSION, Refused
from broker_sim.handlers.support.authorization import is_authorized_on_cluster, unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.replica import FetchPartition, FetchPartitionData

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from broker_sim.handlers.context import RequestContext
    from broker_sim.protocol import messages

    Infos = list[tuple[TopicPartition, FetchPartition]]

REPLICA_STATE_VERSION: Final = 15
UNKNOWN_PARTITION: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_NOBODY: Final[AbstractSet[str]] = frozenset()
UNKNOWN_TOPIC_ID: Final = ErrorCode.UNKNOWN_TOPIC_ID


class WantedPartitions:
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


def fetcher_id(request: messages.FetchRequest, version: int) -> int:
    """Return the follower that fetches, -1 for a consumer."""
    if version >= REPLICA_STATE_VERSION:
        return request.replica_state.replica_id
    return request.replica_id


def partitions_of_request(request: messages.FetchRequest, context: RequestContext) -> WantedPartitions:
    """Return what can be read of the partitions in the request, and what is refused before."""
    faults, image = context.faults, context.broker.image
    by_id = context.api_version >= TOPIC_ID_VERSION
    wanted = WantedPartitions()
    infos = wanted.infos
    denied = _NOBODY
    if context.broker.authorizer is not None:
        names = [image.topic_names.get(topic.topic_id, "") if by_id else topic.topic for topic in request.topics]
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


def _denied_topics(request: messages.FetchRequest, context: RequestContext, names: Iterable[str]) -> AbstractSet[str]:
    """Return those of the topics that the fetcher may not read: for a follower all or none.

    A consumer is told of an unknown id before anybody looks at what it may read.
    """
    if fetcher_id(request, context.api_version) < 0:
        return unauthorized_names(context, AclOperation.READ, ResourceType.TOPIC, filter(None, names))
    if is_authorized_on_cluster(context, [AclOperation.CLUSTER_ACTION]):
        return _NOBODY
    return set(names)


def _fetch_partition(topic_id: bytes, asked: messages.FetchRequest.FetchPartition) -> FetchPartition:
    return FetchPartition(
        fetch_offset=asked.fetch_offset,
        max_bytes=asked.partition_max_bytes,
        topic_id=topic_id,
        log_start_offset=asked.log_start_offset,
        current_leader_epoch=asked.current_leader_epoch,
        last_fetched_epoch=asked.last_fetched_epoch,
    )


def partitions_of_session(request: messages.FetchRequest, context: RequestContext) -> WantedPartitions:
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
        return partitions_of_request(request, context)
    return _sort_out(request, session, context)


def _sort_out(request: messages.FetchRequest, session: FetchSession, context: RequestContext) -> WantedPartitions:
    """Return what can be read of the partitions in the session, and what is refused before."""
    faults, image = context.faults, context.broker.image
    topics = image.topics
    wanted = WantedPartitions()
    wanted.session = session
    readable: list[CachedPartition] = []
    wanted.cached = readable
    denied = _NOBODY
    if context.broker.authorizer is not None:
        names = [cached.topic or image.topic_names.get(cached.fetch.topic_id, "") for cached in session]
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


def _put_in_order(request: messages.FetchRequest, context: RequestContext, wanted: WantedPartitions) -> None:
    """Put a consumer's unknown topic ids before what else is refused, as Kafka does."""
    if fetcher_id(request, context.api_version) >= 0:
        return
    wanted.refused = dict(sorted(wanted.refused.items(), key=lambda item: item[1].error_code is not UNKNOWN_TOPIC_ID))
