"""A `broker-sim` with a defect on purpose: `python mutant.py NAME run ...`.

The defect is put into this process only, by replacing a method; that needs the pure build.
"""

from __future__ import annotations

import asyncio
import sys

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.replica.delayed_fetch import DelayedFetch
from broker_sim.replica.delayed_produce import DelayedProduce
from broker_sim.replica.leader_replicas import LeaderReplicas
from broker_sim.replica.partition import Partition
from broker_sim.runtime.delayed_request import DelayedRequest
from purgatory import DelayedOperationPurgatory
from purgatory._delay_queue import DelayQueue

THIRD_WHEEL = 3
ITS_BUCKET_MS = 400
LAST_MS = 100


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
    original = DelayedFetch.try_complete

    def try_complete(self):
        owner = self._partitions.purgatories.fetch
        left_ms = self.expiration_ms - owner.timer.clock.now_ms()
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


def _change_waits(by_ms: int) -> None:
    original = DelayedRequest.__init__

    def init(self, delay_ms, client_id=None):
        original(self, delay_ms + by_ms, client_id)

    DelayedRequest.__init__ = init


MUTANTS = {
    mutate.__name__: mutate
    for mutate in (
        all_waits_20_ms_longer,
        all_waits_2_ms_shorter,
        fetches_of_several_partitions_woken_50_ms_later,
        third_wheel_demotes_one_bucket_late,
        purge_never_runs,
        high_watermark_one_follower_too_early,
        timed_out_produce_has_the_next_base_offset,
        isr_shrinks_one_check_too_late,
        fetch_misses_the_last_wake_up,
        leader_epoch_errors_swapped,
    )
}


if __name__ == "__main__":
    from broker_sim.cli import main

    {"nothing": nothing, **MUTANTS}[sys.argv.pop(1)]()
    main()
