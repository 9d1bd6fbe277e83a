"""A producer of a random run, without transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.chaos.random_run.checks.history import Acknowledged
from broker_sim.chaos.random_run.clients.client import TIMEOUTS_MS, Client
from broker_sim.chaos.random_run.schedule import ACKS, IDEMPOTENT, TOPIC
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.cluster.virtual.virtual_client import produce_request
from broker_sim.errors import ErrorCode
from broker_sim.protocol.records import Record, build_batch

if TYPE_CHECKING:
    from broker_sim.chaos.random_run.clients.shared_state import SharedState

FIRST_PRODUCER_ID: Final = 1_000_000_000
"""First producer id of idempotent producers, above those that controllers give to transactional ones."""
LONGEST_REST_MS: Final = 150

NOT_WRITTEN: Final = frozenset(
    {
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Errors with which a broker refuses records before it appends them.

NOT_LEADER_OR_FOLLOWER is not one of them: a parked produce ends with it when its leader is deposed.
"""


class Producer(Client):
    """Sends batches of one to three records with unique values."""

    def __init__(self, shared: SharedState, number: int, kind: str) -> None:
        super().__init__(shared, f"producer-{number}")
        self._number = number
        self._acks = ACKS[kind]
        self._is_idempotent = kind == IDEMPOTENT
        self._producer_id = FIRST_PRODUCER_ID * (number + 1)
        self._sequences: dict[int, int] = {}
        self._values_made = 0

    async def _live(self) -> None:
        while True:
            partition = self._rng.randrange(self._shared.schedule.partitions)
            values = [self._value() for _ in range(self._rng.randint(1, 3))]
            batch = self._batch(partition, values)
            is_retried = True
            while is_retried:
                is_over = await self._send_batch(partition, values, batch)
                is_retried = self._is_idempotent and not is_over
                await self._rest(LONGEST_REST_MS)

    def _value(self) -> bytes:
        self._values_made += 1
        return b"%d-%d" % (self._number, self._values_made)

    def _batch(self, partition: int, values: list[bytes]) -> bytes:
        records = [Record(value, timestamp=self._wall_clock_ms) for value in values]
        if not self._is_idempotent:
            return build_batch(records)
        return build_batch(
            records, producer_id=self._producer_id, producer_epoch=0, base_sequence=self._sequences.get(partition, 0)
        )

    async def _send_batch(self, partition: int, values: list[bytes], batch: bytes) -> bool:
        """Send a batch once; return whether it was acknowledged or a retry cannot succeed."""
        timeout_ms = self._rng.choice(TIMEOUTS_MS)
        request = produce_request((TOPIC, partition), acks=self._acks, batch=batch, timeout_ms=timeout_ms)
        leader, epoch = self._leader(partition)
        broker = self._shared.broker(leader)
        pending = await self._send(leader, request, timeout_ms)
        if pending.disconnected:
            self._leaders.pop(partition, None)
            return False
        if pending.response is None:  # acks=0
            return False
        answer = pending.response.responses[0].partition_responses[0]
        error_code, base_offset = answer.error_code, answer.base_offset
        self._record("produced", partition, error_code, base_offset)
        if error_code == ErrorCode.NONE:
            first = Acknowledged(partition, base_offset, values[0], self._acks, epoch)
            self._shared.add_acknowledged(first, values, leader, broker)
            self._sequences[partition] = self._sequences.get(partition, 0) + len(values)
            return True
        if error_code == ErrorCode.REQUEST_TIMED_OUT:
            if base_offset >= 0:  # otherwise the error was injected, and nothing was appended
                over_ms = pending.sent_ms + timeout_ms - 1
                self._check_waits(partition, leader, base_offset + len(values), over_ms)
            return False
        self._leaders.pop(partition, None)
        return self._take_refusal(error_code, values)

    def _check_waits(self, partition: int, leader: int, end_offset: int, over_ms: int) -> None:
        """Check that the high watermark had not passed the batch before its timeout."""
        shared = self._shared
        reached = shared.high_watermarks.at(leader, partition, over_ms)
        if reached >= end_offset and shared.history.reads_are_final:
            violated(
                "replicated-records-are-acknowledged",
                f"{self._name} got REQUEST_TIMED_OUT for a batch up to offset {end_offset} of partition "
                f"{partition}, whose high watermark was {reached} before",
            )

    def _take_refusal(self, error_code: int, values: list[bytes]) -> bool:
        """Start with a new producer id if a retry cannot succeed; return whether that is so."""
        history = self._shared.history
        if error_code in NOT_WRITTEN and not self._is_idempotent:
            history.refused.update(values)
        is_out_of_order = error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if is_out_of_order and history.reads_are_final:
            violated(
                "sequence-goes-on",
                f"{self._name} has sent every batch until it was acknowledged, and its sequence was refused",
            )
        is_over = is_out_of_order or error_code == ErrorCode.INVALID_TIMESTAMP
        if is_over:
            self._producer_id += 1
            self._sequences.clear()
        return is_over
