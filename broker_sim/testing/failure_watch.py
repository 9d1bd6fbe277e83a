"""Inspects a coroutine when an exception starts to leave it, before its context managers are closed.

`async with AIOKafkaProducer(...)` closes the producer on the way out, so the code that catches the exception
sees the cluster only after that. Closing begins with a wait, at which the coroutine can be inspected.
"""

from __future__ import annotations

import ast
import gc
import linecache
from asyncio import CancelledError
from collections.abc import Generator
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from types import FrameType

MAX_LOOKS: Final = 50
"""Number of inspected exceptions after which only failed assertions are inspected."""


class FailureWatch(Generator[Any, Any, Any]):
    """Awaitable that runs a coroutine and keeps the result of `look` at each of its exceptions.

    `on_ending` is called with an exception when the coroutine starts to wait for context managers to close because of
    it, and with None when that is over.
    """

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Any],
        look: Callable[[], str],
        on_ending: Callable[[BaseException | None], object] | None = None,
    ) -> None:
        self._look = look
        self._on_ending = on_ending
        self._seen: list[tuple[BaseException, str]] = []
        self.leaving: BaseException | None = None
        """The outermost exception that the coroutine handles while it waits."""
        self.ending: BaseException | None = None
        """The outermost uncaught exception that is leaving a `with` or `finally` that waits."""
        self.cr_await = coroutine
        """The coroutine, under the name that reports on waiting tasks follow."""

    def at(self, error: BaseException) -> str:
        """Return the result of `look` when that error was raised; of a new look if nothing has waited since."""
        before = self.leaving or error.__cause__ or error.__context__
        texts = {id(one): text for one, text in reversed(self._seen)}
        if before is self.leaving and id(before) in texts:
            return texts[id(before)]  # its context managers did not close
        if isinstance(before, CancelledError) and id(before) in texts:
            return texts[id(before)]  # a timeout or a task group has turned it into the error
        return texts[id(error)] if id(error) in texts else self._look()

    # -- a generator, for `await` -----------------------------------------------------------------

    def __await__(self) -> Generator[Any, Any, Any]:
        return self

    def send(self, value: Any) -> Any:
        """Run the coroutine until it waits."""
        return self._run(self.cr_await.send, value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the coroutine, and run it until it waits."""
        return self._run(self.cr_await.throw, *error)

    def _run(self, step: Callable[..., Any], *args: Any) -> Any:
        self.leaving = None
        awaited = step(*args)
        handled = list(self._handled())
        self.leaving = handled[0][0] if handled else None
        ending = next((error for error, frame in handled if not _is_caught(frame)), None)
        if ending is not self.ending:
            self.ending = ending
            if self._on_ending is not None:
                self._on_ending(ending)
        for error, _ in handled:
            is_new = all(error is not one for one, _ in self._seen)
            if is_new and (len(self._seen) < MAX_LOOKS or isinstance(error, AssertionError)):
                self._seen.append((error, self._look()))
        return awaited

    def _handled(self) -> Iterator[tuple[BaseException, FrameType]]:
        """Yield the exceptions that the coroutine and those it awaits are handling, outermost first."""
        awaited: Any = self.cr_await
        while awaited is not None:
            if hasattr(awaited, "cr_frame"):
                # The last referent of a suspended coroutine is the exception that it handles.
                error = gc.get_referents(awaited)[-1]
                if isinstance(error, BaseException):
                    yield error, awaited.cr_frame
            awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)


def _is_caught(frame: FrameType) -> bool:
    """Whether the frame is in an `except` clause that does not end with a `raise`.

    From a `finally` and the end of a `with`, in contrast, the exception goes on.
    """
    return any(frame.f_lineno in lines for lines in _clauses(frame.f_code.co_filename))


@cache
def _clauses(filename: str) -> list[range]:
    """Return the line ranges of a file's `except` clauses without `raise` at the end; none without its source."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return []
    return [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and not isinstance(node.body[-1], ast.Raise)
    ]
