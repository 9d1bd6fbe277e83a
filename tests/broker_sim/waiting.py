"""An operation for tests of what is said of parked ones."""

from broker_sim_purgatory import DelayedOperation


class Waiting(DelayedOperation):
    """An operation that waits until its time is over, and does nothing then."""

    __slots__ = ()

    def try_complete(self):
        return False

    def on_complete(self):
        pass

    on_expiration = on_complete
