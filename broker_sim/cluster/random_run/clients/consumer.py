"""A consumer of a random run, in no group."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from broker_sim.cluster.random_run.checks.batches import batches_in
from broker_sim.cluster.random_run.clients.client import LONGEST_REST_MS, MAX_WAITS_MS, Client
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.errors import ErrorCode
from broker_sim.protocol.records import iter_records

if TYPE_CHECKING:
    from broker_sim.cluster.random_run.clients.surroundings import Surroundings

__all__ = ["Consumer"]


class Consumer(Client):
    """Reads all partitions from their beginning."""

    def __init__(self, around: Surroundings, number: int) -> None:
        super().__init__(around, f"consumer-{number}")
        self._offsets = dict.fromkeys(range(around.schedule.partitions), 0)

    async def _live(self) -> None:
        while True:
            partition = self._rng.randrange(len(self._offsets))
            max_wait_ms = self._rng.choice(MAX_WAITS_MS)
            answer = await self._fetch(partition, self._offsets[partition], max_wait_ms)
            if answer is not None:
                self._take(partition, answer)
            await self._rest(LONGEST_REST_MS)

    def _take(self, partition: int, answer: Any) -> None:
        self._around.cluster.trace.record(
            "fetched", partition, answer.error_code, answer.high_watermark
        )
        if answer.error_code != ErrorCode.NONE:
            self._leaders.pop(partition, None)
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._take_out_of_range(partition)
            return
        records = chain.from_iterable(map(iter_records, batches_in(answer.records)))
        for record in records:
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

    def _take_out_of_range(self, partition: int) -> None:
        if self._around.history.reads_are_final:
            violated(
                "read-records-stay",
                f"{self._name} has read up to offset {self._offsets[partition]} of partition "
                f"{partition}, which is out of range now",
            )
        self._offsets[partition] = 0
