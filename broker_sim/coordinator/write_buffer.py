"""A buffer that appends the records of several writes as one batch; mirrors `append.linger.ms` of Kafka's runtime.

With the default of -1, Kafka does not linger, but batches the writes that have queued up. Here the writes of one
event loop iteration become one batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.coordinator.records import size_in_batch
from broker_sim.coordinator.storage import NO_TRANSACTION
from broker_sim.errors import ErrorCode
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.record_batch import BATCH_OVERHEAD_BYTES, NO_PRODUCER_ID
from broker_sim.protocol.records import build_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.records import CoordinatorRecord
    from broker_sim.coordinator.storage import CoordinatorTopic, TransactionMarker, VerifiedTransaction
    from broker_sim.protocol.records import Record

    OnAppended = Callable[[int], object]
    OnDone = Callable[[ErrorCode], object]


class WriteBuffer:
    """Records written to one partition that are not yet in its log.

    `on_appended` and `on_done` are as in `CoordinatorStorage.append`.
    """

    def __init__(
        self, partition: int, broker: BrokerContext, topic: CoordinatorTopic, on_failed: Callable[[], object]
    ) -> None:
        """`on_failed()` is called when a batch of records that are already replayed cannot be appended.

        This buffer then appends nothing more; a new one continues from the end of the log.
        """
        self._partition = partition
        self._broker = broker
        self._topic = topic
        self._storage = topic.storage
        self._on_failed = on_failed
        self._records: list[Record] = []
        self._size_bytes = BATCH_OVERHEAD_BYTES
        self._waiting: list[OnDone] = []
        self._has_failed = False

    @property
    def end_offset(self) -> int:
        """Offset of the next record, counting the buffered ones."""
        return self._storage.log_end_offset(self._partition) + len(self._records)

    def add(self, records: Sequence[CoordinatorRecord], on_done: OnDone) -> bool:
        """Buffer the records for the next batch; return whether they were accepted.

        A batch never exceeds the topic's `max.message.bytes`. A write that exceeds it alone is rejected
        with MESSAGE_TOO_LARGE, unless batches are compressed. After a failed append all writes are rejected.
        """
        if self._has_failed:
            on_done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return False
        encoded = self._encoded(records)
        size_bytes = sum(map(size_in_batch, encoded))
        max_batch_bytes = self._storage.max_batch_bytes(self._partition)
        if self._size_bytes + size_bytes > max_batch_bytes:
            is_compressed = self._topic.codec is not CompressionCodec.NONE
            if not is_compressed and BATCH_OVERHEAD_BYTES + size_bytes > max_batch_bytes:
                on_done(ErrorCode.MESSAGE_TOO_LARGE)
                return False
            if not self._flush_or_fail(on_done):
                return False
        if not self._records:
            self._broker.call_later(0, self.flush)
        self._records += encoded
        self._size_bytes += size_bytes
        self._waiting.append(on_done)
        return True

    def flush(self) -> None:
        """Append the buffered records."""
        if not self._records:
            return
        records, self._records = self._records, []
        self._size_bytes = BATCH_OVERHEAD_BYTES
        waiting, self._waiting = self._waiting, []
        is_appended = False

        def appended(_: int) -> None:
            nonlocal is_appended
            is_appended = True

        def done(error_code: ErrorCode) -> None:
            if not is_appended:
                self._has_failed = True
                self._on_failed()
            for on_done in waiting:
                on_done(error_code)

        self._append(records, appended, done)

    def _flush_or_fail(self, on_done: OnDone) -> bool:
        """Flush; return whether the buffer still works, otherwise call `on_done` with the error."""
        self.flush()
        if self._has_failed:
            on_done(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return not self._has_failed

    def append(
        self,
        records: Sequence[CoordinatorRecord],
        on_appended: OnAppended,
        on_done: OnDone,
        transaction: VerifiedTransaction = NO_TRANSACTION,
        timeout_ms: int | None = None,
    ) -> None:
        """Append the records now as a batch of their own, after the buffered ones."""
        if self._flush_or_fail(on_done):
            self._append(self._encoded(records), on_appended, on_done, transaction, timeout_ms)

    def append_marker(self, marker: TransactionMarker, on_appended: OnAppended, on_done: OnDone) -> None:
        """Append the marker now, after the buffered records."""
        if self._flush_or_fail(on_done):
            self._storage.append(
                self._partition,
                marker.batch(self._broker.clock.wall_clock_ms()),
                self._topic.timeout_ms,
                on_appended,
                on_done,
                transaction_version=marker.transaction_version,
            )

    def _encoded(self, records: Sequence[CoordinatorRecord]) -> list[Record]:
        now_ms = self._broker.clock.wall_clock_ms()
        return [self._topic.serde.encode_record(record, now_ms) for record in records]

    def _append(
        self,
        records: list[Record],
        on_appended: OnAppended,
        on_done: OnDone,
        transaction: VerifiedTransaction = NO_TRANSACTION,
        timeout_ms: int | None = None,
    ) -> None:
        batch = build_batch(
            records,
            codec=self._topic.codec,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            base_sequence=self._topic.base_sequence,
            is_transactional=transaction.producer_id != NO_PRODUCER_ID,
        )
        self._storage.append(
            self._partition,
            batch,
            self._topic.timeout_ms if timeout_ms is None else timeout_ms,
            on_appended,
            on_done,
            verification_guard=transaction.verification_guard,
        )
