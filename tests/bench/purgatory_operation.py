"""The operation that the benchmarks park, as a user writes one."""

from broker_sim_purgatory.delayed_operation import DelayedOperation


class Operation(DelayedOperation):
    """Is complete once somebody says so."""

    __slots__ = ("ready",)

    def __init__(self, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self.ready = False

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        pass

    def on_expiration(self) -> None:
        pass
