"""A `broker-sim` with a defect on purpose: `python mutant.py NAME run ...`.

The defect is put into this process only, by replacing a method.
"""

from __future__ import annotations

import asyncio
import inspect
import runpy
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from broker_sim_purgatory import DelayedOperationPurgatory, SystemClock
from broker_sim_purgatory._delay_queue import DelayQueue

from broker_sim.broker.lifecycle import BrokerLifecycle, LifecycleState
from broker_sim.config import BrokerConfig, TopicConfig
from broker_sim.controller.cluster_control_manager import ClusterControlManager
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.classic.classic_group import ClassicGroupState
from broker_sim.group.classic.rebalance import DelayedJoin, Rebalance
from broker_sim.group.classic.sessions import MemberSessions
from broker_sim.group.consumer.consumer_groups import ConsumerGroups
from broker_sim.group.offset_metadata import OffsetMetadataManager
from broker_sim.group.shard import GroupShard
from broker_sim.log.partition_log import PartitionLog
from broker_sim.log.producer_state_manager import ProducerStateManager
from broker_sim.log.transaction_index import TransactionIndex
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import NO_PRODUCER_EPOCH
from broker_sim.replica.delayed_fetch import DelayedFetch
from broker_sim.replica.delayed_produce import DelayedProduce
from broker_sim.replica.leader_replicas import LeaderReplicas
from broker_sim.replica.partition import Partition
from broker_sim.runtime.delayed_request import DelayedRequest
from broker_sim.transaction.coordinator import TransactionCoordinator
from broker_sim.transaction.end_transaction import EndOfTransaction
from broker_sim.transaction.metadata import TransactionMetadata
from broker_sim.transaction.state import TransactionVersion

THIRD_WHEEL = 3
ITS_BUCKET_MS = 400
LAST_MS = 100
LATE_MS = 250
FENCED_LATE_MS = 900
"""More than the controller's next check and a look at the metadata may add."""
TRANSACTION_LATE_MS = 300
RETENTION_LATE_MS = 1500
AGE_LATE_MS = 1500
CLEANER_LATE_MS = 2 * AGE_LATE_MS
"""Twice the age. The scenario appends as soon as the cleaner has cleaned the log before, so the age of these
records begins with a pause: a pause that is little longer than the age would end just after it, and show nothing."""


def nothing() -> None:
    """No defect: the control."""


def all_waits_20_ms_longer() -> None:
    """Every request that is parked expires 20 ms late."""
    _change_waits(20)


def all_waits_2_ms_shorter() -> None:
    """Every request that is parked expires 2 ms early."""
    _change_waits(-2)


def fetches_of_several_partitions_woken_50_ms_later() -> None:
    """A consumer's fetch of two partitions or more is completed 50 ms after it could be."""

    def try_complete(self):
        if not self._is_satisfied():
            return False
        if len(self._infos) == 1 or self._params.is_from_follower:
            return self.force_complete()
        asyncio.get_running_loop().call_later(0.05, self.force_complete)
        return False

    DelayedFetch.try_complete = try_complete


def third_wheel_demotes_one_bucket_late() -> None:
    """What waits in the third wheel comes down to the second one when the next bucket is due."""
    original = DelayQueue.offer

    def offer(self, bucket):
        start_ms = bucket.expiration_ms
        if bucket.level == THIRD_WHEEL:
            bucket.expiration_ms += ITS_BUCKET_MS
        try:
            return original(self, bucket)
        finally:
            bucket.expiration_ms = start_ms

    DelayQueue.offer = offer


def purge_never_runs() -> None:
    """Completed operations stay in the watch lists of keys on which nothing happens."""
    DelayedOperationPurgatory._purge_if_due = lambda self: None


def high_watermark_one_follower_too_early() -> None:
    """The high watermark does not wait for the slowest in-sync follower."""

    def candidate(self, leader_end_offset):
        isr = self.isr_state.maximal_isr
        ends = sorted(f.log_end_offset for f in self.followers.values() if f.broker_id in isr)
        return min([leader_end_offset, *ends[1:]])

    LeaderReplicas.high_watermark_candidate = candidate


def timed_out_produce_has_the_next_base_offset() -> None:
    """A produce that timed out is answered with the offset behind its first record."""
    original = DelayedProduce.on_complete

    def on_complete(self):
        for status in self._statuses.values():
            status.base_offset += status.acks_pending
        original(self)

    DelayedProduce.on_complete = on_complete


def isr_shrinks_one_check_too_late() -> None:
    """A follower leaves the ISR when two checks in a row have found it lagging."""
    original = LeaderReplicas.out_of_sync
    found_before = {}

    def out_of_sync(self, leader_end_offset):
        found = original(self, leader_end_offset)
        both = found & found_before.get(id(self), frozenset())
        found_before[id(self)] = found
        return both

    LeaderReplicas.out_of_sync = out_of_sync


def fetch_misses_the_last_wake_up() -> None:
    """A fetch whose timeout is near is not woken; it has the records when it times out."""
    original, clock = DelayedFetch.try_complete, SystemClock()

    def try_complete(self):
        left_ms = self.expiration_ms - clock.now_ms()
        if not self._params.is_from_follower and self.expiration_ms >= 0 and left_ms < LAST_MS:
            return False
        return original(self)

    DelayedFetch.try_complete = try_complete


def leader_epoch_errors_swapped() -> None:
    """FENCED_LEADER_EPOCH where the request's epoch is too new, UNKNOWN_LEADER_EPOCH where too old."""
    original = Partition.local_log
    swapped = {
        ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH: ErrorCode.FENCED_LEADER_EPOCH,
    }

    def local_log(self, current_leader_epoch, require_leader):
        try:
            return original(self, current_leader_epoch, require_leader)
        except ApiError as error:
            raise ApiError(swapped.get(error.error_code, error.error_code)) from error

    Partition.local_log = local_log


def marker_counts_before_the_isr_has_it() -> None:
    """A transaction is over for readers as soon as the leader has its marker."""
    original = ProducerStateManager._end_transaction

    def end_transaction(self, *arguments):
        original(self, *arguments)
        self._unreplicated_txns.clear()
        self._update_first_unstable_offset()

    ProducerStateManager._end_transaction = end_transaction


def last_stable_offset_one_marker_too_early() -> None:
    """The second oldest open transaction sets the last stable offset, not the oldest."""
    original = ProducerStateManager._update_first_unstable_offset

    def update(self):
        original(self)
        if len(self._ongoing_txns) > 1:
            self.first_unstable_offset = sorted(self._ongoing_txns)[1]

    ProducerStateManager._update_first_unstable_offset = update


def last_aborted_transaction_is_not_named() -> None:
    """The list of aborted transactions lacks the last one where it should have several."""
    original = TransactionIndex.collect

    def collect(self, fetch_offset, upper_bound_offset):
        aborted = original(self, fetch_offset, upper_bound_offset)
        return aborted[:-1] if len(aborted) > 1 else aborted

    TransactionIndex.collect = collect


def init_does_not_bump_the_epoch() -> None:
    """Who asks for a producer id again keeps the epoch: nobody before it is fenced."""
    original = TransactionMetadata.prepare_increment_producer_epoch

    def prepare(self, *arguments):
        values = original(self, *arguments)
        if self.producer_epoch == NO_PRODUCER_EPOCH:
            return values
        return values._replace(producer_epoch=self.producer_epoch)

    TransactionMetadata.prepare_increment_producer_epoch = prepare


def timed_out_producer_is_not_fenced() -> None:
    """A transaction whose time is over is aborted in the epoch that its producer has."""

    def abort(self, metadata, fenced, on_done):
        metadata.pending_state = None
        version = TransactionVersion.TV_0
        end = EndOfTransaction(metadata.transactional_id, fenced.producer_id, metadata.producer_epoch, False, version)
        self.end_transaction(end, on_done)

    TransactionCoordinator._abort_to_fence = abort


def offsets_of_an_aborted_transaction_count() -> None:
    """A marker that aborts commits the offsets in the state of the group."""
    original = GroupShard.replay_marker

    def replay_marker(self, producer_id, marker_offset, *, is_commit):
        original(self, producer_id, marker_offset, is_commit=True)

    GroupShard.replay_marker = replay_marker


def sessions_end_late() -> None:
    """A member of a classic group that is silent is removed a quarter of a second late."""
    original = MemberSessions.begin

    def begin(self, group, member, timeout_ms=None):
        if timeout_ms is None:
            timeout_ms = member.session_timeout_ms
        original(self, group, member, timeout_ms + LATE_MS)

    MemberSessions.begin = begin


def joins_wait_late() -> None:
    """A rebalance waits for members, and a group for its first ones, a quarter of a second longer."""
    original = DelayedJoin.__init__

    def init(self, delay_ms, group, phase):
        original(self, delay_ms + LATE_MS, group, phase)

    DelayedJoin.__init__ = init


def consumer_sessions_end_late() -> None:
    """A member of a group of the new protocol that is silent is fenced a quarter of a second late."""
    original = ConsumerGroups.keep_alive

    def keep_alive(self, group_id, member, timeout_ms=None):
        if timeout_ms is None:
            timeout_ms = self.settings.session_timeout_ms(group_id)
        original(self, group_id, member, timeout_ms + LATE_MS)

    ConsumerGroups.keep_alive = keep_alive


def brokers_are_fenced_late() -> None:
    """A broker without heartbeats is fenced most of a second after its session."""
    original = ClusterControlManager.take_expired

    def take_expired(self, delta):
        self._session_timeout_ms += FENCED_LATE_MS
        try:
            return original(self, delta)
        finally:
            self._session_timeout_ms -= FENCED_LATE_MS

    ClusterControlManager.take_expired = take_expired


def transactions_time_out_late() -> None:
    """A transaction is aborted 300 ms after its time is over."""
    original = TransactionMetadata.is_timed_out

    def is_timed_out(self, now_ms):
        return original(self, now_ms - TRANSACTION_LATE_MS)

    TransactionMetadata.is_timed_out = is_timed_out


def retention_is_late() -> None:
    """Records are deleted 1.5 s after they are older than `retention.ms`."""
    original = PartitionLog.delete_old_segments

    def delete(self):
        config = self.config
        self.config = replace(config, retention_ms=config.retention_ms + RETENTION_LATE_MS)
        try:
            return original(self)
        finally:
            self.config = config

    PartitionLog.delete_old_segments = delete


def sync_does_not_wait_for_the_leader() -> None:
    """A follower's sync is answered at once, with no assignment."""
    original = Rebalance.sync_received

    def sync_received(self, group, member_id):
        original(self, group, member_id)
        if group.state is ClassicGroupState.COMPLETING_REBALANCE and not group.is_leader(member_id):
            group.answer_sync(
                group.members[member_id],
                messages.SyncGroupResponse(
                    protocol_type=group.protocol_type_or_none, protocol_name=group.protocol_name
                ),
            )

    Rebalance.sync_received = sync_received


def stopping_broker_asks_again_late() -> None:
    """A broker in a controlled shutdown asks the controller again 3 s late: the others' heartbeats take 2 s."""
    original = BrokerLifecycle._communicate_later

    def communicate_later(self, delay_ms):
        if self.state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN:
            delay_ms += 2 * AGE_LATE_MS
        original(self, delay_ms)

    BrokerLifecycle._communicate_later = communicate_later


def offsets_expire_late() -> None:
    """A committed offset is kept 1.5 s longer than its commit says."""
    original = OffsetMetadataManager._written

    def written(self, commit, *arguments, **options):
        kept_ms = commit.retention_time_ms + AGE_LATE_MS
        return original(self, commit._replace(retention_time_ms=kept_ms), *arguments, **options)

    OffsetMetadataManager._written = written


def _wait_longer(configs: type, name: str, late_ms: int = AGE_LATE_MS) -> None:
    """Let all that reads a configuration see so much more than was set."""
    original = configs.__init__
    longer = type("Longer", (int,), {})  # what `replace` takes from another one is not made longer

    def init(self, *arguments, **values):
        original(self, *arguments, **values)
        if not isinstance(wait_ms := getattr(self, name), longer):
            object.__setattr__(self, name, longer(wait_ms + late_ms))

    configs.__init__ = init


def _change_waits(by_ms: int) -> None:
    original = DelayedRequest.__init__

    def init(self, delay_ms, client_id=None):
        original(self, delay_ms + by_ms, client_id)

    DelayedRequest.__init__ = init


MUTANTS = {
    name: found
    for name, found in list(globals().items())
    if inspect.isfunction(found) and found.__module__ == __name__ and not name.startswith("_")
}
"""Mutants by name, in the order of this file; the first one has no defect."""
WAITS = {
    "idle_connections_are_closed_late": (BrokerConfig, "connections_max_idle_ms"),
    "transactional_ids_expire_late": (BrokerConfig, "transactional_id_expiration_ms"),
    "producers_expire_late": (BrokerConfig, "producer_id_expiration_ms"),
    "segments_are_rolled_late": (TopicConfig, "segment_ms"),
    "young_records_are_compacted_late": (TopicConfig, "min_compaction_lag_ms"),
    "old_records_are_compacted_late": (TopicConfig, "max_compaction_lag_ms"),
    "cleaner_looks_late": (BrokerConfig, "log_cleaner_backoff_ms", CLEANER_LATE_MS),
}
"""Each waits longer than a configuration says: 1.5 s, or the time that is given."""
MUTANTS |= {name: partial(_wait_longer, *wait) for name, wait in WAITS.items()}
for other in ("share_mutants.py", "streams_mutants.py"):
    MUTANTS |= runpy.run_path(str(Path(__file__).with_name(other)))["MUTANTS"]


if __name__ == "__main__":
    from broker_sim.cli import main

    MUTANTS[sys.argv.pop(1)]()
    main()
