"""A timer in virtual time: time passes only in `advance`, and every task runs at its deadline.

Kafka's counterpart is the MockTimer of its tests. Deliberate difference: this is the real wheel.
A long step stops at every deadline on the way.
"""

from collections.abc import Callable

from broker_sim_purgatory._expired_operation_reaper import WORK_TIMEOUT_MS, Reaper
from broker_sim_purgatory.clock import DEFAULT_WALL_START_MS, VirtualClock
from broker_sim_purgatory.executor import InlineExecutor
from broker_sim_purgatory.system_timer import SystemTimer


class VirtualTimer(SystemTimer):
    """A SystemTimer with a clock of its own that `advance` moves; nothing blocks, no threads.

    A purgatory that gets it in place of a SystemTimer lives in virtual time. Tasks run in the thread that calls
    `advance`, which raises their exceptions as an ExceptionGroup. A step also stops where a purge runs: 200 ms after
    it became due.
    """

    __slots__ = ("_purge_at_ms", "_virtual_clock", "_work")

    def __init__(
        self,
        name: str = "virtual",
        start_ms: int = 0,
        wall_start_ms: int = DEFAULT_WALL_START_MS,
        *,
        tick_ms: int = 1,
        wheel_size: int = 20,
        max_per_round: int | None = None,
    ) -> None:
        self._virtual_clock = VirtualClock(start_ms, wall_start_ms)
        super().__init__(name, self._virtual_clock, InlineExecutor(), tick_ms, wheel_size, max_per_round=max_per_round)
        self._work: Callable[[int], object] = self.advance_clock
        self._purge_at_ms: int | None = None
        self.owner.on_purge_due = self._ask_for_purge

    def start_reaper(self, name: str, work: Callable[[int], object], purge: Callable[[], object]) -> Reaper:
        """Call `work(0)` at every deadline and purge that `advance` passes; no thread is started."""
        del name, purge
        self._work = work
        return _NothingToEnd()

    def advance(self, by_ms: int) -> None:
        """Let `by_ms` pass; each task runs at its deadline. ValueError when negative."""
        self.advance_to(self._virtual_clock.now_ms() + by_ms)

    def advance_to(self, now_ms: int) -> None:
        """Let time pass until `now_ms`; ValueError if that is in the past."""
        clock = self._virtual_clock
        while (stop_ms := self._next_stop_ms()) is not None and stop_ms <= now_ms:
            clock.advance_to(max(stop_ms, clock.now_ms()))
            self._purge_at_ms = None
            self._work(0)
        clock.advance_to(now_ms)

    def run_until_idle(self) -> None:
        """Let time pass until no task waits; endless if tasks always add others."""
        while (due_ms := self.next_expiration_ms()) is not None:
            self.advance_to(max(due_ms, self._virtual_clock.now_ms()))

    def _ask_for_purge(self) -> None:
        self._purge_at_ms = self._virtual_clock.now_ms() + WORK_TIMEOUT_MS

    def _next_stop_ms(self) -> int | None:
        due_ms, purge_at_ms = self.next_expiration_ms(), self._purge_at_ms
        if due_ms is None or purge_at_ms is None:
            return purge_at_ms if due_ms is None else due_ms
        return min(due_ms, purge_at_ms)


class _NothingToEnd:
    """The reaper of a VirtualTimer: it has no thread, so there is nothing to end."""

    __slots__ = ()

    def shutdown(self) -> None:
        """Do nothing."""
