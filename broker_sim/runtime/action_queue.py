"""Completions that wait until the handler has returned; mirrors `DelayedActionQueue`.

An append finds out that fetches can be completed while it is in the middle of a request. Completing
them there would run foreign callbacks inside the append; so they are queued, and the broker runs
the queue once its handler has returned.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ActionQueue"]


def _raise(message: str, error: Exception) -> None:
    error.add_note(message)
    raise error


class ActionQueue:
    """A queue of callbacks; a callback may add more, which run in the same turn.

    A callback that fails is told to `report_error` (which raises unless given) and does not keep
    the others from running: they belong to other requests.
    """

    __slots__ = ("_actions", "_report_error")

    def __init__(self, report_error: Callable[[str, Exception], None] = _raise) -> None:
        self._actions: deque[Callable[[], object]] = deque()
        self._report_error = report_error

    def add(self, action: Callable[[], object]) -> None:
        """Run `action` at the next `try_complete_actions`."""
        self._actions.append(action)

    def try_complete_actions(self) -> None:
        """Run everything that is queued, in order."""
        actions = self._actions
        while actions:
            try:
                actions.popleft()()
            except Exception as error:  # noqa: BLE001 - as the class says
                self._report_error("a delayed action failed", error)
