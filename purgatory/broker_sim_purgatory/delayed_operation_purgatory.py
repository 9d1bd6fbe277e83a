"""Where operations wait: watched by key, completed by events, expired by the timer.

Mirrors org.apache.kafka.server.purgatory.DelayedOperationPurgatory. Deliberate differences:
one lock covers the watch lists of all keys and the timer; completed operations are left out of what
`cancel_for_key` returns; `shutdown` drops what is parked; a parked operation can be postponed; there is
an observer.
"""

import logging
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Final, Generic

from broker_sim_purgatory._operation_journal import PurgatoryJournal
from broker_sim_purgatory._parked_operations import parked_operations
from broker_sim_purgatory._timing_wheel import DUE, WAITS, WAITS_FIRST
from broker_sim_purgatory._watchers import OperationT, WatcherList
from broker_sim_purgatory.delayed_operation import UNPARKED, DelayedOperation
from broker_sim_purgatory.key_set import KeySet
from broker_sim_purgatory.native import mypyc_attr
from broker_sim_purgatory.observer import IMMEDIATE, SHUTDOWN, PurgatoryObserver
from broker_sim_purgatory.snapshots import ParkedOperation, PurgatoryStatistics
from broker_sim_purgatory.system_timer import NO_LIMIT, Timer

if TYPE_CHECKING:
    from broker_sim_purgatory._expired_operation_reaper import Reaper

_LOGGER = logging.getLogger(__name__)

FEW_KEYS: Final = 16
"""Number of keys above which a `KeySet` is faster than separate watch lists."""
COMPLETED: Final = -1
"""Returned in place of a timer's DUE or WAITS for an operation that is completed."""


@mypyc_attr(native_class=False)
class PurgatoryFullError(RuntimeError):
    """`max_delayed` operations wait already; the rejected operation is neither watched nor completed."""


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedOperationPurgatory(Generic[OperationT]):
    """Parks operations that cannot complete yet.

    `timer` belongs to this purgatory alone. With `reaper_enabled` the timer is advanced by a thread named
    `ExpirationReaper-<broker_id>-<name>` (SystemTimer), by the event loop (LoopTimer), or by the caller that moves
    the time (VirtualTimer). Without it, the owner calls `advance_clock`. Completed operations are swept from the
    watch lists once there are more than
    `purge_interval` of them. `max_delayed` limits the number of operations that wait at a time (default: no limit).

    Any thread may call anything. Keys are hashable values, such as topic partitions.
    """

    # The lock story
    #
    # There are two kinds of locks, taken in this order:
    #   operation.lock       makes the attempts at one operation exclusive; reentrant; may be shared
    #                        by several operations, or None
    #   timer.owner.lock     one per purgatory: watch lists, wheel, delay queue, the figures, and
    #                        `completed` and the links of the operations
    # The second is a leaf: while it is held no other lock is taken and no method of an operation is
    # called; of the user's code only keys are hashed and compared, and clocks are read. An operation
    # that has never been in a purgatory is guarded by UNPARKED.lock instead.
    # An observed purgatory has a third lock, its journal's, which is taken between the two.
    #
    # 1) try_complete_else_watch makes the operation the purgatory's (TaskOwner.adopt). From now on
    #    its fields are guarded by the purgatory's lock.
    # 2) It takes the operation's lock and holds it until 5.
    # 3) It tries the operation. If that fails:
    # 4) Under the purgatory's lock, in one step, the operation comes into the timer and into the
    #    list of every key. After shutdown this raises, and the operation is in none of them.
    # 5) It tries again: an event that came before step 4 is seen by this try.
    #    If the operation is complete then, it leaves the lists at once.
    # 6) If the delay is 0, the operation goes to the executor, now that all locks are free.
    # 7) check_and_complete copies the list of the key under the purgatory's lock, releases it, and
    #    tries one operation after the other, each under the operation's lock. It waits for that
    #    lock, so it never misses that the condition is met because another attempt is under way.
    # 8) force_complete takes the operation's lock, so that it never overlaps with a try. Then it takes the
    #    purgatory's lock and, in one step, sets `completed` and takes the operation out of the timer. A
    #    thread that finds it set has lost; it looks before it waits for the operation's lock, too.
    #    on_complete runs under the operation's lock, without the purgatory's.
    # 9) advance_clock takes the purgatory's lock, waits on it as a condition, empties the buckets
    #    that are due, and releases it. Only then the expired operations go to the executor, which
    #    calls force_complete as in 8, and on_expiration under no lock.
    #
    # Nothing above relies on an interpreter that runs one thread at a time. Without the lock are
    # read: `completed`, to skip an operation early, which 8 decides again; `owner`, which is
    # compared again under its lock; whether a key has a list, where 5 makes up for a list that comes too
    # late; and figures that are for display.
    #
    # Why the operation's lock is held from 2 to 5. If it were only taken for the last try, this
    # could happen:
    # a) thread A holds a shared lock that guards some state, and parks an operation
    # b) A has put the operation on a watch list
    # c) thread B waits for the exclusive side of that state's lock
    # d) thread C calls check_and_complete, takes the operation's lock, and wants the shared side,
    #    which has to queue behind B
    # e) A wants the operation's lock for its last try, which C holds: a deadlock of A, B and C
    # Because A holds the operation's lock from the start, C cannot get it before A is done.
    #
    # What remains is the caller's part: an event must not be announced under an exclusive lock.
    # a) thread A parks an operation, holds its lock, and its try_complete wants lock L
    # b) thread B holds L and calls check_and_complete, which wants the operation's lock
    # The same holds for force_complete and for shutdown(complete_parked=True), which take it as well.
    # So: call them holding no exclusive lock. Queue the call and make it after.

    __slots__ = ("_forgotten_total", "_journal", "_last_id", "_lock", "_max_delayed", "_owner", "_purge_interval",
                 "_purged", "_purges", "_reaper", "_watchers", "is_observed", "name", "timer")  # fmt: skip

    def __init__(
        self,
        name: str,
        timer: Timer,
        *,
        broker_id: int = 0,
        purge_interval: int = 1_000,
        reaper_enabled: bool = True,
        observer: PurgatoryObserver | None = None,
        max_delayed: int | None = None,
    ) -> None:
        self.name = name
        self._max_delayed = NO_LIMIT if max_delayed is None else max_delayed
        self.timer = timer
        self._owner = timer.owner
        self._lock = timer.owner.lock
        self._purge_interval = purge_interval
        # Kafka's estimatedTotalOperations is `owner.purge_below` plus the purge interval.
        self._owner.purge_below = -purge_interval
        self._watchers: WatcherList[OperationT] = WatcherList(self._owner)
        self._forgotten_total = 0
        self._purges = 0
        self._purged = 0
        self._last_id = 0
        self._journal: PurgatoryJournal | None = None
        self.is_observed = observer is not None
        if observer is not None:
            self._journal = PurgatoryJournal(observer, timer.clock)
            self._owner.journal = self._journal
        self._reaper: Reaper | None = None
        if reaper_enabled:
            reaper_name = f"ExpirationReaper-{broker_id}-{name}"
            self._reaper = timer.start_reaper(reaper_name, self.advance_clock, self._purge_if_due)

    def try_complete_else_watch(self, operation: OperationT, keys: Collection[object]) -> bool:
        """Complete `operation` now, or park it under `keys` until an event or its deadline.

        True iff it was completed by this call. An operation that becomes completable while it is
        being watched is watched under none of the keys. Raises ValueError if there are no keys,
        TypeError if a str or bytes stands for the keys, RuntimeError after `shutdown` if the operation would
        have to wait, PurgatoryFullError if `max_delayed` operations wait already.
        """
        if not keys:
            raise ValueError(
                f"{type(operation).__name__} has no keys: pass at least one, so that an event can complete it"
            )
        if type(keys) is str or type(keys) is bytes:
            raise TypeError(f"keys is a single {type(keys).__name__}, {keys!r}: pass a collection, [{keys!r}]")
        owner = self._owner
        if operation.owner is not owner:
            if operation.one_thread and operation.owner is UNPARKED:
                operation.owner = owner  # no other thread knows the operation
            else:
                owner.adopt(operation)
        if self._journal is not None:
            return self._try_complete_else_watch_observed(self._journal, operation, keys)
        placed = self._try_or_park(operation, keys)
        if placed == DUE:
            self.timer.hand_over(operation)
        return placed == COMPLETED

    def is_watched(self, key: object) -> bool:
        """Whether an operation may wait under `key`; if not, `check_and_complete` can be skipped."""
        watchers = self._watchers
        return key in watchers.operations_by_key or key in watchers.sets_by_key

    def key_set(self, few_keys: int = FEW_KEYS) -> KeySet[OperationT]:
        """Return an empty key set, for operations that are parked under the same keys again and again.

        Up to `few_keys` keys it acts like a plain list of keys, which is faster for so few.
        """
        return self._watchers.key_set(few_keys)

    def postpone(self, operation: OperationT, delay_ms: int | None = None) -> bool:
        """Restart the delay of a parked `operation`; return whether it waits on.

        `delay_ms` replaces its delay. The operation stays under its keys and is not tried. False if it no longer
        waits, and always in an observed purgatory, whose observer must see each wait: complete the operation then and
        park another.
        """
        return self._journal is None and self.timer.postpone(operation, delay_ms)

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

        An operation that is also watched under other keys may still be completed by an event there.
        """
        operations = self._watchers.cancel(key)
        for operation in operations:
            operation.cancel()
            if self._journal is not None:
                self._journal.cancelled(operation)
        with self._lock:
            asks_for_purge = self._owner.asks_for_purge()
        if asks_for_purge and self._owner.on_purge_due is not None:
            self._owner.on_purge_due()
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
        with self._lock:
            return self._watchers.entries

    def num_delayed(self) -> int:
        """Return how many operations wait in the timer (Kafka's NumDelayedOperations)."""
        return self.timer.size()

    def statistics(self) -> PurgatoryStatistics:
        """Return the purgatory's figures at this moment."""
        with self._lock:
            watched_keys, watched = self._watchers.counts()
            timer = self.timer.locked_statistics()
            estimated_total = self._owner.purge_below + self._purge_interval
            forgotten_total = self._forgotten_total
            purges, purged = self._purges, self._purged
        return PurgatoryStatistics(
            name=self.name,
            watched=watched,
            num_delayed=timer.size,
            watched_keys=watched_keys,
            estimated_total_operations=estimated_total,
            purges=purges,
            purged=purged,
            total_watched=estimated_total + forgotten_total,
            expired=timer.expired,
            expired_per_second=timer.expired_per_second,
        )

    def parked(self) -> list[ParkedOperation]:
        """Return every operation that waits in the timer, by deadline.

        O(n log n), n being the watched entries.
        """
        now_ms = self.timer.clock.now_ms()
        with self._lock:
            placements = self.timer.locked_placements()
            watch_lists = self._watchers.watched_by_key()
        operations = [(p.task, p) for p in placements if isinstance(p.task, DelayedOperation)]
        for operation, _ in operations:
            self._give_id(operation)
        return parked_operations(operations, watch_lists, now_ms)

    def watch_lists(self) -> list[tuple[object, tuple[OperationT, ...]]]:
        """Return every key with the operations that are watched under it, completed ones included.

        Completed operations of key sets are not included; `watched_by_key` counts them.
        """
        return [(key, operations) for key, operations, _ in self.watched_by_key() if operations]

    def watched_by_key(self) -> list[tuple[object, tuple[OperationT, ...], int]]:
        """Return each key, its operations, and the number of completed operations of key sets, which are not kept."""
        with self._lock:
            return self._watchers.watched_by_key()

    def shutdown(self, *, complete_parked: bool = False) -> None:
        """Stop the reaper at once, then the timer. Idempotent.

        Parked operations are dropped uncompleted, as in Kafka, and reported as cancelled; with `complete_parked` they
        are completed instead. Parking an operation afterwards raises RuntimeError.
        """
        if self._reaper is not None:
            self._reaper.shutdown()
        with self._lock:
            self._owner.closed = True
        if complete_parked:
            for placed in self.timer.placements():
                if isinstance(placed.task, DelayedOperation):
                    self._complete_for_shutdown(placed.task)
        self.timer.shutdown()
        if self._journal is not None:
            self._journal.cancel_all()
        self._watchers.clear()

    def _try_or_park(self, operation: OperationT, keys: Collection[object]) -> int:
        """Try, park, and try again because of events during the first try, all under the operation's lock.

        Returns COMPLETED, or the timer's DUE, WAITS or WAITS_FIRST.
        """
        lock = operation.lock
        if lock is not None:
            lock.acquire()
        try:
            if operation.try_complete():
                return COMPLETED
            placed = self._park(operation, keys)
            if operation.one_thread:
                return placed
            won = operation.try_complete()
            if not operation.completed:
                return placed
            self._watchers.unwatch(operation, keys)
        except BaseException:
            operation.cancel()
            self._watchers.unwatch(operation, keys)
            raise
        finally:
            if lock is not None:
                lock.release()
        return COMPLETED if won else WAITS

    def _park(self, operation: OperationT, keys: Collection[object]) -> int:
        """Watch `operation` and add it to the timer in one step; return DUE, WAITS or WAITS_FIRST."""
        owner = self._owner
        expiration_ms = self.timer.clock.deadline_ms(operation.delay_ms)
        lock = self._lock
        lock.acquire()
        try:
            if operation.completed:
                return WAITS
            if owner.count >= self._max_delayed:
                raise PurgatoryFullError(
                    f"purgatory {self.name} is full: {owner.count} operations wait in it. Try again when some have"
                    f" completed, or raise max_delayed={self._max_delayed}."
                )
            placed = self.timer.locked_add(operation, expiration_ms)
            owner.purge_below += 1
            self._watchers.watch(operation, keys)
        finally:
            lock.release()
        if placed == WAITS_FIRST:
            # Now and not after the second try: the bucket may get other operations during that try.
            self.timer.first_changed()
        return placed

    def _try_complete_else_watch_observed(
        self, journal: PurgatoryJournal, operation: OperationT, keys: Collection[object]
    ) -> bool:
        self._give_id(operation)
        journal.tried(operation, keys)
        placed = WAITS

        def try_or_park() -> bool:
            nonlocal placed
            placed = self._try_or_park(operation, keys)
            return placed == COMPLETED

        try:
            if journal.attempt(operation, IMMEDIATE, try_or_park):
                return True
            journal.parked(operation, keys)
            if placed == DUE:
                self.timer.hand_over(operation)
        except BaseException:
            # A try failed, or the purgatory is shut down: the caller has to deal with it.
            journal.cancelled(operation)
            raise
        return False

    def _purge_if_due(self) -> None:
        """Sweep the watch lists when more than `purge_interval` operations have completed.

        Operations that completed are no longer in the timer but still in the estimate; their
        number is the difference. One that completes during the sweep may be counted twice, so
        it is an estimate.
        """
        owner = self._owner
        with self._lock:
            if owner.count >= owner.purge_below:
                return
            estimated_total = owner.purge_below + self._purge_interval
            self._forgotten_total += estimated_total - owner.count
            owner.purge_below = owner.count - self._purge_interval
            owner.purge_asked = False
            self._purges += 1
        purged = self._watchers.purge_completed()
        with self._lock:
            self._purged += purged
        _LOGGER.debug("%s: purged %d completed operations", self.name, purged)

    def _complete_for_shutdown(self, operation: DelayedOperation) -> None:
        if self._journal is None:
            operation.force_complete()
        else:
            self._journal.attempt(operation, SHUTDOWN, operation.force_complete)

    def _give_id(self, operation: DelayedOperation) -> None:
        with self._lock:
            if operation.operation_id == 0:
                self._last_id += 1
                operation.operation_id = self._last_id
