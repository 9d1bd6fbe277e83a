"""Requests to other brokers that wait for an answer, all equally long, under one timer.

Stands for `request.timeout.ms` in Kafka's `NetworkClient`, whose poll looks for requests that are too old.

Nearly every request is answered at once. A timer of its own for each would be made and cancelled for
nothing; here one timer is set for the oldest request, and set again if that has been answered meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import Clock

    from broker_sim.runtime.process import CallLater


class RequestTimeouts:
    """The requests of one sender. Thread rule: the broker's loop."""

    __slots__ = ("_call_later", "_clock", "_is_set", "_last_number", "_timeout_ms", "_waiting")

    def __init__(self, call_later: CallLater, clock: Clock, timeout_ms: int) -> None:
        self._call_later = call_later
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._waiting: dict[int, tuple[int, Callable[[], object]]] = {}
        """Deadline and callback by number; the oldest first."""
        self._last_number = 0
        self._is_set = False

    def begin(self, on_timeout: Callable[[], object]) -> int:
        """Call `on_timeout()` after the timeout unless the request, whose number is returned, has ended."""
        self._last_number += 1
        self._waiting[self._last_number] = (self._clock.deadline_ms(self._timeout_ms), on_timeout)
        if not self._is_set:
            self._set_timer(self._timeout_ms)
        return self._last_number

    def end(self, number: int) -> bool:
        """Wait no more for that request; return False if it had ended already."""
        return self._waiting.pop(number, None) is not None

    def _set_timer(self, delay_ms: int) -> None:
        self._is_set = True
        self._call_later(delay_ms, self._expire)

    def _expire(self) -> None:
        """End what is due, and set the timer for the oldest request that is left."""
        self._is_set = False
        now_ms = self._clock.now_ms()
        due = [number for number, (deadline_ms, _) in self._waiting.items() if deadline_ms <= now_ms]
        callbacks = [self._waiting.pop(number)[1] for number in due]
        for deadline_ms, _ in self._waiting.values():
            self._set_timer(deadline_ms - now_ms)
            break
        for on_timeout in callbacks:
            on_timeout()
