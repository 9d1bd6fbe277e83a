"""A partition on one broker, which leads or follows it; mirrors `kafka.cluster.Partition`.

The leader keeps a `Replica` for every follower, moves the high watermark to the smallest log end
offset of the in-sync replicas, and asks the controller to shrink or expand the ISR.

Deliberate differences: all of a broker's state lives on one loop, so there is no
`leaderIsrUpdateLock`; a log moves to another directory in one step, so there are no future replicas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.log import EMPTY_FETCH, AppendOrigin, UnexpectedAppendOffsetError
from broker_sim.protocol.special_values import ACKS_ALL, NO_EPOCH
from broker_sim.replica.fetch_params import FetchIsolation, FetchParams, FetchPartition, FetchPartitionData
from broker_sim.replica.leader_replicas import LeaderReplicas
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim_purgatory import Clock

    from broker_sim.config import TopicConfig
    from broker_sim.log import Appendable, LogAppendInfo, PartitionLog, VerificationGuard
    from broker_sim.metadata import PartitionState
    from broker_sim.metadata.cache import MetadataCache
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.isr_state import IsrState, PendingIsr
    from broker_sim.replica.replica import Replica
    from broker_sim.runtime.event_log import EventLogger

log = get_logger(__name__)

DELETE_TO_HIGH_WATERMARK = -1

# Python 3.11 takes 0.1 us to look up a member of an enum, and every fetch needs these.
_NO_ERROR: Final = ErrorCode.NONE
_HIGH_WATERMARK: Final = FetchIsolation.HIGH_WATERMARK
_LOG_END: Final = FetchIsolation.LOG_END
_TXN_COMMITTED: Final = FetchIsolation.TXN_COMMITTED


class Partition:
    """The state of a partition on this broker."""

    __slots__ = (
        "_clock",
        "_complete_delayed_requests",
        "_submit_alter_partition",
        "broker_id",
        "config",
        "is_leader",
        "leader_epoch",
        "leader_epoch_start_offset",
        "leader_id",
        "log",
        "partition_epoch",
        "replica_states",
        "replicas",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes,
        broker_id: int,
        partition_log: PartitionLog,
        config: TopicConfig,
        *,
        clock: Clock,
        replica_lag_time_max_ms: int,
        metadata: MetadataCache,
        submit_alter_partition: Callable[[Partition, PendingIsr], None],
        complete_delayed_requests: Callable[[TopicPartition], None],
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.broker_id = broker_id
        self.log = partition_log
        self.config = config
        self.replicas: tuple[int, ...] = ()
        self.replica_states = LeaderReplicas(broker_id, clock, replica_lag_time_max_ms, metadata)
        self.is_leader = False
        self.leader_id = -1
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.leader_epoch_start_offset: int | None = None
        self._clock = clock
        self._submit_alter_partition = submit_alter_partition
        self._complete_delayed_requests = complete_delayed_requests

    # -- roles ----------------------------------------------------------------------------------

    def make_leader(self, state: PartitionState) -> bool:
        """Become the leader unless `state` is stale; return True if this broker was not the leader before."""
        if state.partition_epoch < self.partition_epoch:
            return False
        is_new_leader = not self.is_leader
        if is_new_leader:
            self.log.offsets.on_moved = self.replica_states.wake
        isr_before = self.isr_state.isr
        self.replicas = state.replicas
        self.replica_states.assign(state.replicas, state.isr)
        if state.leader_epoch > self.leader_epoch:
            start_offset = self.log.log_end_offset
            self.log.leader_epoch_cache.begin(state.leader_epoch, start_offset)
            self.replica_states.start_epoch(start_offset, is_new_leader)
            self.leader_epoch = state.leader_epoch
            self.leader_epoch_start_offset = start_offset
            self._log_event(
                "leader_started",
                leader_epoch=state.leader_epoch,
                start_offset=start_offset,
                high_watermark=self.log.high_watermark,
                isr=list(state.isr),
            )
        elif not is_new_leader:
            self._log_isr_change(isr_before)
        self.partition_epoch = state.partition_epoch
        self.leader_id = self.broker_id
        self.is_leader = True
        if self._maybe_increment_leader_hw():
            self._complete_delayed_requests(self.topic_partition)
        return is_new_leader

    def make_follower(self, state: PartitionState) -> bool:
        """Become a follower unless `state` is stale; return True if the leader epoch is new."""
        if state.partition_epoch < self.partition_epoch:
            return False
        is_new_epoch = state.leader_epoch > self.leader_epoch
        self.log.offsets.on_moved = None
        self.is_leader = False
        self.leader_id = state.leader
        self.leader_epoch = state.leader_epoch
        self.leader_epoch_start_offset = None
        self.partition_epoch = state.partition_epoch
        self.replicas = state.replicas
        self.replica_states.clear()
        if is_new_epoch:
            self._log_event(
                "follower_started",
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                log_end_offset=self.log.log_end_offset,
            )
        return is_new_epoch

    def reconfigure(self, config: TopicConfig) -> None:
        """Set a new topic configuration; a smaller `min.insync.replicas` may move the high watermark."""
        self.config = config
        self.log.update_config(config)
        if self.is_leader and self._maybe_increment_leader_hw():
            self._complete_delayed_requests(self.topic_partition)

    # -- reading --------------------------------------------------------------------------------

    def local_log(self, current_leader_epoch: int, require_leader: bool) -> PartitionLog:
        """Return the log, or raise FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER.

        `current_leader_epoch` is the epoch in the request, -1 if the request has none.
        """
        if current_leader_epoch not in (NO_EPOCH, self.leader_epoch):
            if current_leader_epoch < self.leader_epoch:
                raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if require_leader and not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.log

    def check_high_watermark(self) -> None:
        """Raise OFFSET_NOT_AVAILABLE while the high watermark is below the leader epoch's start (KIP-207)."""
        start_offset = self.leader_epoch_start_offset
        if start_offset is not None and start_offset > self.log.high_watermark:
            raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE)

    def fetch_end_offset(self, isolation: FetchIsolation) -> int:
        """Return the offset at which a fetch with this isolation level ends."""
        offsets = self.log.offsets
        if isolation is _LOG_END:
            return offsets.local_log.log_end_offset
        if isolation is _HIGH_WATERMARK:
            return offsets.high_watermark
        return offsets.last_stable_offset

    def fetch_records(
        self,
        params: FetchParams,
        fetch: FetchPartition,
        *,
        max_bytes: int,
        min_one_message: bool,
        update_fetch_state: bool,
    ) -> FetchPartitionData:
        """Read for a consumer or a follower; a follower's fetch also updates its `Replica`.

        Raises `ApiError` as `local_log` does, or with OFFSET_OUT_OF_RANGE.
        """
        local_log = self.log
        if not (self.is_leader and fetch.current_leader_epoch == self.leader_epoch):
            self.local_log(fetch.current_leader_epoch, params.fetch_only_leader)
        replica: Replica | None = None
        if params.is_from_follower:
            replica = self.replica_states.followers.get(params.replica_id)
            if replica is None:
                raise ApiError(
                    ErrorCode.UNKNOWN_LEADER_EPOCH
                    if fetch.current_leader_epoch >= 0
                    else ErrorCode.NOT_LEADER_OR_FOLLOWER
                )
        offsets = local_log.offsets
        high_watermark = offsets.high_watermark
        last_stable_offset = offsets.last_stable_offset
        log_start_offset = offsets.log_start_offset
        if fetch.last_fetched_epoch >= 0:
            diverging = self.diverging_epoch(fetch)
            if diverging is not None:
                return FetchPartitionData(
                    _NO_ERROR, high_watermark, last_stable_offset, log_start_offset, diverging_epoch=diverging
                )
        leader_end_offset = offsets.local_log.log_end_offset
        isolation = params.isolation
        end = high_watermark if isolation is _HIGH_WATERMARK else self.fetch_end_offset(isolation)
        if end <= fetch.fetch_offset <= leader_end_offset and fetch.fetch_offset >= log_start_offset:
            data = EMPTY_FETCH  # as most fetches that come to wait
        else:
            data = local_log.read(
                fetch.fetch_offset,
                max_bytes,
                upper_bound_offset=end,
                min_one_message=min_one_message,
                as_view=params.as_views,
            )
        if replica is not None and update_fetch_state:
            self._update_follower_fetch_state(replica, fetch, leader_end_offset, params.replica_epoch)
        result = FetchPartitionData(_NO_ERROR, high_watermark, last_stable_offset, log_start_offset)
        if data.first_entry_incomplete:
            # As in Kafka, part of a batch is not returned: the next fetch may get the whole batch (KIP-74).
            return result
        result.records, result.size_bytes = data.records, data.size_bytes
        result.view = data.view
        if isolation is _TXN_COMMITTED:
            aborted = local_log.aborted_transactions(fetch.fetch_offset, data.size_bytes)
            result.aborted_transactions = aborted
        return result

    def diverging_epoch(self, fetch: FetchPartition) -> tuple[int, int] | None:
        """Return the epoch and end offset where the fetcher's log diverges from this one (KIP-595).

        None if it does not diverge. Raises OFFSET_OUT_OF_RANGE if this log does not know the epoch.
        """
        offsets = self.log.offsets
        if (
            fetch.last_fetched_epoch == self.log.leader_epoch_cache.latest_epoch
            and offsets.log_start_offset <= fetch.fetch_offset <= offsets.local_log.log_end_offset
        ):
            return None
        epoch, end_offset = self.end_offset_for_epoch(fetch.last_fetched_epoch)
        if epoch < 0 or end_offset < 0 or fetch.fetch_offset < offsets.log_start_offset:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < fetch.last_fetched_epoch or end_offset < fetch.fetch_offset:
            return (epoch, end_offset)
        return None

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return the largest known epoch up to `leader_epoch` and its end offset; (-1, -1) if none."""
        return self.log.leader_epoch_cache.end_offset_for(leader_epoch, self.log.log_end_offset)

    # -- writing --------------------------------------------------------------------------------

    def check_append(self, required_acks: int) -> None:
        """Raise `ApiError` if this broker may not append: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS."""
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if required_acks == ACKS_ALL and self.is_under_min_isr:
            isr, min_isr = sorted(self.isr_state.isr), self.effective_min_isr
            text = f"The ISR {isr} of {self.topic_partition} is smaller than {min_isr}"
            raise ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, text)

    def append_records_to_leader(
        self,
        records: Appendable,
        required_acks: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_version: int = 0,
        verification_guard: VerificationGuard | None = None,
    ) -> tuple[LogAppendInfo, bool]:
        """Append as leader; return the append info, and whether the high watermark moved.

        Raises `ApiError` as `check_append` and `PartitionLog.append_as_leader`.
        """
        self.check_append(required_acks)
        info = self.log.append_as_leader(records, self.leader_epoch, origin, transaction_version, verification_guard)
        return info, self._maybe_increment_leader_hw(isr_is_checked=required_acks == ACKS_ALL)

    def append_records_to_follower(self, records: Sequence[bytes | memoryview]) -> None:
        """Append records fetched from the leader.

        Into an empty log, the first batch may begin before the log's end: the leader's log starts inside it.
        """
        try:
            self.log.append_as_follower(records, self.leader_epoch)
        except UnexpectedAppendOffsetError as error:
            end_offset = self.log.log_end_offset
            is_empty = end_offset == self.log.log_start_offset
            if not (is_empty and error.first_offset < end_offset <= error.last_offset):
                raise
            self.log.truncate_fully_and_start_at(error.first_offset)
            self.log.append_as_follower(records, self.leader_epoch)

    def check_enough_replicas_reach_offset(self, required_offset: int) -> tuple[bool, ErrorCode]:
        """Return whether an acks=all append up to `required_offset` is done, and the error code."""
        if not self.is_leader:
            return (False, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.log.offsets.high_watermark < required_offset:
            return (False, _NO_ERROR)
        is_enough = len(self.replica_states.isr_state.maximal_isr) >= self.effective_min_isr
        return (True, _NO_ERROR if is_enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

    def delete_records_on_leader(self, offset: int) -> tuple[int, int]:
        """Move the log start offset to `offset`; return the new log start offset and the low watermark.

        An offset of -1 stands for the high watermark. Raises `ApiError`: NOT_LEADER_OR_FOLLOWER,
        POLICY_VIOLATION, OFFSET_OUT_OF_RANGE.
        """
        if not self.is_leader:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if not self.config.is_deleted_by_age:
            raise ApiError(
                ErrorCode.POLICY_VIOLATION,
                f"Records of {self.topic_partition} cannot be deleted: cleanup.policy has no 'delete'",
            )
        target_offset = self.log.high_watermark if offset == DELETE_TO_HIGH_WATERMARK else offset
        if target_offset < 0 or target_offset > self.log.high_watermark:
            raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
        self.log.offsets.maybe_increment_log_start_offset(target_offset)
        return (target_offset, self.low_watermark)

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of the live replicas, as last reported to the leader."""
        return self.replica_states.low_watermark(self.log.log_start_offset)

    # -- in-sync replicas and the high watermark ------------------------------------------------

    @property
    def isr_state(self) -> IsrState:
        """The ISR, and any change of it that is in flight."""
        return self.replica_states.isr_state

    @property
    def effective_min_isr(self) -> int:
        """`min.insync.replicas`, capped at the number of replicas."""
        return min(self.config.min_insync_replicas, len(self.replica_states.followers) + 1)

    @property
    def is_under_min_isr(self) -> bool:
        """Whether the leader's ISR is smaller than `min.insync.replicas`."""
        size = len(self.replica_states.isr_state.isr)
        is_small = size < self.config.min_insync_replicas  # the cheap test first: usually False
        return is_small and self.is_leader and size < self.effective_min_isr

    def _update_follower_fetch_state(
        self, replica: Replica, fetch: FetchPartition, leader_end_offset: int, broker_epoch: int
    ) -> None:
        if self.replica_states.metadata.is_stale_epoch(replica.broker_id, broker_epoch):  # KIP-903
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        previous_end_offset = replica.log_end_offset
        previous_start_offset = replica.log_start_offset
        replica.update_fetch_state(
            fetch_offset=fetch.fetch_offset,
            log_start_offset=fetch.log_start_offset,
            fetch_time_ms=self._clock.now_ms(),
            leader_end_offset=leader_end_offset,
            broker_epoch=broker_epoch,
        )
        start_offset = self.leader_epoch_start_offset
        if start_offset is not None and self.replica_states.may_join_isr(
            replica, self.log.offsets.high_watermark, start_offset
        ):
            self._propose_isr(self.isr_state.isr | {replica.broker_id})
        moved = previous_end_offset != replica.log_end_offset and self._maybe_increment_leader_hw()
        if moved or replica.log_start_offset > previous_start_offset:
            self._complete_delayed_requests(self.topic_partition)

    def _maybe_increment_leader_hw(self, *, isr_is_checked: bool = False) -> bool:
        """Move the high watermark if the ISR allows it; it stays while the ISR is too small (KIP-966)."""
        if not isr_is_checked and self.is_under_min_isr:
            return False
        offsets = self.log.offsets
        candidate = self.replica_states.high_watermark_candidate(offsets.local_log.log_end_offset)
        return offsets.maybe_increment_high_watermark(candidate)

    def maybe_shrink_isr(self) -> None:
        """Propose to remove the followers that have not caught up for `replica.lag.time.max.ms`."""
        if not self.is_leader or self.isr_state.is_inflight:
            return
        out_of_sync = self.replica_states.out_of_sync(self.log.log_end_offset)
        if out_of_sync:
            self._propose_isr(self.isr_state.isr - out_of_sync)

    def _propose_isr(self, isr: frozenset[int]) -> None:
        pending = self.replica_states.propose(isr, self.leader_epoch, self.partition_epoch)
        if pending is not None:
            self._logger().debug("isr_proposed", isr=sorted(pending.isr), proposed=sorted(isr))
            self._submit_alter_partition(self, pending)

    def complete_alter_partition(
        self, proposed: PendingIsr, isr: frozenset[int], leader_epoch: int, partition_epoch: int
    ) -> None:
        """Set the ISR that the controller has accepted, unless the state has changed in the meantime."""
        if (
            self.isr_state is not proposed
            or leader_epoch != self.leader_epoch
            or partition_epoch < self.partition_epoch
        ):
            return
        self.replica_states.commit(isr)
        self._log_isr_change(proposed.isr)
        self.partition_epoch = partition_epoch
        if self._maybe_increment_leader_hw():
            self._complete_delayed_requests(self.topic_partition)

    def fail_alter_partition(self, proposed: PendingIsr, error_code: ErrorCode) -> bool:
        """Handle a refusal by the controller; return whether to send the same change again."""
        return self.replica_states.refuse(proposed, error_code)

    # -- the event log --------------------------------------------------------------------------

    def _log_isr_change(self, before: frozenset[int]) -> None:
        """Log that the ISR has shrunk or expanded; log nothing if it is unchanged."""
        isr = self.isr_state.isr
        if before != isr:
            self._log_event(
                "isr_shrunk" if before - isr else "isr_expanded",
                isr=sorted(isr),
                previous_isr=sorted(before),
                high_watermark=self.log.high_watermark,
                log_end_offset=self.log.log_end_offset,
            )

    def _log_event(self, event: str, **values: object) -> None:
        if log.is_enabled_for_info:
            self._logger().info(event, **values)

    def _logger(self) -> EventLogger:
        return log.bind(self._clock, node=f"broker-{self.broker_id}", partition=str(self.topic_partition))
