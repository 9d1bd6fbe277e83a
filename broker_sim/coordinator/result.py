"""The result of an operation on a coordinator's state; mirrors `CoordinatorResult` and `CoordinatorTimer`.

An operation decides and returns a `Result`; the runtime does everything that can wait or fail. The order
is always: decide, append, replay, timers, commit, answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.coordinator.records import CoordinatorRecord
    from broker_sim.errors import ErrorCode

Response = TypeVar("Response")


class Result(Generic[Response]):
    """Records to append, if any, and the response to a request.

    * `response` is sent when the records are committed; a result without records waits for all earlier
      records. None means that the operation answers itself: it has answered already, has parked the
      request, or answers in `on_settled`
    * `replays=False` is for records whose changes the state has already, or gets in `on_appended`
    * `shares_batch` puts the records into one batch with others of the same event loop iteration
    * `timeout_ms` is the time the replicas have to get the records; None means the coordinator's default
    * `on_appended()` sets and cancels timers. It is called as soon as the leader has the records
    * `on_settled(error_code)` is called before the response is sent: with NONE once the records are
      committed, otherwise with the error for the client. If the append failed, neither replay nor
      `on_appended` has happened
    """

    __slots__ = ("on_appended", "on_settled", "records", "replays", "response", "shares_batch", "timeout_ms")

    def __init__(
        self,
        response: Response | None = None,
        records: Sequence[CoordinatorRecord] = (),
        *,
        replays: bool = True,
        shares_batch: bool = False,
        timeout_ms: int | None = None,
        on_appended: Callable[[], object] | None = None,
        on_settled: Callable[[ErrorCode], object] | None = None,
    ) -> None:
        self.response = response
        self.records = records
        self.replays = replays
        self.shares_batch = shares_batch
        self.timeout_ms = timeout_ms
        self.on_appended = on_appended
        self.on_settled = on_settled


class ShardRuntime(Protocol):
    """The part of the runtime that a shard uses."""

    @property
    def is_active(self) -> bool:
        """Whether this broker still leads the shard's partition."""

    @property
    def leader_epoch(self) -> int:
        """Epoch in which this broker leads the partition."""

    @property
    def high_watermark(self) -> int:
        """High watermark of the shard's partition: all records below it are committed."""

    @property
    def change_offset(self) -> int:
        """Log offset of a state change made now: the change is committed once the high watermark is above it."""

    def perform(self, operation: Callable[[], Result[None]]) -> None:
        """Carry out an operation that no request has started, such as an expired session.

        If the broker no longer leads the partition, the operation is dropped.
        """
