"""Where operations wait: watched by key, completed by events, expired by the timer.

Mirrors org.apache.kafka.server.purgatory.DelayedOperationPurgatory. Deliberate differences:
the watch lists of all keys share a lock; completed operations are left out of what
`cancel_for_key` returns; `shutdown` drops what is parked; there is an observer.
"""

import logging
from collections.abc import Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Generic

from purgatory.delayed_operation import DelayedOperation
from purgatory.locks import LeafLock
from purgatory.native import mypyc_attr
from purgatory.observer import IMMEDIATE, SHUTDOWN, PurgatoryObserver
from purgatory.operation_journal import PurgatoryJournal
from purgatory.snapshots import ParkedOperation, PurgatoryStatistics
from purgatory.system_timer import Timer
from purgatory.watchers import OperationT, WatcherList

if TYPE_CHECKING:
    from purgatory.expired_operation_reaper import Reaper

_LOGGER = logging.getLogger(__name__)


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperationPurgatory(Generic[OperationT]):
    """Parks operations that cannot complete yet.

    `timer` belongs to this purgatory alone. With `reaper_enabled` the timer's reaper advances it:
    of a SystemTimer a thread named `ExpirationReaper-<broker_id>-<name>`, of a LoopTimer the
    event loop, of a VirtualTimer whoever moves the time. Without, the owner calls
    `advance_clock`. Completed operations are swept from the watch lists once there are more than
    `purge_interval` of them.

    Any thread may call anything. Keys are hashable values, such as topic partitions.
    """

    # The lock story. Locks are taken in this order, and the last two are leaves:
    #   the operation's lock  ->  the watch lists' lock  |  the timer's lock
    # try_complete_else_watch watches and tries again under the operation's lock. If that lock
    # were only taken for the last try, this could happen:
    # 1) thread A holds a shared lock that guards some state, and parks an operation
    # 2) A has put the operation on a watch list
    # 3) thread B waits for the exclusive side of that state's lock
    # 4) thread C calls check_and_complete, takes the operation's lock, and wants the shared side,
    #    which has to queue behind B
    # 5) A wants the operation's lock for its last try, which C holds: A, B and C wait for ever
    # As it is, C cannot get the operation's lock before A is done with it.
    # What remains is the caller's part: an event must not be announced under an exclusive lock.
    # 1) thread A parks an operation, holds its lock, and its try_complete wants lock L
    # 2) thread B holds L and calls check_and_complete, which wants the operation's lock
    # So: call check_and_complete holding no exclusive lock. Queue the call and make it after.

    __slots__ = ("_estimate_lock", "_ids", "_journal", "_left_total", "_purge_interval", "_purges",
                 "_reaper", "_watchers", "name", "timer")  # fmt: skip

    def __init__(
        self,
        name: str,
        timer: Timer,
        *,
        broker_id: int = 0,
        purge_interval: int = 1_000,
        reaper_enabled: bool = True,
        observer: PurgatoryObserver | None = None,
    ) -> None:
        self.name = name
        self.timer = timer
        self._purge_interval = purge_interval
        self._watchers: WatcherList[OperationT] = WatcherList()
        self._estimate_lock = LeafLock()
        # Kafka's estimatedTotalOperations is the difference between all that came and this.
        self._left_total = 0
        self._purges = 0
        self._ids = count(1)
        self._journal: PurgatoryJournal | None = None
        if observer is not None:
            self._journal = PurgatoryJournal(observer, timer.clock, self._ids)
        self._reaper: Reaper | None = None
        if reaper_enabled:
            reaper_name = f"ExpirationReaper-{broker_id}-{name}"
            self._reaper = timer.start_reaper(reaper_name, self.advance_clock)

    def try_complete_else_watch(self, operation: OperationT, keys: Sequence[object]) -> bool:
        """Complete `operation` now, or park it under `keys` until an event or its deadline.

        True iff it was completed by this call. `keys` must not be empty; they are kept with the
        operation, so do not change them. An operation that somebody else completes while it is
        being watched is not watched under the remaining keys.
        """
        assert keys, "an operation must be watched under at least one key"
        # Trying costs about as much as watching under all keys, so it is tried before and after
        # and not once per key. The second try comes after the operation is on every list: an
        # event that came too early for the lists came early enough for the try.
        if self._journal is not None:
            return self._try_complete_else_watch_observed(self._journal, operation, keys)
        if self._try_or_watch(operation, keys):
            return True
        self._delay(operation)
        return False

    def check_and_complete(self, key: object) -> int:
        """Try every operation watched under `key`; return how many this call completed.

        Call it after the state that the operations wait for has changed, holding no exclusive
        lock. An exception from an operation passes through, and those after it are not tried.
        """
        journal = self._journal
        if journal is None:
            return self._watchers.check_and_complete(key, None)
        return self._watchers.check_and_complete(key, partial(journal.attempt_for_key, key))

    def cancel_for_key(self, key: object) -> list[OperationT]:
        """Drop the watch list of `key`; return its operations, uncompleted and out of the timer.

        Those that are watched under other keys too may still be completed by them.
        """
        operations = self._watchers.cancel(key)
        for operation in operations:
            operation.cancel()
            if self._journal is not None:
                self._journal.cancelled(operation)
        return operations

    def advance_clock(self, timeout_ms: int) -> bool:
        """Expire what is due, waiting at most `timeout_ms` for it, then purge if it is time to.

        True if a bucket of the timer expired. This is the reaper's loop body; without a reaper
        the owner calls it.
        """
        try:
            return self.timer.advance_clock(timeout_ms)
        finally:
            self._purge_if_due()

    def watched(self) -> int:
        """Return the entries of all watch lists (Kafka's PurgatorySize).

        An operation counts once per key, and completed ones count until they are purged.
        """
        return self._watchers.counts()[1]

    def num_delayed(self) -> int:
        """Return how many operations wait in the timer (Kafka's NumDelayedOperations)."""
        return self.timer.size()

    def statistics(self) -> PurgatoryStatistics:
        """Return one moment of this purgatory."""
        watched_keys, watched = self._watchers.counts()
        timer = self.timer.statistics()
        return PurgatoryStatistics(
            name=self.name,
            watched=watched,
            num_delayed=timer.size,
            watched_keys=watched_keys,
            estimated_total_operations=self._watchers.total - self._left_total,
            purges=self._purges,
            total_watched=self._watchers.total,
            expired=timer.expired,
            expired_per_second=timer.expired_per_second,
        )

    def parked(self) -> list[ParkedOperation]:
        """Return every operation that waits in the timer, the one due first first. O(n log n)."""
        now_ms = self.timer.clock.now_ms()
        snapshots = []
        for task, level, bucket in self.timer.placements():
            if not isinstance(task, DelayedOperation):
                continue
            if task.operation_id == 0:
                task.operation_id = next(self._ids)
            snapshots.append(
                ParkedOperation(
                    operation_id=task.operation_id,
                    operation=type(task).__name__,
                    keys=tuple(task.watch_keys),
                    delay_ms=task.delay_ms,
                    age_ms=max(now_ms - task.created_ms, 0),
                    time_left_ms=max(task.expiration_ms - now_ms, 0),
                    wheel_level=level,
                    wheel_bucket=bucket,
                )
            )
        snapshots.sort(key=lambda snapshot: (snapshot.time_left_ms, snapshot.operation_id))
        return snapshots

    def watch_lists(self) -> list[tuple[object, tuple[OperationT, ...]]]:
        """Return every key that has a watch list, with its operations, completed ones included."""
        return self._watchers.watch_lists()

    def shutdown(self, *, complete_parked: bool = False) -> None:
        """Stop the reaper at once, then the timer. Idempotent.

        What is parked is dropped uncompleted, as in Kafka, and reported as cancelled; with
        `complete_parked` it is completed first. Parking anything afterwards raises RuntimeError.
        """
        if self._reaper is not None:
            self._reaper.shutdown()
        if complete_parked:
            for placed in self.timer.placements():
                if isinstance(placed.task, DelayedOperation):
                    self._complete_for_shutdown(placed.task)
        self.timer.shutdown()
        if self._journal is not None:
            self._journal.cancel_all()
        self._watchers.clear()

    def _try_or_watch(self, operation: OperationT, keys: Sequence[object]) -> bool:
        """`safe_try_complete_or_else`, written out: every request does it."""
        own = operation.own_lock
        if own is not None:
            own.acquire()
            try:
                return self._try_watch_try(operation, keys)
            finally:
                own.leave()
        lock = operation.lock
        if lock is None:
            return self._try_watch_try(operation, keys)
        lock.acquire()  # see TimerTask.cancel
        try:
            return self._try_watch_try(operation, keys)
        finally:
            lock.release()

    def _try_watch_try(self, operation: OperationT, keys: Sequence[object]) -> bool:
        """Try, watch, and try again because of what came meanwhile; its lock, if any, is held."""
        if operation.try_complete():
            return True
        operation.watch_keys = keys
        self._watchers.watch(operation, keys)
        return not operation.one_thread and operation.try_complete()

    def _delay(self, operation: OperationT) -> None:
        """Put `operation` into the timer, unless it is completed by then."""
        self.timer.add(operation)
        if operation.completed:
            # It was completed before it was in the timer, so that found nothing to cancel.
            operation.cancel()

    def _try_complete_else_watch_observed(
        self, journal: PurgatoryJournal, operation: OperationT, keys: Sequence[object]
    ) -> bool:
        journal.tried(operation, keys)
        try:
            if journal.attempt(
                operation,
                IMMEDIATE,
                lambda: self._try_or_watch(operation, keys),
            ):
                return True
            journal.parked(operation)
            self._delay(operation)
        except BaseException:
            # A try failed, or the purgatory is shut down: its caller has to deal with it.
            journal.cancelled(operation)
            raise
        return False

    def _purge_if_due(self) -> None:
        """Sweep the watch lists when more than `purge_interval` operations have completed.

        Operations that completed are no longer in the timer but still in the estimate; their
        number is the difference. One that completes during the sweep may be counted twice, so
        it is an estimate.
        """
        with self._estimate_lock:
            delayed = self.timer.size()
            left = self._watchers.total - delayed
            if left - self._left_total <= self._purge_interval:
                return
            self._left_total = left
            self._purges += 1
        purged = self._watchers.purge_completed()
        _LOGGER.debug("%s: purged %d completed operations", self.name, purged)

    def _complete_for_shutdown(self, operation: DelayedOperation) -> None:
        if self._journal is None:
            operation.force_complete()
        else:
            self._journal.attempt(operation, SHUTDOWN, operation.force_complete)
