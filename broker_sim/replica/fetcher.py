"""Replication from leaders; mirrors `AbstractFetcherThread`, `ReplicaFetcherThread` and `ReplicaFetcherManager`.

There is one fetcher for every leader that this broker follows.

One fetch is in flight at a time, for all partitions that this broker follows on that leader. It lists only
the partitions that are new or changed since the session's last fetch (KIP-227); a failed fetch ends the
session. A follower truncates its log to the diverging epoch in the leader's response (KIP-595).

Deliberate differences: callbacks instead of a thread; a log start offset that retention has moved is sent
within `replica.fetch.wait.max.ms`, not with the next fetch.
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log import OffsetsOutOfOrderError, UnexpectedAppendOffsetError, suppress_storage_error
from broker_sim.replica.fetch_params import FetchIsolation, FetchParams, FetchPartition
from broker_sim.replica.follower_session import INITIAL_EPOCH, FollowerFetch
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.config import BrokerConfig
    from broker_sim.log import PartitionLog
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.fetch_params import FetchPartitionData
    from broker_sim.replica.leader_link import LeaderLink
    from broker_sim.replica.partition import Partition
    from broker_sim.replica.replica_quota import ReplicaQuota
    from broker_sim.runtime.process import Handle, Process

log = get_logger(__name__)

MIN_PAUSE_MS = 1


class Outcome(Enum):
    """Result of the leader's response for one partition."""

    APPLIED = "applied"
    ADVANCED = "applied, and the high watermark has moved"
    FAILED = "not applied; the partition is delayed by the backoff"


# Python 3.11 takes 0.1 us to look up an enum member, and every response needs one.
_APPLIED: Final = Outcome.APPLIED
_ADVANCED: Final = Outcome.ADVANCED
_FAILED: Final = Outcome.FAILED


class FetchState:
    """The position in one followed partition; mirrors `PartitionFetchState`. `fetch` is replaced, never changed.

    `sent` is the fetch that the leader's session has; it is the same object as `fetch` unless that has changed
    since. `lag` is the distance from the log end offset to the leader's high watermark when records last arrived,
    None before the first response.
    """

    __slots__ = ("delayed_until_ms", "fetch", "lag", "partition", "sent")

    def __init__(self, partition: Partition, fetch: FetchPartition) -> None:
        self.partition = partition
        self.fetch = fetch
        self.sent: FetchPartition | None = None
        self.delayed_until_ms = 0
        self.lag: int | None = None

    def is_in_sync(self) -> bool:
        """Whether the follower has reached the leader's high watermark, as far as it knows."""
        return self.lag is not None and self.lag <= 0


class ReplicaFetcher:
    """Replicates the partitions of one leader."""

    def __init__(
        self,
        leader_id: int,
        process: Process,
        config: BrokerConfig,
        leaders: LeaderLink,
        *,
        replica_id: int,
        broker_epoch: Callable[[], int],
        complete_delayed_fetches: Callable[[TopicPartition], object],
        quota: ReplicaQuota,
    ) -> None:
        self.leader_id = leader_id
        self._process = process
        self._config = config
        self._leaders = leaders
        # With a pause of 0 ms, fetches would follow each other endlessly at one instant of virtual time.
        self._backoff_ms = max(config.replica_fetch_backoff_ms, MIN_PAUSE_MS)
        self._replica_id = replica_id
        self._broker_epoch = broker_epoch
        self._complete_delayed_fetches = complete_delayed_fetches
        self._quota = quota
        self._clock = process.clock
        self._log = log.bind(process.clock, node=process.name, leader=leader_id)
        self._params: FetchParams | None = None
        self._states: dict[TopicPartition, FetchState] = {}
        self._epoch = INITIAL_EPOCH
        self._unsent: dict[TopicPartition, FetchState] = {}
        self._to_forget: list[TopicPartition] = []
        self._checked_ms = 0
        self._on_log_start_moved = self._note_moved  # one object for all partitions
        self._moved: dict[TopicPartition, None] = {}
        """Partitions whose log start offset has moved on this broker since the last check."""
        self._request: object | None = None
        self._backoff: Handle | None = None
        self._timeout: Handle | None = None
        self._sent_ms = 0

    def __len__(self) -> int:
        return len(self._states)

    def add(self, partition: Partition) -> None:
        """Start fetching the partition in its current leader epoch."""
        topic_partition = partition.topic_partition
        self.remove(topic_partition)
        state = FetchState(partition, self._initial_fetch(partition))
        self._states[topic_partition] = self._unsent[topic_partition] = state
        partition.log.offsets.on_log_start_moved = self._on_log_start_moved
        self._process.call_soon(self._end_backoff)

    def remove(self, topic_partition: TopicPartition) -> None:
        """Stop fetching the partition; a response in flight is ignored."""
        state = self._states.pop(topic_partition, None)
        if state is not None:
            self._take_back(topic_partition, state)
            del self._unsent[topic_partition]

    def _take_back(self, topic_partition: TopicPartition, state: FetchState) -> None:
        """Make the next fetch remove the partition from the leader's session."""
        self._unsent[topic_partition] = state
        if state.sent is not None:
            state.sent = None
            self._to_forget.append(topic_partition)

    def shutdown(self) -> None:
        """Stop fetching from this leader."""
        self._states.clear()
        self._unsent.clear()
        self._request = None
        for handle in (self._backoff, self._timeout):
            if handle is not None:
                handle.cancel()
        self._backoff = self._timeout = None

    def _initial_fetch(self, partition: Partition) -> FetchPartition:
        """Return a fetch from the log end; a log without epochs is truncated to its high watermark first."""
        local_log = partition.log
        if local_log.leader_epoch_cache.latest_epoch is None:
            local_log.truncate_to(local_log.high_watermark)
        return self._next_fetch(partition, local_log.log_end_offset)

    def _next_fetch(self, partition: Partition, fetch_offset: int) -> FetchPartition:
        local_log = partition.log
        latest_epoch = local_log.leader_epoch_cache.latest_epoch
        return FetchPartition(
            fetch_offset=fetch_offset,
            max_bytes=self._config.replica_fetch_max_bytes,
            topic_id=partition.topic_id,
            log_start_offset=local_log.offsets.log_start_offset,
            current_leader_epoch=partition.leader_epoch,
            last_fetched_epoch=-1 if latest_epoch is None else latest_epoch,
        )

    # -- the loop -------------------------------------------------------------------------------

    def _maybe_fetch(self) -> None:
        """Send the next fetch unless one is in flight; if no partition is ready, wait for the backoff."""
        if self._request is not None or self._backoff is not None or not self._states:
            return
        now_ms = self._clock.now_ms()
        fetch = self._next_request(now_ms)
        if fetch is None:
            self._backoff = self._process.call_later(self._backoff_ms, self._end_backoff)
            return
        request = self._request = object()
        self._sent_ms = now_ms
        if self._timeout is None:
            self._timeout = self._process.call_later(self._config.replica_socket_timeout_ms, self._check_timeout)
        self._leaders.fetch(
            self.leader_id, fetch, partial(self._on_response, request), partial(self._on_failure, request)
        )

    def _next_request(self, now_ms: int) -> FollowerFetch | None:
        """Return a fetch of all changes to the leader's session; None while all partitions are delayed."""
        params = self._fetch_params()
        if now_ms - self._checked_ms >= self._config.replica_fetch_wait_max_ms:
            self._check_log_starts(now_ms)
        throttled = self._take_throttled_back() if self._quota.is_quota_exceeded() else ()
        to_send: list[tuple[TopicPartition, FetchPartition]] = []
        for topic_partition, state in list(self._unsent.items()):
            if state.delayed_until_ms <= now_ms and topic_partition not in throttled:
                del self._unsent[topic_partition]
                state.sent = state.fetch
                to_send.append((topic_partition, state.fetch))
        if len(self._unsent) == len(self._states):
            return None
        to_forget, self._to_forget = self._to_forget, []
        epoch = self._epoch
        self._epoch += 1
        return FollowerFetch(params, epoch, to_send, to_forget)

    def _take_throttled_back(self) -> set[TopicPartition]:
        """Remove the throttled partitions from the session, and return them; mirrors `shouldFollowerThrottle`."""
        throttled = set()
        for topic_partition, state in self._states.items():
            if not state.is_in_sync() and self._quota.is_throttled(topic_partition):
                self._take_back(topic_partition, state)
                throttled.add(topic_partition)
        return throttled

    def _note_moved(self, topic_partition: TopicPartition) -> None:
        self._moved[topic_partition] = None

    def _check_log_starts(self, now_ms: int) -> None:
        """Send the log start offsets that retention has moved on this broker; the others cost nothing."""
        self._checked_ms = now_ms
        moved, self._moved = self._moved, {}
        for topic_partition in moved:
            state = self._states.get(topic_partition)
            if state is None:
                continue
            fetch = state.fetch
            if fetch.log_start_offset != state.partition.log.log_start_offset:
                state.fetch = self._next_fetch(state.partition, fetch.fetch_offset)
                self._unsent[topic_partition] = state

    def _begin_session(self) -> None:
        """Make the next fetch begin a new session, with all partitions."""
        self._epoch = INITIAL_EPOCH
        self._to_forget.clear()
        self._unsent = dict(self._states)
        for state in self._states.values():
            state.sent = None

    def _fetch_params(self) -> FetchParams:
        """Return the fetch parameters; a new broker epoch changes them and begins a new session."""
        broker_epoch = self._broker_epoch()
        if self._params is None or self._params.replica_epoch != broker_epoch:
            self._begin_session()
            self._params = FetchParams(
                max_wait_ms=max(self._config.replica_fetch_wait_max_ms, MIN_PAUSE_MS),
                min_bytes=max(self._config.replica_fetch_min_bytes, 1),
                max_bytes=self._config.replica_fetch_response_max_bytes,
                isolation=FetchIsolation.LOG_END,
                replica_id=self._replica_id,
                replica_epoch=broker_epoch,
                client_id=f"replica-{self._replica_id}",
            )
        return self._params

    def _end_backoff(self) -> None:
        if self._backoff is not None:
            self._backoff.cancel()
            self._backoff = None
        self._maybe_fetch()

    def _check_timeout(self) -> None:
        """Fail a fetch that has timed out; one timer serves all fetches in turn."""
        self._timeout = None
        if self._request is None:
            return
        waited_ms = self._clock.now_ms() - self._sent_ms
        remaining_ms = self._config.replica_socket_timeout_ms - waited_ms
        if remaining_ms > 0:
            self._timeout = self._process.call_later(remaining_ms, self._check_timeout)
        else:
            self._on_failure(self._request)

    def _on_failure(self, request: object) -> None:
        """Delay all partitions by the backoff: the leader cannot be reached."""
        if self._request is not request:
            return
        self._request = None
        self._begin_session()
        self._delay(list(self._states))
        self._maybe_fetch()

    def _on_response(
        self, request: object, results: Sequence[tuple[TopicPartition, FetchPartitionData]] | None
    ) -> None:
        if self._request is not request:
            return
        self._request = None
        if results is None:
            self._begin_session()
            self._maybe_fetch()
            return
        failed: list[TopicPartition] = []
        advanced: list[TopicPartition] = []
        for topic_partition, data in results:
            state = self._states.get(topic_partition)
            # The partition may have been removed since, or added again in a newer epoch.
            if state is None or state.fetch is not state.sent:
                continue
            outcome = self._apply(topic_partition, state, data)
            if outcome is _ADVANCED:
                advanced.append(topic_partition)
            elif outcome is _FAILED:
                failed.append(topic_partition)
            if state.fetch is not state.sent and topic_partition in self._states:
                self._unsent[topic_partition] = state
        if failed:
            self._delay(failed)
        self._maybe_fetch()
        for topic_partition in advanced:
            self._complete_delayed_fetches(topic_partition)

    def _apply(self, topic_partition: TopicPartition, state: FetchState, data: FetchPartitionData) -> Outcome:
        """Process the leader's response for one partition."""
        if data.error_code:
            return self._handle_error(topic_partition, state, data.error_code)
        if data.diverging_epoch is None:
            return self._process_data(topic_partition, state, data)
        with suppress_storage_error():
            self._truncate(state, *data.diverging_epoch)
        return _APPLIED

    def _process_data(self, topic_partition: TopicPartition, state: FetchState, data: FetchPartitionData) -> Outcome:
        """Append the records, and adopt the leader's high watermark and log start offset."""
        partition = state.partition
        offsets = partition.log.offsets
        try:
            if data.size_bytes:
                partition.append_records_to_follower(data.records)
            old_high_watermark = offsets.high_watermark
            offsets.update_high_watermark(data.high_watermark)
            offsets.maybe_increment_log_start_offset(data.log_start_offset)
        except (ApiError, UnexpectedAppendOffsetError, OffsetsOutOfOrderError) as error:
            self._log.warning("replica_append_failed", partition=str(topic_partition), error=str(error))
            return _FAILED
        if self._quota.is_throttled(topic_partition):
            self._quota.record(data.size_bytes)
        if data.size_bytes or state.lag is None:
            state.lag = max(0, data.high_watermark - offsets.local_log.log_end_offset)
        fetch = state.fetch
        if (
            data.size_bytes
            or offsets.log_start_offset != fetch.log_start_offset
            or partition.leader_epoch != fetch.current_leader_epoch
        ):
            state.fetch = self._next_fetch(partition, offsets.local_log.log_end_offset)
        return _APPLIED if offsets.high_watermark == old_high_watermark else _ADVANCED

    def _truncate(self, state: FetchState, leader_epoch: int, leader_end_offset: int) -> None:
        """Truncate the log to the point where the leader's log diverges."""
        local_log = state.partition.log
        target = truncation_offset(local_log, leader_epoch, leader_end_offset)
        name = str(state.partition.topic_partition)
        self._log.info("log_truncated", partition=name, offset=target)
        local_log.truncate_to(target)
        state.fetch = self._next_fetch(state.partition, target)

    def _handle_error(self, topic_partition: TopicPartition, state: FetchState, error_code: ErrorCode) -> Outcome:
        if error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._reset_offset(topic_partition, state)
        elif error_code is ErrorCode.FENCED_LEADER_EPOCH:
            # The leader is in a newer epoch, whose metadata will add the partition again.
            self.remove(topic_partition)
        else:
            self._log.debug("replica_fetch_failed", partition=str(topic_partition), error=error_code.name)
            return _FAILED
        return _APPLIED

    def _delay(self, topic_partitions: Sequence[TopicPartition]) -> None:
        until_ms = self._clock.now_ms() + self._backoff_ms
        for topic_partition in topic_partitions:
            state = self._states.get(topic_partition)
            if state is not None:
                state.delayed_until_ms = until_ms
                self._take_back(topic_partition, state)

    def _reset_offset(self, topic_partition: TopicPartition, state: FetchState) -> None:
        """Move the fetch offset into the leader's offset range; mirrors `fetchOffsetAndTruncate`."""
        fetch = state.fetch
        self._delay([topic_partition])

        def on_bounds(error_code: ErrorCode, leader_start_offset: int, leader_end: int) -> None:
            if self._states.get(topic_partition) is not state or state.fetch is not fetch:
                return
            if error_code is not ErrorCode.NONE:
                return
            local_log = state.partition.log
            with suppress_storage_error():
                if leader_end < local_log.log_end_offset:
                    local_log.truncate_to(leader_end)
                elif leader_start_offset > local_log.log_end_offset:
                    local_log.truncate_fully_and_start_at(leader_start_offset)
            state.fetch = self._next_fetch(state.partition, local_log.log_end_offset)
            state.lag = leader_end - local_log.log_end_offset
            self._unsent[topic_partition] = state
            state.delayed_until_ms = 0
            self._end_backoff()

        self._leaders.fetch_log_bounds(
            self.leader_id, topic_partition, fetch.current_leader_epoch, on_bounds, lambda: None
        )


def truncation_offset(log: PartitionLog, leader_epoch: int, leader_end_offset: int) -> int:
    """Return the offset to truncate the follower's log to; mirrors `getOffsetTruncationState`."""
    end_offset = log.log_end_offset
    epoch, epoch_end_offset = log.leader_epoch_cache.end_offset_for(leader_epoch, end_offset)
    if epoch < 0:
        return min(leader_end_offset, end_offset)
    if epoch != leader_epoch:
        return min(epoch_end_offset, end_offset)
    return min(epoch_end_offset, leader_end_offset, end_offset)


class FetcherManager:
    """Starts and stops the replication of partitions, and moves it to new leaders."""

    def __init__(self, make_fetcher: Callable[[int], ReplicaFetcher]) -> None:
        """`make_fetcher(leader_id)` returns a fetcher without partitions; mirrors `createFetcherThread`."""
        self._make_fetcher = make_fetcher
        self._fetchers: dict[int, ReplicaFetcher] = {}

    def follow(self, partition: Partition) -> None:
        """Fetch the partition from its current leader, and from no other."""
        self.unfollow(partition.topic_partition)
        fetcher = self._fetchers.get(partition.leader_id)
        if fetcher is None:
            fetcher = self._fetchers[partition.leader_id] = self._make_fetcher(partition.leader_id)
        fetcher.add(partition)

    def unfollow(self, topic_partition: TopicPartition) -> None:
        """Stop fetching the partition."""
        for fetcher in self._fetchers.values():
            fetcher.remove(topic_partition)

    def shutdown_idle_fetchers(self) -> None:
        """Remove the fetchers without partitions."""
        for leader_id, fetcher in list(self._fetchers.items()):
            if not len(fetcher):
                fetcher.shutdown()
                del self._fetchers[leader_id]
