"""The interface of an observer, which is called at each step in an operation's life.

Kafka has no counterpart; the events are those of the broker's trace.
"""

from collections.abc import Collection
from typing import Protocol

from broker_sim_purgatory.delayed_operation import DelayedOperation

IMMEDIATE = "immediate"
KEY_PREFIX = "key:"
OTHER = "other"
SHUTDOWN = "shutdown"


class PurgatoryObserver(Protocol):
    """Called at each step in the life of the operations of one purgatory.

    Per operation: `tried` first, then `parked` if it has to wait, and in the end exactly one of
    `completed`, `expired` and `cancelled` (an operation that ends while it is being parked may
    end without `parked`). An operation that is completed before it is tried is not reported. The operation has its
    `operation_id` and `created_ms`.

    Calls come one at a time, on the thread that takes the step, under a lock: be quick, do not
    wait for other threads, read the purgatory's figures but do not park or complete anything.
    """

    def tried(self, operation: DelayedOperation, keys: Collection[object], /) -> None:
        """Handle the start of `try_complete_else_watch`."""

    def parked(self, operation: DelayedOperation, keys: Collection[object], /) -> None:
        """Handle an operation that has to wait: it is watched under `keys` and is in the timer."""

    def completed(self, operation: DelayedOperation, by: str, /) -> None:
        """Handle a completion before the deadline; `on_complete` has run.

        `by`: "immediate" (within try_complete_else_watch), "key:<key>" (check_and_complete),
        "other" (a call of force_complete) or "shutdown".
        """

    def expired(self, operation: DelayedOperation, lateness_ms: int, /) -> None:
        """Handle an expiry; `on_complete` has run, `on_expiration` follows."""

    def cancelled(self, operation: DelayedOperation, /) -> None:
        """Handle an operation that was dropped uncompleted: by cancel_for_key, by shutdown, or by an exception.

        If it is still watched under other keys and completed later, that is not reported.
        """
