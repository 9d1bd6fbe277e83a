"""The request of a fetch: the fetcher and its partitions; each partition is checked here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION, CachedPartition
from broker_sim.handlers.support.authorization import is_authorized_on_cluster, unauthorized_names
from broker_sim.metadata.acl import AclOperation, ResourceType
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.special_values import ISOLATION_LEVELS, READ_COMMITTED
from broker_sim.replica import FetchIsolation, FetchParams, FetchPartition, FetchPartitionData

if TYPE_CHECKING:
    from collections.abc import Collection
    from collections.abc import Set as AbstractSet

    from broker_sim.fetch_session import FetchSession, PartitionKey
    from broker_sim.handlers.context import RequestContext
    from broker_sim.protocol import messages

FULL_FETCHES: Final = (FINAL_EPOCH, INITIAL_EPOCH)
"""Session epochs of full fetch requests, which list all their partitions."""
RACK_VERSION: Final = 11
TOPIC_ID_VERSION: Final = 13
REPLICA_STATE_VERSION: Final = 15
_NO_TOPICS: Final[AbstractSet[str]] = frozenset()
# Python 3.11 takes 0.1 us to look up an enum member, and every fetch needs one of these.
_HIGH_WATERMARK: Final = FetchIsolation.HIGH_WATERMARK
_LOG_END: Final = FetchIsolation.LOG_END
_TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED


class Fetcher:
    """The follower or client that fetches, with its version, ids and isolation, read from the request once."""

    __slots__ = ("context", "is_follower", "isolation", "replica_epoch", "replica_id", "uses_topic_ids")

    def __init__(self, request: messages.FetchRequest, context: RequestContext) -> None:
        version = context.api_version
        if version >= REPLICA_STATE_VERSION:
            replica_id = request.replica_state.replica_id
            self.replica_epoch = request.replica_state.replica_epoch
        else:
            replica_id, self.replica_epoch = request.replica_id, -1
        self.context = context
        self.replica_id = replica_id
        """The broker id of a follower, -1 for a client."""
        self.is_follower = replica_id >= 0
        self.uses_topic_ids = version >= TOPIC_ID_VERSION
        """Whether the request identifies topics by id."""
        isolation: FetchIsolation | None
        if request.isolation_level not in ISOLATION_LEVELS:
            isolation = None
        elif replica_id >= 0:
            isolation = _LOG_END
        elif request.isolation_level == READ_COMMITTED:
            isolation = _TXN_COMMITTED
        else:
            isolation = _HIGH_WATERMARK
        self.isolation = isolation
        """Offset that limits the read; None for an unknown isolation level."""

    def params(self, request: messages.FetchRequest, *, waits: bool) -> FetchParams:
        """Return the parameters for all partitions; unless `waits`, the fetch is answered at once.

        Raises ApiError with UNKNOWN_SERVER_ERROR for an unknown isolation level.
        """
        context = self.context
        if self.isolation is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        max_bytes = min(request.max_bytes, context.broker.config.fetch_max_bytes)
        if context.throttle is not None and not self.is_follower:
            limit = context.throttle.max_fetch_bytes()
            max_bytes = max_bytes if limit is None else min(max_bytes, int(limit))
        has_rack = context.api_version >= RACK_VERSION
        return FetchParams(
            max_wait_ms=request.max_wait_ms if waits else 0,
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            isolation=self.isolation,
            replica_id=self.replica_id,
            replica_epoch=self.replica_epoch,
            has_client_metadata=has_rack,
            client_id=context.client_id,
            rack_id=request.rack_id if has_rack else "",
            as_views=context.connection.sends_files,
        )


class Refused(NamedTuple):
    """A partition that is not read; its topic name is empty if the topic id is unknown."""

    partition: CachedPartition
    error_code: ErrorCode


class CheckedPartitions:
    """The partitions of one fetch in order: those to read, and those refused without reading."""

    __slots__ = ("has_injected_error", "infos", "readable", "refused", "session")

    def __init__(self, session: FetchSession | None) -> None:
        self.session = session
        """The session that an incremental fetch continues, None for a full fetch."""
        self.readable: list[CachedPartition] = []
        self.infos: list[tuple[TopicPartition, FetchPartition]] = []
        """The fetch position of each partition of `readable`."""
        self.refused: list[Refused] = []
        self.has_injected_error = False


def partitions_of_fetch(request: messages.FetchRequest, fetcher: Fetcher) -> CheckedPartitions:
    """Return the partitions of the request or, if it continues a session, those of the session.

    A full fetch closes the session in the request. Raises ApiError as `FetchManager.close` and `resume` do.
    """
    manager = fetcher.context.broker.fetch_manager
    if request.session_epoch not in FULL_FETCHES:
        session = manager.resume(request.session_id, request.session_epoch, uses_topic_ids=fetcher.uses_topic_ids)
        _change(session, request, fetcher)
        if manager.advance(session):
            return _check(session.partitions.values(), session, fetcher)
    elif request.session_id != NO_SESSION:
        manager.close(request.session_id)
    return _check(_named_partitions(request, fetcher).values(), None, fetcher)


def _change(session: FetchSession, request: messages.FetchRequest, fetcher: Fetcher) -> None:
    """Add the partitions of the request to the session, and remove those that it forgets."""
    if request.topics:
        for partition in _named_partitions(request, fetcher).values():
            session.add(partition)
    for topic in request.forgotten_topics_data:
        name_or_id = topic.topic_id if fetcher.uses_topic_ids else topic.topic
        for number in topic.partitions:
            session.forget((name_or_id, number))


def _named_partitions(request: messages.FetchRequest, fetcher: Fetcher) -> dict[PartitionKey, CachedPartition]:
    """Return the partitions of the request, in its order.

    As in Kafka, if a partition is listed twice, the last entry counts, at the position of the first.
    """
    topic_names = fetcher.context.broker.image.topic_names
    partitions: dict[PartitionKey, CachedPartition] = {}
    for topic in request.topics:
        topic_id = topic.topic_id
        name = topic_names.get(topic_id, "") if fetcher.uses_topic_ids else topic.topic
        name_or_id = topic_id if fetcher.uses_topic_ids else name
        for partition in topic.partitions:
            key = name_or_id, partition.partition
            fetch = FetchPartition(
                fetch_offset=partition.fetch_offset,
                max_bytes=partition.partition_max_bytes,
                topic_id=topic_id,
                log_start_offset=partition.log_start_offset,
                current_leader_epoch=partition.current_leader_epoch,
                last_fetched_epoch=partition.last_fetched_epoch,
            )
            partitions[key] = CachedPartition(key, name, fetch)
    return partitions


def _check(
    partitions: Collection[CachedPartition], session: FetchSession | None, fetcher: Fetcher
) -> CheckedPartitions:
    """Divide the partitions into those to read and those that are refused."""
    context = fetcher.context
    faults, image = context.faults, context.broker.image
    topics = image.topics
    checked = CheckedPartitions(session)
    readable, infos = checked.readable, checked.infos
    denied = _NO_TOPICS if context.broker.authorizer is None else _denied_topics(partitions, fetcher)
    for partition in partitions:
        number = partition.key[1]
        if not partition.topic:
            # This broker may have learned of the topic after it was added to the session.
            partition.topic = image.topic_names.get(partition.fetch.topic_id, "")
        name = partition.topic
        state = topics.get(name)
        if faults is not None and (injected := faults.error_for(name, number)):
            error_code = injected
            checked.has_injected_error = True
        elif denied and name in denied:
            error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif state is not None and 0 <= number < len(state.partitions):
            readable.append(partition)
            infos.append((TopicPartition(name, number), partition.fetch))
            continue
        elif fetcher.uses_topic_ids and not name:
            error_code = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition.update_response_data(FetchPartitionData.failed(error_code))
        checked.refused.append(Refused(partition, error_code))
    if len(checked.refused) > 1 and not fetcher.is_follower:
        # As in Kafka, a client's unknown topic ids come before other refused partitions.
        checked.refused.sort(key=lambda refused: refused.error_code is not ErrorCode.UNKNOWN_TOPIC_ID)
    return checked


def _denied_topics(partitions: Collection[CachedPartition], fetcher: Fetcher) -> AbstractSet[str]:
    """Return the topics that the fetcher may not read; for a follower all or none.

    An unknown id is reported to any client, whatever it may read.
    """
    context = fetcher.context
    topic_names = context.broker.image.topic_names
    names = [partition.topic or topic_names.get(partition.fetch.topic_id, "") for partition in partitions]
    if not fetcher.is_follower:
        return unauthorized_names(context, AclOperation.READ, ResourceType.TOPIC, filter(None, names))
    if is_authorized_on_cluster(context, [AclOperation.CLUSTER_ACTION]):
        return _NO_TOPICS
    return set(names)
