"""Defects of share groups; see mutant.py."""

import asyncio
import inspect
from dataclasses import replace
from types import SimpleNamespace

from broker_sim.group.share.share_groups import ShareGroups
from broker_sim.share.partition.acquisition_lock import AcquisitionLocks
from broker_sim.share.partition.delayed_share_fetch import DelayedShareFetch
from broker_sim.share.partition.share_partition import SharePartition
from broker_sim.share.partition.waiting_share_fetches import WaitingShareFetches

WAIT_LATE_MS = 20
WOKEN_LATE_MS = 50
LATE_MS = 250


def record_locks_end_late() -> None:
    """What a member has acquired is available again a quarter of a second late."""
    original = AcquisitionLocks.lock

    def lock(self, *arguments):
        duration_ms = self._duration_ms
        self._duration_ms = lambda: duration_ms() + LATE_MS
        try:
            return original(self, *arguments)
        finally:
            self._duration_ms = duration_ms

    AcquisitionLocks.lock = lock


def share_fetches_wait_late() -> None:
    """A share fetch that finds nothing is answered 20 ms after its time."""
    original = DelayedShareFetch.__init__

    def init(self, *arguments):
        original(self, *arguments)
        self.delay_ms += WAIT_LATE_MS

    DelayedShareFetch.__init__ = init


def share_fetches_are_woken_late() -> None:
    """A share fetch that was parked is completed 50 ms after it could be."""
    original = DelayedShareFetch.force_complete

    def force_complete(self):
        is_parked = self.expiration_ms >= 0
        if not is_parked or self.is_completed() or not self._acquired:
            return original(self)
        offsets, self._acquired = self._acquired, {}
        self._release_fetch_locks(offsets)
        asyncio.get_running_loop().call_later(WOKEN_LATE_MS / 1000, original, self)
        return False

    DelayedShareFetch.force_complete = force_complete


def timed_out_locks_wake_nobody() -> None:
    """Records whose lock is over are delivered to who waits for them at the end of its wait only."""
    original = SharePartition.__init__

    def init(self, key, topic_partition, leader_epoch, environment):
        nobody = SimpleNamespace(complete=lambda _: 0, announce=lambda _: None)
        original(self, key, topic_partition, leader_epoch, replace(environment, waiting_fetches=nobody))

    SharePartition.__init__ = init


def share_sessions_end_late() -> None:
    """A silent member of a share group is fenced a quarter of a second late."""
    original = ShareGroups.keep_alive

    def keep_alive(self, group_id, member, timeout_ms=None):
        if timeout_ms is None:
            timeout_ms = self.settings.session_timeout_ms(group_id)
        original(self, group_id, member, timeout_ms + LATE_MS)

    ShareGroups.keep_alive = keep_alive


def share_sessions_are_refused_late() -> None:
    """A share fetch without room for its session is answered a quarter of a second late."""
    original = WaitingShareFetches.add_refused

    def add_refused(self, delay_ms, on_timeout):
        original(self, delay_ms + LATE_MS, on_timeout)

    WaitingShareFetches.add_refused = add_refused


MUTANTS = {
    name: found
    for name, found in list(globals().items())
    if inspect.isfunction(found) and found.__module__ == __name__ and not name.startswith("_")
}
