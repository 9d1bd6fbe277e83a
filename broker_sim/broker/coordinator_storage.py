"""A coordinator's access to the partitions of its internal topic.

Mirrors `CoordinatorPartitionWriter`, and the reads of `CoordinatorLoaderImpl`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import parse_header, split_batches
from broker_sim.protocol.special_values import ACKS_ALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from broker_sim.log import VerificationGuard
    from broker_sim.replica import DeleteRecordsPartitionStatus, Partition, ReplicaManager

READ_BYTES: Final = 5_242_880
"""Number of bytes read at once while loading; Kafka's default of `offsets.load.buffer.size`."""
DELETE_TIMEOUT_MS: Final = 30_000


class ReplicatedStorage:
    """The `CoordinatorStorage` of one topic, on the broker's replica manager.

    `complete_soon()` schedules the operations that an append completes, such as parked fetches, after the current
    handler or timer.
    """

    def __init__(
        self,
        topic: str,
        replica_manager: ReplicaManager,
        complete_soon: Callable[[], object],
        read_bytes: int = READ_BYTES,
    ) -> None:
        self._topic = topic
        self._keys: dict[int, TopicPartition] = {}
        self._replica_manager = replica_manager
        self._complete_soon = complete_soon
        self._read_bytes = read_bytes

    def append(
        self,
        partition: int,
        batch: bytes,
        timeout_ms: int,
        on_appended: Callable[[int], object],
        on_done: Callable[[ErrorCode], object],
        *,
        verification_guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> None:
        """Append a batch; see `CoordinatorStorage.append`."""
        self._replica_manager.append_for_coordinator(
            TopicPartition(self._topic, partition),
            batch,
            on_appended,
            on_done,
            timeout_ms=timeout_ms,
            verification_guard=verification_guard,
            transaction_version=transaction_version,
        )
        self._complete_soon()

    def check_append(self, partition: int) -> ErrorCode:
        """Return the error of an append at this moment; see `CoordinatorStorage.check_append`."""
        try:
            self._partition(partition).check_append(ACKS_ALL)
        except ApiError as error:
            return error.error_code
        return ErrorCode.NONE

    def log_end_offset(self, partition: int) -> int:
        """Return the offset of the next record; 0 if the partition is not hosted."""
        try:
            return self._partition(partition).log.log_end_offset
        except ApiError:
            return 0

    def max_batch_bytes(self, partition: int) -> int:
        """Return the topic's `max.message.bytes`; 0 if the partition is not hosted."""
        try:
            return self._partition(partition).config.max_message_bytes
        except ApiError:
            return 0

    def await_committed(
        self, partition: int, end_offset: int, timeout_ms: int, on_done: Callable[[ErrorCode], object]
    ) -> None:
        """Wait until earlier appends are committed; see `CoordinatorStorage.await_committed`."""
        self._replica_manager.await_replicated(
            TopicPartition(self._topic, partition), end_offset, on_done, timeout_ms=timeout_ms
        )

    def high_watermark(self, partition: int) -> int:
        """Return the offset below which everything is committed; 0 if the partition is not hosted."""
        key = self._keys.get(partition) or self._key(partition)
        hosted = self._replica_manager.partitions.get(key)
        return 0 if hosted is None else hosted.log.high_watermark

    def delete_records(self, partition: int, before_offset: int, on_done: Callable[[ErrorCode], object]) -> None:
        """Delete the records before the offset; see `CoordinatorStorage.delete_records`."""
        key = TopicPartition(self._topic, partition)

        def deleted(statuses: Mapping[TopicPartition, DeleteRecordsPartitionStatus]) -> None:
            on_done(statuses[key].error_code)

        self._replica_manager.delete_records({key: before_offset}, deleted, timeout_ms=DELETE_TIMEOUT_MS)

    def _partition(self, number: int) -> Partition:
        """Return the hosted partition. Raises `ApiError`."""
        return self._replica_manager.get_partition(self._keys.get(number) or self._key(number))

    def _key(self, number: int) -> TopicPartition:
        key = self._keys[number] = TopicPartition(self._topic, number)
        return key

    def read(self, partition: int) -> Iterator[bytes]:
        """Yield all whole batches of the partition's log, from its start to its end."""
        log = self._partition(partition).log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            data = log.read(offset, self._read_bytes, min_one_message=True)
            batches = split_batches(b"".join(data.records))
            if not batches:
                return
            for batch in batches:
                offset = parse_header(batch).last_offset + 1
                yield bytes(batch)
