"""Completions that wait until the handler has returned; mirrors `DelayedActionQueue`.

An append can complete parked fetches. Completing them at once would run the callbacks of other requests
in the middle of the append, so the completions are queued. The queue runs when the handler has returned:

    actions.serve(handler, request)       requests from clients and brokers, answers from brokers, metadata
    process.complete_soon()               appends made by timers: in the next turn of the loop

Only a follower's fetch runs the queue earlier, see `ReplicaManager`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def _raise(message: str, error: Exception) -> None:
    error.add_note(message)
    raise error


class ActionQueue:
    """A queue of callbacks; callbacks added while it runs still run in the same call.

    An exception in a callback goes to `report_error` (by default it is raised), and the other callbacks
    still run, because they belong to other requests.
    """

    __slots__ = ("_actions", "_is_running", "_report_error")

    def __init__(self, report_error: Callable[[str, Exception], None] = _raise) -> None:
        self._actions: deque[Callable[[], object]] = deque()
        self._report_error = report_error
        self._is_running = False

    def add(self, action: Callable[[], object]) -> None:
        """Run `action` once the current request has been handled."""
        self._actions.append(action)

    @property
    def is_waiting(self) -> bool:
        """Whether the queue has actions and is not running."""
        return bool(self._actions) and not self._is_running

    def serve(self, handler: Callable[..., object], *args: Any) -> None:
        """Run `handler(*args)` and then everything that is queued; mirrors `KafkaApis.handle`."""
        try:
            handler(*args)
        finally:
            if self._actions:
                self.try_complete_actions()

    def try_complete_actions(self) -> None:
        """Run everything that is queued, in order."""
        actions = self._actions
        if not actions:
            return
        self._is_running = True
        try:
            while actions:
                try:
                    actions.popleft()()
                except Exception as error:  # noqa: BLE001 - as the class says
                    self._report_error("a delayed action failed", error)
        finally:
            self._is_running = False
