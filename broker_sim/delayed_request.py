"""A client's request that waits: a delayed operation that says whose it is.

Kafka has no counterpart; traces and `broker-sim ctl purgatory` show it.

Deliberate difference to `DelayedOperation`: a broker tries its operations on one thread, its expired
ones included. So no lock is taken, and an operation is tried once before it is watched and not once
more afterwards: nothing can have happened in between.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, ClassVar

from broker_sim.errors import ErrorCode
from purgatory import DelayedOperation
from purgatory.native import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["DelayedRequest", "first_error"]

_NO_LOCK = nullcontext()


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedRequest(DelayedOperation):
    """Parks the answer to a request of ``api`` (Kafka's name) by the client ``client_id``."""

    __slots__ = ("client_id",)

    api: ClassVar[str]

    def __init__(self, delay_ms: int, client_id: str | None = None) -> None:
        super().__init__(delay_ms, _NO_LOCK)
        self.client_id = client_id

    def safe_try_complete(self) -> bool:
        """`try_complete`; only from the broker's thread."""
        return self.try_complete()

    def safe_try_complete_or_else(self, action: Callable[[], object]) -> bool:
        """Try; if that fails, call ``action``. True iff it was completed."""
        if self.try_complete():
            return True
        action()
        return False

    @property
    def error_code(self) -> ErrorCode | None:
        """The answer's first error once it is completed, NONE without one, None if not known."""
        return None


def first_error(error_codes: Iterable[ErrorCode]) -> ErrorCode:
    """Return the first that is an error, or NONE."""
    return next(filter(None, error_codes), ErrorCode.NONE)
