"""Producers and consumers of a random run; each has random numbers of its own.

A client keeps the leader that it knows until a broker refuses it, does not answer, or is gone, as
real clients do. So after a failover it may speak to the old leader.
"""

from __future__ import annotations

import random
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from broker_sim.cluster.invariants import violated
from broker_sim.cluster.random_run.history import Acknowledged
from broker_sim.cluster.random_run.schedule import ACKS_ALL
from broker_sim.cluster.random_run.surroundings import TOPIC
from broker_sim.cluster.requests import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    fetch_request,
    produce_request,
)
from broker_sim.errors import ErrorCode
from broker_sim.protocol.record_batch import BATCH_OVERHEAD_BYTES, parse_header
from broker_sim.protocol.records import Record, build_batch, iter_records
from broker_sim.protocol.special_values import READ_UNCOMMITTED

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.random_run.schedule import Producer
    from broker_sim.cluster.random_run.surroundings import Surroundings
    from broker_sim.cluster.virtual_client import PendingResponse

__all__ = ["ClientLoop", "ConsumerLoop", "ProducerLoop", "batches_in"]

TIMEOUTS_MS: Final = (20, 300, 1_500, 1_500)
MAX_WAITS_MS: Final = (0, 100, 500)
FIRST_PRODUCER_ID: Final = 1_000_000_000
"""No controller has given away so many ids: those of transactional producers are others."""
LONGEST_REST_MS: Final = 200
ANSWER_SLACK_MS: Final = 1_000
"""How much longer than a broker may take a client waits before it breaks the connection off."""

REFRESH_SHARE: Final = 0.1
"""How often a client asks for the leader although nothing has refused it: its metadata gets old."""

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


class ClientLoop:
    """Sends one request after the other."""

    def __init__(self, around: Surroundings, name: str) -> None:
        self._around = around
        self._name = name
        self._rng = random.Random(f"{around.schedule.seed}/{name}")
        self._client = around.cluster.client()
        self._leaders: dict[int, tuple[int, int]] = {}
        """The leader of each partition and its epoch, as this client knows them."""
        self._resting: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to send."""
        self._send_next()

    def _send_next(self) -> None:
        raise NotImplementedError

    def _rest(self, longest_ms: int) -> None:
        delay_ms = self._rng.randint(1, longest_ms)
        self._resting = self._around.cluster.scheduler.call_later(delay_ms, self._send_next)

    def _wake(self) -> None:
        """Go on now; nothing must be on its way to a broker."""
        if self._resting is not None:
            self._resting.cancel()
        self._send_next()

    def _leader(self, partition: int) -> tuple[int, int]:
        """Return the leader and its epoch; any broker, and -1 for the epoch, without one."""
        known = self._leaders.get(partition)
        if known is None or self._rng.random() < REFRESH_SHARE:
            known = self._around.newest_leader(partition)
            if known[0] < 0:
                self._leaders.pop(partition, None)
                return self._rng.randint(1, self._around.schedule.brokers), -1
            self._leaders[partition] = known
        return known

    def _send(
        self,
        broker_id: int,
        message: Any,
        version: int,
        timeout_ms: int,
        on_done: Callable[[PendingResponse], None],
    ) -> None:
        def done(pending: PendingResponse) -> None:
            timer.cancel()
            self._around.waiting -= 1
            on_done(pending)

        timer = self._around.cluster.scheduler.call_later(
            timeout_ms + ANSWER_SLACK_MS, lambda: self._give_up(broker_id, pending)
        )
        self._around.waiting += 1
        pending = self._client.send(broker_id, message, version, done)

    def _fetch(
        self,
        partition: int,
        offset: int,
        take: Callable[[Any], None],
        *,
        max_wait_ms: int,
        rest_ms: int = LONGEST_REST_MS,
        isolation_level: int = READ_UNCOMMITTED,
    ) -> None:
        """Fetch from the leader; `take` gets the partition's part of the answer. Then rest a while."""
        leader, epoch = self._leader(partition)
        if epoch < 0:
            # A follower would serve it too, as far as its log goes (KIP-392).
            self._rest(LONGEST_REST_MS)
            return
        request = fetch_request(
            (TOPIC, partition),
            offset=offset,
            max_wait_ms=max_wait_ms,
            leader_epoch=epoch,
            isolation_level=isolation_level,
        )

        def done(pending: PendingResponse) -> None:
            if pending.disconnected:
                self._leaders.pop(partition, None)
            else:
                take(pending.response.responses[0].partitions[0])
            self._rest(rest_ms)

        self._send(leader, request, FETCH_VERSION, max_wait_ms, done)

    def _give_up(self, broker_id: int, pending: PendingResponse) -> None:
        quiet_since_ms = self._around.quiet_since_ms()
        if quiet_since_ms is not None and quiet_since_ms <= pending.sent_ms:
            violated(
                "requests-are-answered",
                f"{self._name} waits since {pending.sent_ms} ms for broker {broker_id} to answer "
                f"{pending.api_key.name}",
            )
        self._around.history.count("abandoned")
        self._client.disconnect(broker_id)


class ProducerLoop(ClientLoop):
    """Sends batches of one to three records, each with a value of its own."""

    def __init__(self, around: Surroundings, number: int, plan: Producer) -> None:
        super().__init__(around, f"producer-{number}")
        self._number = number
        self._plan = plan
        self._producer_id = FIRST_PRODUCER_ID * (number + 1)
        self._sequences: dict[int, int] = {}
        self._values_made = 0
        self._timeout_ms = 0
        self._asked: Broker | None = None
        """The process that its last request went to."""
        self._retry: Callable[[], None] | None = None

    def _send_next(self) -> None:
        if not self._around.running:
            return
        if self._retry is not None:
            self._retry()
            return
        partition = self._rng.randrange(self._around.schedule.partitions)
        values = [self._value() for _ in range(self._rng.randint(1, 3))]
        self._send_batch(partition, values, self._batch(partition, values))

    def _value(self) -> bytes:
        self._values_made += 1
        return b"%d-%d" % (self._number, self._values_made)

    def _batch(self, partition: int, values: list[bytes]) -> bytes:
        now_ms = self._around.cluster.scheduler.clock.wall_clock_ms()
        records = [Record(value, timestamp=now_ms) for value in values]
        if not self._plan.idempotent:
            return build_batch(records)
        return build_batch(
            records,
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=self._sequences.get(partition, 0),
        )

    def _send_batch(self, partition: int, values: list[bytes], batch: bytes) -> None:
        timeout_ms = self._timeout_ms = self._rng.choice(TIMEOUTS_MS)
        request = produce_request(
            (TOPIC, partition), acks=self._plan.acks, batch=batch, timeout_ms=timeout_ms
        )
        leader, epoch = self._leader(partition)
        if self._plan.idempotent:
            self._retry = lambda: self._send_batch(partition, values, batch)

        self._asked = self._around.broker(leader)

        def done(pending: PendingResponse) -> None:
            self._take(partition, values, leader, epoch, pending)
            self._rest(150)

        self._send(leader, request, PRODUCE_VERSION, timeout_ms, done)

    def _take(
        self, partition: int, values: list[bytes], leader: int, epoch: int, pending: PendingResponse
    ) -> None:
        history = self._around.history
        if pending.disconnected:
            self._leaders.pop(partition, None)
            history.count("disconnected")
            return
        if pending.response is None:  # acks=0
            return
        answer = pending.response.responses[0].partition_responses[0]
        error_code, base_offset = answer.error_code, answer.base_offset
        self._around.cluster.trace.record("produced", partition, error_code, base_offset)
        if error_code == ErrorCode.NONE:
            history.count("acknowledged")
            # Where the leader does not have it any more, the epoch that the client sent it in counts.
            written_in = self._around.epoch_of(leader, partition, base_offset, values[0])
            if self._plan.acks == ACKS_ALL:
                end_offset = base_offset + len(values)
                self._around.check_replicated(self._asked, partition, end_offset, written_in)
            epoch = max(epoch, written_in)
            history.acknowledged += [
                Acknowledged(partition, base_offset + index, value, self._plan.acks, epoch)
                for index, value in enumerate(values)
            ]
            self._finish_batch(partition, len(values))
        elif error_code == ErrorCode.REQUEST_TIMED_OUT:
            history.count("timed_out")
            self._check_waits(partition, leader, base_offset + len(values), pending)
        else:
            self._leaders.pop(partition, None)
            history.count("refused")
            self._take_refusal(error_code, values)

    def _check_waits(
        self, partition: int, leader: int, end_offset: int, pending: PendingResponse
    ) -> None:
        """Check that the high watermark was not beyond the batch before its time was over."""
        around = self._around
        over_ms = pending.sent_ms + self._timeout_ms - 1
        reached = around.high_watermarks.at(leader, partition, over_ms)
        if end_offset > 0 and reached >= end_offset and around.history.reads_are_final:
            violated(
                "replicated-records-are-acknowledged",
                f"{self._name} got REQUEST_TIMED_OUT for a batch up to offset {end_offset} of partition "
                f"{partition}, whose high watermark was {reached} before",
            )

    def _take_refusal(self, error_code: int, values: list[bytes]) -> None:
        """Begin again with a new producer id where a retry could not succeed."""
        history = self._around.history
        if error_code in NOT_WRITTEN and not self._plan.idempotent:
            history.refused.update(values)
        if error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and history.reads_are_final:
            violated(
                "sequence-goes-on",
                f"{self._name} has sent every batch until it was acknowledged, and its sequence was "
                "refused",
            )
        if error_code in {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_TIMESTAMP}:
            self._retry = None
            self._producer_id += 1
            self._sequences.clear()

    def _finish_batch(self, partition: int, size: int) -> None:
        self._retry = None
        self._sequences[partition] = self._sequences.get(partition, 0) + size


class ConsumerLoop(ClientLoop):
    """Reads all partitions from their beginning."""

    def __init__(self, around: Surroundings, number: int) -> None:
        super().__init__(around, f"consumer-{number}")
        self._offsets = dict.fromkeys(range(around.schedule.partitions), 0)

    def _send_next(self) -> None:
        if not self._around.running:
            return
        partition = self._rng.randrange(len(self._offsets))
        max_wait_ms = self._rng.choice(MAX_WAITS_MS)
        self._fetch(
            partition,
            self._offsets[partition],
            lambda answer: self._take(partition, answer),
            max_wait_ms=max_wait_ms,
        )

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


def batches_in(data: Any) -> Iterator[memoryview]:
    """Yield all whole batches of a fetch; the last one may be cut off."""
    view = memoryview(data or b"")
    while len(view) >= BATCH_OVERHEAD_BYTES:
        size = parse_header(view).size_bytes
        if len(view) < size:
            break
        yield view[:size]
        view = view[size:]
