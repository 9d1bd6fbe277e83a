"""The observer of one purgatory that writes to the trace.

A step in an operation's life costs the event loop one tuple of numbers and of existing texts. The operation itself is
not kept: keeping its request and response alive for longer would cost most (docs/verified/benchmarks.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.trace.lines import operation_fields

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Collection

    from broker_sim_purgatory import Clock, DelayedOperation, DelayedOperationPurgatory

    from broker_sim.trace.lines import PurgatoryLife, Step

WATCHED_AGE_MS = 20
"""Maximum age of the figure `watched` in ms; counting visits every watched key."""


class PurgatoryTracer:
    """The `PurgatoryObserver` of one purgatory, made by `Trace.observer`.

    Operations that concern only `untraced_topic` are left out.
    """

    __slots__ = ("_add_step", "_fields", "_life", "_now_ms", "_num_delayed", "_untraced_topic",
                 "_watched", "_watched_now", "_watched_until_ms")  # fmt: skip

    def __init__(self, life: PurgatoryLife, clock: Clock, steps: deque[Step], untraced_topic: str | None) -> None:
        self._life = life
        self._add_step = steps.append
        self._now_ms = clock.now_ms
        self._untraced_topic = untraced_topic
        self._fields: dict[int, str] = {}
        """The constant fields of each unfinished operation, by its id."""
        self._num_delayed: Callable[[], int] = int
        self._watched_now: Callable[[], int] = int
        self._watched = 0
        self._watched_until_ms = clock.now_ms()

    def attach(self, purgatory: DelayedOperationPurgatory[DelayedOperation]) -> None:
        """Read the figures `watched` and `num_delayed` from this purgatory; before the call both are 0."""
        self._num_delayed = purgatory.timer.size
        self._watched_now = purgatory.watched

    def tried(self, operation: DelayedOperation, keys: Collection[object]) -> None:
        """Trace that the operation is tried for the first time."""
        topic = self._untraced_topic
        if topic is not None and _concerns_only(topic, keys):
            return
        fields = operation_fields(
            keys, getattr(operation, "api", None), getattr(operation, "client_id", None), operation.delay_ms
        )
        self._fields[operation.operation_id] = fields
        now_ms = self._now_ms()
        if now_ms >= self._watched_until_ms:
            self._count_watched(now_ms)
        self._add_step((self._life, now_ms, "tried", operation.operation_id, fields,
                        None, None, None, None, self._watched, self._num_delayed()))  # fmt: skip

    def parked(self, operation: DelayedOperation, keys: Collection[object]) -> None:  # noqa: ARG002 - the observer's interface
        """Trace that the operation has to wait."""
        fields = self._fields.get(operation.operation_id)
        if fields is None:
            return
        now_ms = self._now_ms()
        if now_ms >= self._watched_until_ms:
            self._count_watched(now_ms)
        self._add_step((self._life, now_ms, "parked", operation.operation_id, fields,
                        None, None, None, None, self._watched, self._num_delayed()))  # fmt: skip

    def completed(self, operation: DelayedOperation, by: str) -> None:
        """Trace that the operation was completed before its timeout."""
        self._end("completed", operation, None, by)

    def expired(self, operation: DelayedOperation, lateness_ms: int) -> None:
        """Trace that the operation has expired."""
        self._end("expired", operation, lateness_ms, "timer")

    def cancelled(self, operation: DelayedOperation) -> None:
        """Trace that the operation was dropped."""
        self._end("cancelled", operation, None, None)

    def _end(self, event: str, operation: DelayedOperation, lateness_ms: int | None, by: str | None) -> None:
        fields = self._fields.pop(operation.operation_id, None)
        if fields is None:
            return
        now_ms = self._now_ms()
        if now_ms >= self._watched_until_ms:
            self._count_watched(now_ms)
        self._add_step((self._life, now_ms, event, operation.operation_id, fields,
                        max(now_ms - operation.created_ms, 0), lateness_ms, by,
                        getattr(operation, "error_code", None),
                        self._watched, self._num_delayed()))  # fmt: skip

    def _count_watched(self, now_ms: int) -> None:
        self._watched = self._watched_now()
        self._watched_until_ms = now_ms + WATCHED_AGE_MS


def _concerns_only(topic: str, keys: Collection[object]) -> bool:
    return all(isinstance(key, TopicPartition) and key.topic == topic for key in keys)
