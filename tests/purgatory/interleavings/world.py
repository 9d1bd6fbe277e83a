"""What the programs of an interleaving act on: a purgatory in virtual time and an operation in it."""

import _thread

from broker_sim_purgatory import DelayedOperation, DelayedOperationPurgatory, InlineExecutor, SystemTimer, VirtualClock


class Operation(DelayedOperation):
    """Can be completed once it is ready; counts what happens to it."""

    def __init__(self, explorer, lock="own"):
        self.explorer = explorer
        self.ready = False
        self.completions = 0
        self.expirations = 0
        self.threads_in_try = []
        super().__init__(10, None if lock in {"own", "none"} else lock)
        if lock == "none":
            self.lock = None

    def try_complete(self):
        self.threads_in_try.append(_thread.get_ident())
        ready = self.ready
        self.explorer.pause()
        completed = ready and self.force_complete()
        self.threads_in_try.remove(_thread.get_ident())
        return completed

    def on_complete(self):
        self.completions += 1
        if self.lock is not None:
            assert set(self.threads_in_try) <= {_thread.get_ident()}, "it completes while another thread tries it"
        self.explorer.pause()

    def on_expiration(self):
        self.expirations += 1


def paused(name):
    """Return what stands for a field and lets the explorer decide before each access to it."""
    field = getattr(DelayedOperation, name)

    def read(operation):
        operation.explorer.pause()
        return field.__get__(operation)

    def write(operation, value):
        operation.explorer.pause()
        field.__set__(operation, value)

    return property(read, write)


class FieldsOperation(Operation):
    """Can be interrupted at each access to a field that is also read without a lock.

    Compiled code reads fields directly, so this is for pure Python.
    """

    completed = paused("completed")
    owner = paused("owner")


class Ends:
    """An observer that notes what it is told, and can be interrupted while it does."""

    def __init__(self, explorer):
        self._explorer = explorer
        self.tries = self.parks = 0
        self.ends = []

    def tried(self, operation, keys):
        self._explorer.pause()
        self.tries += 1

    def parked(self, operation, keys):
        self._explorer.pause()
        self.parks += 1

    def completed(self, operation, by):
        self.ends.append(by)
        self._explorer.pause()

    def expired(self, operation, lateness_ms):
        self.ends.append("expired")
        self._explorer.pause()

    def cancelled(self, operation):
        self.ends.append("cancelled")
        self._explorer.pause()


class World:
    """A purgatory in virtual time, an operation on keys a and b, and what programs do to them."""

    def __init__(self, explorer, lock="own", *, purge_interval=1_000, observed=False, fields=False):
        self._explorer = explorer
        explorer.pauses_after = fields
        self._make = FieldsOperation if fields else Operation
        self._lock = lock
        self.clock = VirtualClock()
        self.timer = SystemTimer("test", self.clock, InlineExecutor())
        self.observer = Ends(explorer) if observed else None
        self.purgatory = DelayedOperationPurgatory(
            "test", self.timer, reaper_enabled=False, purge_interval=purge_interval, observer=self.observer
        )
        self.operation = self.new_operation()
        self.cancelled = []
        self.refused = False

    def new_operation(self):
        return self._make(self._explorer, self._lock)

    def park(self, operation=None):
        try:
            self.purgatory.try_complete_else_watch(operation or self.operation, ["a", "b"])
        except RuntimeError:
            self.refused = True

    def announce(self, key="a"):
        self.operation.ready = True
        self.purgatory.check_and_complete(key)

    def announce_b(self):
        self.announce("b")

    def check(self):
        """Announce an event before which nothing has changed."""
        self.purgatory.check_and_complete("a")

    def force(self):
        self.operation.force_complete()

    def expire(self):
        self.clock.advance(10)
        self.purgatory.advance_clock(0)

    def purge(self):
        self.purgatory.advance_clock(0)

    def cancel(self):
        self.cancelled += self.purgatory.cancel_for_key("a")

    def shutdown(self):
        self.purgatory.shutdown()

    def shutdown_completing(self):
        self.purgatory.shutdown(complete_parked=True)

    def is_whole(self):
        """Check that each operation has ended once, or waits in the timer and under its keys."""
        operation = self.operation
        placed = [each.task for each in self.timer.placements()]
        assert self.timer.size() == len(placed) == len(set(placed))
        assert operation.completions == operation.is_completed()
        assert operation.expirations <= operation.completions
        watched = dict(self.purgatory.watch_lists())
        if operation in placed:
            assert not operation.is_completed()
            assert operation in watched["a"]
            assert operation in watched["b"]
        elif not operation.is_completed() and not self.cancelled:
            assert operation not in [*watched.get("a", ()), *watched.get("b", ())]

    def ends(self):
        """Check that the operation ends now if it has not, and that nothing of it is left."""
        self.is_whole()
        self.announce("a")
        self.announce("b")
        gone = self.refused or self.cancelled
        assert self.operation.completions == 1 or gone
        self.is_whole()
        statistics = self.purgatory.statistics()
        assert (statistics.num_delayed, statistics.watched, statistics.watched_keys) == (0, 0, 0)
        if self.observer is not None:
            assert len(self.observer.ends) == self.observer.tries
            assert self.observer.parks <= self.observer.tries
