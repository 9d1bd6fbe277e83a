"""The result of an operation on a coordinator's state; mirrors `CoordinatorResult` and `CoordinatorTimer`.

An operation decides and returns a `Result`; the runtime does everything that can wait or fail. The order
is always: decide, append, replay, timers, committed, answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.coordinator.records import CoordinatorRecord
    from broker_sim.errors import ErrorCode

Response = TypeVar("Response")


class Result(Generic[Response]):
    """Records to append, perhaps none, and the answer of a request.

    * `response` is the answer. It is sent when the records are committed; a result without records waits
      for all records before it. None: the operation answers by itself. It has answered already, or has
      parked the request, or `on_settled` answers
    * `replays=False` is for records that tell what the state is already, or what `on_appended` makes of it
    * `shares_batch` puts the records into one batch with others of the same turn of the event loop
    * `timeout_ms` is how long the replicas have to get the records; None means the coordinator's time
    * `on_appended()` sets and ends timers. It is called as soon as the leader has the records
    * `on_settled(NONE)` is called when they are committed, or with the error that clients are told; it
      comes before the answer. After an error of the append neither records nor timers were taken in
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
    """The runtime as its shard sees it."""

    @property
    def is_active(self) -> bool:
        """Whether this broker still leads the shard's partition."""

    @property
    def leader_epoch(self) -> int:
        """The epoch in which this broker leads the partition."""

    @property
    def high_watermark(self) -> int:
        """The offset of the shard's log below which all records are committed."""

    @property
    def change_offset(self) -> int:
        """The offset of the shard's log that a change of its state, made now, is committed with."""

    def perform(self, operation: Callable[[], Result[None]]) -> None:
        """Carry out an operation that no request asks for, such as the end of a session.

        It is not called after the broker has stopped to lead the partition.
        """
