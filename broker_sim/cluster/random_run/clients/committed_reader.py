"""A read_committed consumer of a random run; what it skips follows `CompletedFetch` of Kafka's consumer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.cluster.random_run.checks.batches import batches_in
from broker_sim.cluster.random_run.clients.consumer import Consumer
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import iter_records, read_end_txn_marker
from broker_sim.protocol.special_values import READ_COMMITTED

if TYPE_CHECKING:
    from broker_sim.cluster.random_run.checks.transaction_history import TransactionHistory
    from broker_sim.cluster.random_run.clients.surroundings import Surroundings

__all__ = ["CommittedReader"]


class CommittedReader(Consumer):
    """Reads the committed records of all partitions from their beginning, each once."""

    isolation_level = READ_COMMITTED

    def __init__(self, around: Surroundings, history: TransactionHistory) -> None:
        super().__init__(around, "committed-reader")
        self._history = history
        self._unread: list[int] = []
        """At the end: the partitions that it has not read to their end yet."""

    def finish(self) -> None:
        """Read on to the end of every partition, where nothing is written any more."""
        self._unread = list(self._offsets)
        self.start()

    @property
    def is_done(self) -> bool:
        """Whether all is read, after `finish`."""
        return not self._unread

    @property
    def _goes_on(self) -> bool:
        return self._around.running or bool(self._unread)

    async def _live(self) -> None:
        while self._unread:
            await self._read(self._unread[0], max_wait_ms=0)
            await self._rest(1)
        await super()._live()

    def _take(self, partition: int, answer: Any) -> None:
        """Take the records of committed transactions, and those of none."""
        aborted = sorted(
            (each.first_offset, each.producer_id) for each in answer.aborted_transactions or ()
        )
        aborted_ids: set[int] = set()
        for batch in batches_in(answer.records):
            header = parse_header(batch)
            while aborted and aborted[0][0] <= header.last_offset:
                aborted_ids.add(aborted.pop(0)[1])
            if header.is_control:
                if not read_end_txn_marker(batch).is_commit:
                    aborted_ids.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted_ids):
                for record in iter_records(batch):
                    self._take_record(partition, record.offset, record.value, answer)
            self._offsets[partition] = max(self._offsets[partition], header.last_offset + 1)
        if self._unread and self._offsets[partition] >= answer.high_watermark:
            self._unread.remove(partition)

    def _take_record(self, partition: int, offset: int, value: bytes | None, answer: Any) -> None:
        if offset < self._offsets[partition]:
            return
        if offset >= answer.last_stable_offset:
            violated(
                "reads-end-at-the-last-stable-offset",
                f"{self._name} has read offset {offset} of partition {partition}, whose last stable "
                f"offset is {answer.last_stable_offset}",
            )
        self._history.add_committed_read(partition, offset, value)
