"""A consumer of a random run, in no group."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from broker_sim.cluster.random_run.checks.batches import batches_in
from broker_sim.cluster.random_run.clients.client import LONGEST_REST_MS, MAX_WAITS_MS, Client
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.errors import ErrorCode
from broker_sim.protocol.records import iter_records
from broker_sim.protocol.special_values import READ_UNCOMMITTED

if TYPE_CHECKING:
    from broker_sim.cluster.random_run.clients.surroundings import Surroundings

__all__ = ["Consumer"]


class Consumer(Client):
    """Reads all partitions from their beginning."""

    isolation_level: ClassVar = READ_UNCOMMITTED

    def __init__(self, around: Surroundings, name: str) -> None:
        super().__init__(around, name)
        self._offsets = dict.fromkeys(range(around.schedule.partitions), 0)

    async def _live(self) -> None:
        while True:
            partition = self._rng.randrange(len(self._offsets))
            await self._read(partition, self._rng.choice(MAX_WAITS_MS))
            await self._rest(LONGEST_REST_MS)

    async def _read(self, partition: int, max_wait_ms: int) -> None:
        """Fetch from where it is, and take what has come."""
        offset = self._offsets[partition]
        answer = await self._fetch(partition, offset, max_wait_ms, self.isolation_level)
        if answer is None:
            return
        self._around.cluster.trace.record(
            "fetched", partition, answer.error_code, answer.high_watermark
        )
        if answer.error_code == ErrorCode.NONE:
            self._take(partition, answer)
            return
        self._leaders.pop(partition, None)
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            if self._around.history.reads_are_final:
                violated(
                    "read-records-stay",
                    f"{self._name} has read up to offset {offset} of partition {partition}, which is "
                    "out of range now",
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
            self._around.history.add_read(partition, record.offset, record.value)
            self._offsets[partition] = record.offset + 1
