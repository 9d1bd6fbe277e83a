"""An acks=all produce that waits for its followers; mirrors ``kafka.server.DelayedProduce``.

It can be completed when every partition has come to one of these:

* Case A: the partition is no longer on this broker
* Case B: this broker is no longer its leader
* Case C: this broker leads it, and
    * C.1: the in-sync replicas have the records, but are fewer than ``min.insync.replicas`` by now
    * C.2: the in-sync replicas have the records

Partitions whose append failed at once wait with the others: a produce response is one unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker_sim.delayed_request import DelayedRequest, first_error
from broker_sim.errors import ErrorCode
from broker_sim.replica.partition import Partition

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.topic_partition import TopicPartition

__all__ = ["DelayedProduce", "PartitionLookup", "ProducePartitionStatus"]


class PartitionLookup(Protocol):
    """Where an operation finds its partitions: the replica manager."""

    def get_partition_or_error(self, topic_partition: TopicPartition) -> Partition | ErrorCode:
        """Return the hosted partition, or why there is none."""


class ProducePartitionStatus:
    """The outcome of one partition's append, and whether its replicas are still awaited."""

    __slots__ = (
        "acks_pending",
        "base_offset",
        "error_code",
        "error_message",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
        "required_offset",
    )

    def __init__(
        self,
        error_code: ErrorCode,
        *,
        required_offset: int = -1,
        base_offset: int = -1,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        error_message: str | None = None,
        record_errors: tuple[tuple[int, str], ...] = (),
    ) -> None:
        self.error_code = error_code
        self.required_offset = required_offset
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.error_message = error_message
        self.record_errors = record_errors
        self.acks_pending = False

    def await_acks(self) -> None:
        """Wait for the replicas; what stands if they never come is REQUEST_TIMED_OUT."""
        if not self.error_code:
            self.acks_pending = True
            self.error_code = ErrorCode.REQUEST_TIMED_OUT


class DelayedProduce(DelayedRequest):
    """Parks the produce until its partitions are replicated, have failed, or ``delay_ms`` is over."""

    __slots__ = ("_partitions", "_respond", "_statuses")

    api = "Produce"

    def __init__(
        self,
        delay_ms: int,
        statuses: dict[TopicPartition, ProducePartitionStatus],
        partitions: PartitionLookup,
        respond: Callable[[dict[TopicPartition, ProducePartitionStatus]], None],
        client_id: str | None = None,
    ) -> None:
        super().__init__(delay_ms, client_id)
        self._statuses = statuses
        self._partitions = partitions
        self._respond = respond
        for status in statuses.values():
            status.await_acks()

    def try_complete(self) -> bool:
        """Complete if no partition is awaited any more (cases A to C)."""
        pending = False
        for topic_partition, status in self._statuses.items():
            if not status.acks_pending:
                continue
            partition = self._partitions.get_partition_or_error(topic_partition)
            if not isinstance(partition, Partition):  # Case A
                enough, error_code = False, partition
            else:
                enough, error_code = partition.check_enough_replicas_reach_offset(
                    status.required_offset
                )
            if enough or error_code:  # Cases B, C.1, C.2
                status.acks_pending = False
                status.error_code = error_code
            else:
                pending = True
        return not pending and self.force_complete()

    @property
    def error_code(self) -> ErrorCode:
        """The first partition's that is an error."""
        return first_error([status.error_code for status in self._statuses.values()])

    def on_expiration(self) -> None:
        """Nothing more: the partitions that are still awaited already say REQUEST_TIMED_OUT."""

    def on_complete(self) -> None:
        """Answer with what is known of every partition."""
        self._respond(self._statuses)
