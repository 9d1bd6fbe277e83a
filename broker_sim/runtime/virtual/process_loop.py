"""The part of a virtual loop that holds back what belongs to processes that do not run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from broker_sim.runtime.virtual.current_process import PROCESS
from broker_sim.runtime.virtual.futures import NumberingLoop
from broker_sim.runtime.virtual.handles import VirtualHandle
from broker_sim.runtime.virtual.processes import Processes

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import AsyncGenerator, Callable, Iterable
    from contextvars import Context

    from broker_sim.runtime.virtual.clock import LoopClock
    from broker_sim.runtime.virtual.futures import OrderedWeakSet
    from broker_sim.runtime.virtual.processes import Process
    from broker_sim.runtime.virtual.timers import TimerQueue
    from broker_sim.runtime.virtual.trace import LoopTrace


class ProcessLoop(NumberingLoop):
    """Makes processes; takes their callbacks out of the queues and puts them back."""

    _ready: deque[asyncio.Handle]
    _scheduled: TimerQueue
    _asyncgens: OrderedWeakSet
    clock: LoopClock
    trace: LoopTrace

    def __init__(self) -> None:
        super().__init__()
        self.processes = Processes(self)

    def set_debug(self, enabled: bool) -> None:
        """Let handles remember where they were made, as in asyncio."""
        self.is_debugged = enabled
        super().set_debug(enabled)

    def close(self) -> None:
        """Close the loop, and throw away what killed processes held."""
        super().close()
        self.processes.dispose()

    def process(self, name: str, *, host: str | None = None) -> Process:
        """Return a new process, on a host of that name unless another one is given.

        It can be killed and frozen apart from all else in the loop. Raises ValueError while one of
        that name is alive.
        """
        return self.processes.add(name, host)

    def wall_clock_ns(self) -> int:
        """Return the nanoseconds since 1970 by the wall clock of whoever asks."""
        process = PROCESS.get() if self.processes else None
        ahead_ns = 0 if process is None else process.clock_offset_ns
        return self.clock.wall_clock_ns() + ahead_ns

    def create_task(self, coro: Any, *, context: Context | None = None, **options: Any) -> asyncio.Task[Any]:
        """Return a task; it belongs to the process of its context."""
        task = super().create_task(coro, context=context, **options)
        if self.processes:
            self.processes.on_task(task, context)
        return task

    def _asyncgen_firstiter_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        super()._asyncgen_firstiter_hook(agen)  # type: ignore[misc]
        process = PROCESS.get()
        if process is not None:
            process.generators.add(agen)

    def forget_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        """Do not close it when the loop ends."""
        self._asyncgens.discard(generator)

    def take_out(self, belongs: Callable[[asyncio.Handle], bool]) -> list[tuple[int, asyncio.Handle]]:
        """Take the callbacks that belong to somebody out of the queues.

        Returns them with the times at which they are due, in the order in which they would run.
        """
        now_ns = self.clock.now_ns
        taken = []
        for index, handle in enumerate(self._ready):
            if not handle._cancelled and belongs(handle):
                taken.append((now_ns, handle))
                # The round that is running has counted those that are ready.
                place_holder = VirtualHandle(_nothing, (), self, None)
                place_holder.cancel()
                self._ready[index] = place_holder
        return taken + self._scheduled.take_out(belongs)

    def take_back(self, taken: Iterable[tuple[int, asyncio.Handle]]) -> None:
        """Put callbacks back, those that are due behind all that is ready."""
        for due_ns, handle in sorted(taken, key=lambda entry: entry[0]):
            if handle._cancelled:
                continue
            if due_ns > self.clock.now_ns:
                assert isinstance(handle, asyncio.TimerHandle)
                self._scheduled.push(due_ns, handle)
            else:
                self._ready.append(handle)


def _nothing() -> None:
    """Stand in the place of a callback that was taken out."""
