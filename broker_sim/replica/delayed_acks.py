"""The common part of `DelayedProduce` and `DelayedDeleteRecords`: both wait for replicas.

Deliberate difference: Kafka's two classes repeat this code.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from broker_sim.errors import ErrorCode
from broker_sim.runtime.delayed_request import DelayedRequest, first_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.partition import Partition

    GetPartition = Callable[[TopicPartition], Partition | ErrorCode]


class AwaitedPartition:
    """The state of one partition of the request, and whether it still waits for replicas."""

    __slots__ = ("acks_pending", "error_code")

    def __init__(self, error_code: ErrorCode) -> None:
        self.error_code = error_code
        self.acks_pending = False

    @property
    def is_satisfied(self) -> bool:
        """Whether nothing is left to wait for."""
        return bool(self.error_code)

    def await_acks(self) -> None:
        """Start to wait for the replicas; until they acknowledge, the error code is REQUEST_TIMED_OUT."""
        self.acks_pending = True
        self.error_code = ErrorCode.REQUEST_TIMED_OUT

    def end(self, error_code: ErrorCode) -> None:
        """Stop waiting, and set the error code of the response."""
        self.acks_pending = False
        self.error_code = error_code


StatusT = TypeVar("StatusT", bound=AwaitedPartition)


class DelayedAcks(DelayedRequest, Generic[StatusT]):
    """Waits until no partition has acks pending, or for `delay_ms`."""

    __slots__ = ("_get_partition", "_response_callback", "_statuses")

    def __init__(
        self,
        delay_ms: int,
        statuses: dict[TopicPartition, StatusT],
        get_partition: GetPartition,
        response_callback: Callable[[dict[TopicPartition, StatusT]], None],
        client_id: str | None = None,
    ) -> None:
        """`get_partition` returns a hosted partition, or the error code if there is none."""
        super().__init__(delay_ms, client_id)
        self._statuses = statuses
        self._get_partition = get_partition
        self._response_callback = response_callback
        for status in statuses.values():
            if not status.is_satisfied:
                status.await_acks()

    @abstractmethod
    def try_partition(self, status: StatusT, partition: Partition | ErrorCode) -> None:
        """End `status` if one of the cases holds for the partition, or for the error code in its place."""
        raise NotImplementedError

    def try_complete(self) -> bool:
        """Complete if no partition has acks pending."""
        pending = False
        for topic_partition, status in self._statuses.items():
            if status.acks_pending:
                partition = self._get_partition(topic_partition)
                self.try_partition(status, partition)
                pending = pending or status.acks_pending
        return not pending and self.force_complete()

    @property
    def error_code(self) -> ErrorCode:
        """The first error of the partitions, or NONE."""
        return first_error([status.error_code for status in self._statuses.values()])

    def on_expiration(self) -> None:
        """Do nothing: partitions with acks pending already have REQUEST_TIMED_OUT."""

    def on_complete(self) -> None:
        """Call the response callback with the status of every partition."""
        self._response_callback(self._statuses)
