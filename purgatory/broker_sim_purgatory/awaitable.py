"""Delayed operations that coroutines can await.

Kafka has no counterpart; its requests are answered from callbacks.
"""

import asyncio
import math
from collections.abc import Callable, Collection, Generator
from typing import Any, Generic, TypeVar, cast

from broker_sim_purgatory.delayed_operation import DelayedOperation
from broker_sim_purgatory.delayed_operation_purgatory import DelayedOperationPurgatory
from broker_sim_purgatory.loop_timer import call_on_loop

_ResultT = TypeVar("_ResultT")


class AwaitableOperation(DelayedOperation, Generic[_ResultT]):
    """Completes when `condition()` is true; `await` it on the loop it was made on.

    The result is the last value of the condition: a true one, such as a record or a list, or a false one if the
    operation expired or was forced to complete. When the awaiting task is cancelled, the operation leaves its timer.
    Events may come from any thread; `condition` is called there, by one thread at a time.

    A subclass that overrides `on_complete` has to call this one.
    """

    __slots__ = ("_condition", "_future", "_loop", "_result")

    def __init__(self, delay_ms: int, condition: Callable[[], _ResultT]) -> None:
        super().__init__(delay_ms)
        self._condition = condition
        self._result: _ResultT | None = None
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[_ResultT] = self._loop.create_future()

    def try_complete(self) -> bool:
        """Complete if the condition is met."""
        if self._result:
            return False  # it has completed meanwhile, with this result
        self._result = self._condition()
        return bool(self._result) and self.force_complete()

    def on_complete(self) -> None:
        """Wake up the task that awaits it."""
        call_on_loop(self._loop, self._resolve)

    def on_expiration(self) -> None:
        """Do nothing: `on_complete` has woken up the awaiting task."""

    def __await__(self) -> Generator[Any, None, _ResultT]:
        try:
            return (yield from self._future)
        except asyncio.CancelledError:
            # Not for GeneratorExit: the garbage collector throws that at any moment, also while
            # this thread holds the purgatory's lock. Then the operation waits for its deadline.
            self.force_complete()
            raise

    def _resolve(self) -> None:
        if not self._future.done():  # it is done if the awaiting task was cancelled
            self._future.set_result(cast("_ResultT", self._result))


async def wait_until(
    condition: Callable[[], _ResultT],
    purgatory: DelayedOperationPurgatory[Any],
    keys: Collection[object],
    timeout_s: float,
) -> _ResultT:
    """Wait until `condition()` is true after an event on one of `keys`, at most `timeout_s` seconds.

    Returns the last value of the condition, false only after the timeout. If the condition is true already, returns
    at once without parking.
    """
    operation = AwaitableOperation(math.ceil(timeout_s * 1_000), condition)
    purgatory.try_complete_else_watch(operation, keys)
    return await operation
