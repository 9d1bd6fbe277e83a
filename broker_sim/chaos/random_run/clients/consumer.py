"""Consumers of a random run without a group."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final

from broker_sim.chaos.random_run.checks.batches import batches_in
from broker_sim.chaos.random_run.clients.client import Client
from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.cluster.virtual.virtual_client import fetch_request
from broker_sim.errors import ErrorCode
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import iter_records, read_end_txn_marker
from broker_sim.protocol.special_values import READ_COMMITTED, READ_UNCOMMITTED

if TYPE_CHECKING:
    from broker_sim.chaos.random_run.clients.shared_state import SharedState

MAX_WAITS_MS: Final = (0, 100, 500)
LONGEST_REST_MS: Final = 200


class Consumer(Client):
    """Reads all partitions from their beginning."""

    isolation_level: ClassVar = READ_UNCOMMITTED

    def __init__(self, shared: SharedState, name: str) -> None:
        super().__init__(shared, name)
        self._offsets = dict.fromkeys(range(shared.schedule.partitions), 0)

    async def _live(self) -> None:
        while True:
            partition = self._rng.randrange(len(self._offsets))
            await self._read(partition, self._rng.choice(MAX_WAITS_MS))
            await self._rest(LONGEST_REST_MS)

    async def _read(self, partition: int, max_wait_ms: int) -> None:
        """Fetch from the current offset, and process the records."""
        leader, epoch = self._leader(partition)
        if epoch < 0:
            # A follower would answer too, up to the end of its log (KIP-392).
            return
        offset = self._offsets[partition]
        request = fetch_request(
            (TOPIC, partition),
            offset=offset,
            max_wait_ms=max_wait_ms,
            leader_epoch=epoch,
            isolation_level=self.isolation_level,
        )
        pending = await self._send(leader, request, max_wait_ms)
        if pending.disconnected:
            self._leaders.pop(partition, None)
            return
        answer = pending.response.responses[0].partitions[0]
        self._record("fetched", partition, answer.error_code, answer.high_watermark)
        if answer.error_code == ErrorCode.NONE:
            self._take(partition, answer)
            return
        self._leaders.pop(partition, None)
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if self._shared.history.reads_are_final:
                violated(
                    "read-records-stay",
                    f"{self._name} has read up to offset {offset} of partition {partition}, which is out of range now",
                )
            self._offsets[partition] = 0

    def _take(self, partition: int, answer: Any) -> None:
        for record in chain.from_iterable(map(iter_records, batches_in(answer.records))):
            if record.offset < self._offsets[partition]:
                continue
            if record.offset >= answer.high_watermark:
                violated(
                    "reads-end-at-the-high-watermark",
                    f"{self._name} has read offset {record.offset} of partition {partition}, whose high "
                    f"watermark is {answer.high_watermark}",
                )
            self._shared.history.add_read(partition, record.offset, record.value)
            self._offsets[partition] = record.offset + 1


class CommittedReader(Consumer):
    """Reads the committed records of all partitions from their beginning, each once.

    It skips aborted records as `CompletedFetch` of Kafka's consumer does.
    """

    isolation_level = READ_COMMITTED

    def __init__(self, shared: SharedState) -> None:
        super().__init__(shared, "committed-reader")
        self._unread: list[int] = []
        """After `finish`: the partitions that it has not read to their end yet."""

    def finish(self) -> None:
        """Read to the end of every partition; nothing may be written any more."""
        self._unread = list(self._offsets)
        self.start()

    @property
    def is_done(self) -> bool:
        """Whether all partitions are read, after `finish`."""
        return not self._unread

    @property
    def _goes_on(self) -> bool:
        return self._shared.running or bool(self._unread)

    async def _live(self) -> None:
        while self._unread:
            await self._read(self._unread[0], max_wait_ms=0)
            await self._rest(1)
        await super()._live()

    def _take(self, partition: int, answer: Any) -> None:
        """Process the records of committed transactions, and those outside transactions."""
        aborted = sorted((each.first_offset, each.producer_id) for each in answer.aborted_transactions or ())
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
                    if record.offset >= self._offsets[partition]:
                        self._take_record(partition, record.offset, record.value, answer)
            self._offsets[partition] = max(self._offsets[partition], header.last_offset + 1)
        if self._unread and self._offsets[partition] >= answer.high_watermark:
            self._unread.remove(partition)

    def _take_record(self, partition: int, offset: int, value: bytes | None, answer: Any) -> None:
        if offset >= answer.last_stable_offset:
            violated(
                "reads-end-at-the-last-stable-offset",
                f"{self._name} has read offset {offset} of partition {partition}, whose last stable "
                f"offset is {answer.last_stable_offset}",
            )
        self._shared.transactions.add_committed_read(partition, offset, value)
