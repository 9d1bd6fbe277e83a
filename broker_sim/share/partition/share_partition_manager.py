"""The share partitions that a broker leads, and who fetches from them; mirrors `SharePartitionManager`.

A share partition is made when it is first fetched, and its state is read then. It goes when the broker leads the
partition no more, when the share coordinator says that another broker does, or when the last connection is
lost on which members of its group had sessions.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim_purgatory import TimerTask

from broker_sim.errors import NOT_HOSTED_TEXT, ApiError, ErrorCode
from broker_sim.metadata.feature_names import SHARE_VERSION
from broker_sim.replica.share_fetch_keys import DelayedShareFetchGroupKey, DelayedShareFetchPartitionKey
from broker_sim.share.partition.acknowledgement import Changes
from broker_sim.share.partition.delayed_share_fetch import DelayedShareFetch
from broker_sim.share.partition.record_state import AcknowledgeType
from broker_sim.share.partition.share_partition import SharePartition
from broker_sim.share.partition.share_partition_cache import SharePartitionCache
from broker_sim.share.session import ShareSessionCache, ShareSessionKey, ShareSessions
from broker_sim.share.share_state import SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from broker_sim.metadata import MetadataImage
    from broker_sim.metadata.topic_partition import TopicIdPartition, TopicPartition
    from broker_sim.share.partition.acknowledgement import AcknowledgementBatch
    from broker_sim.share.partition.environment import ShareGroupSettings, SharePartitionEnvironment
    from broker_sim.share.partition.manager_environment import SharePartitionManagerEnvironment
    from broker_sim.share.partition.share_fetch import ShareFetch

    Errors = Mapping["TopicIdPartition", "ApiError | None"]
    OnAcknowledged = Callable[[Errors], object]

_FENCING = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
"""The errors that say that this broker has no right to a share partition any more."""

MOST_TRIED_ONE_BY_ONE: Final = 64
"""A share fetch of more partitions is tried once for all those that an answer of the share coordinator has begun."""


class SharePartitionManager:
    """Serves ShareFetch and ShareAcknowledge. Thread rule: the broker's loop."""

    def __init__(
        self,
        environment: SharePartitionManagerEnvironment,
        make_partition_environment: Callable[
            [Callable[[SharePartitionKey], int], Callable[[SharePartitionKey], object]], SharePartitionEnvironment
        ],
    ) -> None:
        """`make_partition_environment(complete_delayed, announce)` is called once."""
        self._environment = environment
        self._purgatory = environment.purgatory
        self._reader = environment.reader
        self.partitions = SharePartitionCache()
        self.sessions = ShareSessions(ShareSessionCache(environment.max_share_sessions))
        self.acknowledged_records = dict.fromkeys(AcknowledgeType, 0)
        """How many records were acknowledged in which way; Kafka's `RecordAcknowledgementsPerSec`."""
        self._partition_environment = make_partition_environment(
            self._complete_delayed, lambda key: self._announce([DelayedShareFetchGroupKey(*key)])
        )
        self._listeners: dict[SharePartitionKey, Callable[[], object]] = {}
        self._announced: dict[object, None] = {}
        """Watched keys under which share fetches are tried after the running handler has returned."""
        self.round = 0
        """Which tries belong together, see `_try_all`; 0 between them."""
        self._rounds = 0
        cache = self.sessions.cache
        cache.on_member_leave = lambda *key: self.release_session(ShareSessionKey(*key))
        cache.on_group_empty = self._group_is_empty

    @property
    def settings(self) -> ShareGroupSettings:
        """The configurations of share groups."""
        return self._partition_environment.settings

    # -- fetching -------------------------------------------------------------------------------

    def fetch_messages(self, fetch: ShareFetch) -> None:
        """Let the member acquire records, now or when there are some."""
        if fetch.is_empty:
            fetch.maybe_complete({})
            return
        keys: list[object] = []
        found: dict[TopicIdPartition, SharePartition] = {}
        for one in fetch.partitions:
            key = _key(fetch.group_id, one)
            try:
                share_partition = self._get_or_create(key, one.topic_partition)
            except ApiError as error:
                fetch.add_erroneous([one], error)
                continue
            keys.extend(_watched(key))
            self._initialize(share_partition, fetch, one)
            found[one] = share_partition
        if fetch.has_error_in_all_partitions:
            fetch.maybe_complete({})
            return
        operation = DelayedShareFetch(fetch, found, self._reader, self, self._environment.rng)
        self._purgatory.try_complete_else_watch(operation, keys)

    def _get_or_create(self, key: SharePartitionKey, topic_partition: TopicPartition) -> SharePartition:
        share_partition = self.partitions.get(key)
        if share_partition is None:
            leader_epoch = self._reader.leader_partition(topic_partition).leader_epoch
            share_partition = SharePartition(
                key,
                topic_partition,
                leader_epoch,
                self._partition_environment,
                partial(self._reader.find_offset, topic_partition, leader_epoch),
            )
            self.partitions.add(share_partition)
            listener = self._listeners[key] = partial(self._remove, key)
            self._environment.listeners.add(topic_partition, listener)
        return share_partition

    def _initialize(self, share_partition: SharePartition, fetch: ShareFetch, partition: TopicIdPartition) -> None:
        """Read the state, if that was not done; until then the fetch waits.

        It is tried when the share partition has its state, before the next one of the same answer has.
        """
        is_waited_for = False

        def done(error: ApiError | None) -> None:
            if error is not None and error.error_code is not ErrorCode.LEADER_NOT_AVAILABLE:
                self._remove(share_partition.key)
                fetch.add_erroneous([partition], error)
            if not is_waited_for:
                return
            if len(fetch.partitions) <= MOST_TRIED_ONE_BY_ONE:
                self._complete_delayed(share_partition.key)
            else:
                self._announce([DelayedShareFetchGroupKey(*share_partition.key)])

        share_partition.maybe_initialize(done)
        is_waited_for = True

    def wait_idly(self, delay_ms: int, on_done: Callable[[], object]) -> None:
        """Call `on_done()` after the delay: there is no room for the session of a share fetch."""
        self._purgatory.timer.add(_IdleShareFetchTimerTask(delay_ms, on_done))

    def handle_error(self, group_id: str, partition: TopicIdPartition, error: ApiError) -> None:
        """Fence the share partition, if this broker has no right to it any more."""
        if error.error_code in _FENCING:
            self._remove(_key(group_id, partition))

    def fetch_locks_released(self, group_id: str, partitions: Iterable[TopicIdPartition]) -> None:
        """Try the share fetches that wait for these, after the running handler has returned."""
        for one in partitions:
            self._announce(_watched(_key(group_id, one)))

    def _announce(self, keys: Iterable[object]) -> None:
        """Try the share fetches under these keys after the running handler has returned."""
        if not self._announced:
            self._environment.after_serving(self._try_announced)
        self._announced.update(dict.fromkeys(keys))

    def _try_announced(self) -> None:
        announced, self._announced = self._announced, {}
        self._try_all(announced)

    def _try_all(self, keys: Iterable[object]) -> None:
        """Try the share fetches under these keys, each once: a try looks at all of its partitions.

        What one of them takes or gives back it announces when it completes, so another try would find the same.
        """
        self._rounds += 1
        self.round = self._rounds
        try:
            for key in keys:
                self._purgatory.check_and_complete(key)
        finally:
            self.round = 0

    def _complete_delayed(self, key: SharePartitionKey) -> int:
        return self._purgatory.check_and_complete(DelayedShareFetchGroupKey(*key))

    # -- acknowledging --------------------------------------------------------------------------

    def acknowledge(
        self,
        key: ShareSessionKey,
        batches: Mapping[TopicIdPartition, Sequence[AcknowledgementBatch]],
        on_done: OnAcknowledged,
    ) -> None:
        """Take what the member says of its records; answer each partition when it is written.

        Raises FailedRequestError: then nobody is answered.
        """
        answers = _Answers(batches, on_done)
        changes = Changes()
        for partition, acknowledged in batches.items():
            share_partition = self.partitions.get(_key(key.group_id, partition))
            if share_partition is None:
                answers.add(partition, _unknown_partition())
                continue

            def done(
                error: ApiError | None,
                partition: TopicIdPartition = partition,
                acknowledged: Sequence[AcknowledgementBatch] = acknowledged,
            ) -> None:
                if error is None:
                    self._count(acknowledged)
                else:
                    self.handle_error(key.group_id, partition, error)
                answers.add(partition, error)

            self._announce([DelayedShareFetchGroupKey(*share_partition.key)])
            share_partition.acknowledge(key.member_id, acknowledged, changes, done)
        answers.finish()

    def _count(self, batches: Iterable[AcknowledgementBatch]) -> None:
        for batch in batches:
            types = batch.acknowledge_types
            records = batch.last_offset - batch.first_offset + 1
            for acknowledge_type in set(types):
                count = records if len(types) == 1 else types.count(acknowledge_type)
                self.acknowledged_records[AcknowledgeType(acknowledge_type)] += count

    def release_session(self, key: ShareSessionKey) -> None:
        """End the session, and make available what its member has acquired."""
        session = self.sessions.cache.get(key)
        partitions = [] if session is None else list(session)
        self.sessions.cache.remove(key)
        for partition in partitions:
            share_partition = self.partitions.get(_key(key.group_id, partition))
            if share_partition is not None:
                share_partition.release_acquired_records(
                    key.member_id, partial(self._released, key.group_id, partition)
                )
                self._announce([DelayedShareFetchGroupKey(*share_partition.key)])

    def _released(self, group_id: str, partition: TopicIdPartition, error: ApiError | None) -> None:
        if error is not None:
            self.handle_error(group_id, partition, error)

    # -- the end of share partitions ------------------------------------------------------------

    def _group_is_empty(self, group_id: str) -> None:
        for key in self.partitions.keys_of_group(group_id):
            self._remove(key)

    def _remove(self, key: SharePartitionKey) -> None:
        """Serve the share partition no more, and let what waits for it see that."""
        share_partition = self.partitions.remove(key)
        if share_partition is not None:
            share_partition.mark_fenced()
            listener = self._listeners.pop(key)
            self._environment.listeners.remove(share_partition.topic_partition, listener)
            self._announce(_watched(key))

    def on_image(self, image: MetadataImage) -> None:
        """End all sessions and share partitions if the cluster does not serve share groups any more."""
        if image.features.get(SHARE_VERSION):
            return
        self.sessions.cache.remove_all()
        for share_partition in list(self.partitions):
            self._remove(share_partition.key)

    def shutdown(self) -> None:
        """Let no lock end any more: the broker dies."""
        self._partition_environment.timer.shutdown()


def _watched(key: SharePartitionKey) -> tuple[object, ...]:
    """Return the keys under which share fetches wait for the share partition."""
    return (DelayedShareFetchGroupKey(*key), DelayedShareFetchPartitionKey(key.topic_id, key.partition))


class _Answers:
    """Collects the answers of partitions; tells all when there are all, and no more come."""

    __slots__ = ("_answers", "_is_finished", "_on_done", "_order")

    def __init__(self, order: Iterable[TopicIdPartition], on_done: OnAcknowledged) -> None:
        self._order = list(order)
        self._answers: dict[TopicIdPartition, ApiError | None] = {}
        self._is_finished = False
        self._on_done = on_done

    def add(self, partition: TopicIdPartition, error: ApiError | None) -> None:
        self._answers[partition] = error
        self._maybe_tell()

    def finish(self) -> None:
        self._is_finished = True
        self._maybe_tell()

    def _maybe_tell(self) -> None:
        if self._is_finished and len(self._answers) == len(self._order):
            self._on_done({partition: self._answers[partition] for partition in self._order})


class _IdleShareFetchTimerTask(TimerTask):
    """Answers a share fetch without a session when its time is over."""

    __slots__ = ("_on_done",)

    def __init__(self, delay_ms: int, on_done: Callable[[], object]) -> None:
        super().__init__(delay_ms)
        self._on_done = on_done

    def run(self) -> None:
        """Answer."""
        self._on_done()


def _key(group_id: str, partition: TopicIdPartition) -> SharePartitionKey:
    return SharePartitionKey(group_id, partition.topic_id, partition.partition)


def _unknown_partition() -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED_TEXT)
