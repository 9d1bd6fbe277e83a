"""A compacted topic under test: cleaned on request, with the records that remain in its log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import parse_header, split_batches
from broker_sim.protocol.records import Record, build_batch, iter_records, read_end_txn_marker
from broker_sim_integration.clients.broker_client import PRODUCE_VERSION, TIMESTAMP_MS, Append, produce_request
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import QUICK_TRANSACTIONS
from broker_sim_integration.scenarios.helpers.observe import concluded
from broker_sim_integration.scenarios.helpers.publication import Publication

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.scenarios.families.transactions.support.transactional_producer import (
        TransactionalProducer,
    )

QUICK_CLEANING: Final = QUICK_TRANSACTIONS | {
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
}
"""The cleaner looks for a dirty log every 100 ms."""
ONE_BATCH_PER_SEGMENT: Final = "130"
"""A segment size in bytes that fits one small batch, but not two, so each append begins a new segment."""
ONE_REPLICA: Final = "1 partition x 1 replica"
NEVER: Final = "1"
"""A dirty ratio that no log exceeds."""


class CompactedTopic:
    """A topic that is cleaned on request, its leader, and the records that remain in its log."""

    def __init__(self, cluster: ClusterUnderTest, replicas: Sequence[int] | None = None, **configs: str) -> None:
        self._cluster = cluster
        self._published = Publication(cluster)
        configs = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": NEVER} | configs
        options: dict[str, Any] = {"internal_segment_bytes": ONE_BATCH_PER_SEGMENT, **configs}
        self.topic = cluster.topics.create(replicas or [cluster.first], **options)
        self.leader = cluster.connect(cluster.first)

    def append(self, *pairs: tuple[bytes | None, bytes | None], **header: Any) -> Reply[Any]:
        """Append one batch of keys and values, all with the same old timestamp; return the response."""
        return self.append_at(0, *pairs, **header)

    def append_at(self, time: int, *pairs: tuple[bytes | None, bytes | None], **header: Any) -> Reply[Any]:
        """Append one batch with a timestamp of `time` ms after `TIMESTAMP_MS`; return the response."""
        records = [Record(value, key, TIMESTAMP_MS + time) for key, value in pairs]
        return self.leader.start_produce(Append(self.topic, 0, build_batch(records, **header))).result()

    def append_in(self, producer: TransactionalProducer, pair: tuple[bytes, bytes]) -> None:
        """Append the first record of a transaction to the log."""
        records = [Record(pair[1], pair[0], TIMESTAMP_MS)]
        batch = build_batch(
            records,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            is_transactional=True,
        )
        append = Append(self.topic, 0, batch)
        request = produce_request([append], acks=-1, timeout_ms=30_000, version=PRODUCE_VERSION)
        request.transactional_id = producer.transactional_id
        reply = self.leader.request(request, PRODUCE_VERSION, messages.ProduceResponse)
        answer = reply.message.responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.NONE, answer

    def append_values(self, key: bytes, *values: bytes) -> None:
        """Append one batch per value."""
        for value in values:
            self.append((key, value))

    def clean_to(self, *expected: str) -> None:
        """Have the log cleaned, wait until exactly these records remain, and stop further cleanings."""
        self.clean_always()
        self.await_left(*expected)
        self._cluster.topics.alter(self.topic, min_cleanable_dirty_ratio=NEVER)
        self._published.wait()

    def clean_always(self) -> None:
        """Set the dirty ratio to 0: from now on the log is cleaned whenever it has a dirty segment."""
        self._cluster.topics.alter(self.topic, min_cleanable_dirty_ratio="0")

    def await_left(self, *expected: str, client: BrokerClient | None = None) -> None:
        """Wait until exactly these data records remain, one `offset key=value` per batch."""
        self._cluster.wait_until(lambda: self.left(client) == list(expected), f"{expected} are left")

    def left(self, client: BrokerClient | None = None) -> list[str]:
        """Return the remaining data records, one string per batch as for `await_left`."""
        return [
            shown(batch)
            for batch in batches_of(client or self.leader, self.topic)
            if (header := parse_header(batch)).records_count and not header.is_control
        ]

    def seen(self, step: str, client: BrokerClient | None = None) -> Observation:
        """Observe each remaining batch: its records, offsets, sequences, sizes and timestamps."""
        batches = batches_of(client or self.leader, self.topic)
        headers = [parse_header(batch) for batch in batches]
        return concluded(
            step,
            "the cleaner works in the background",
            left=[shown(batch) for batch in batches],
            offsets=[[header.base_offset, header.last_offset] for header in headers],
            sequences=[header.base_sequence for header in headers],
            counts=[header.records_count for header in headers],
            with_horizon=[header.delete_horizon_ms is not None for header in headers],
            # A base timestamp of today makes the deltas of old records longer, depending on the time of the run.
            sizes=[header.size_bytes if header.delete_horizon_ms is None else -1 for header in headers],
            max_timestamps=[header.max_timestamp - TIMESTAMP_MS if not header.is_control else -1 for header in headers],
        )


def batches_of(client: BrokerClient, topic: Topic) -> list[memoryview]:
    """Return all batches of the log, segment by segment."""
    found: list[memoryview] = []
    offset = 0
    while True:
        reply = client.fetch(topic, offset, max_wait_ms=0)
        answer = reply.message.responses[0].partitions[0]
        offset = max(offset, answer.log_start_offset)
        batches = split_batches(records_of(answer))
        if not batches:
            return found
        found += batches
        offset = parse_header(batches[-1]).last_offset + 1


def shown(batch: memoryview) -> str:
    """Return `offset key=value` of each record, `offset commit` or `offset abort`, or `empty ...`."""
    header = parse_header(batch)
    if not header.records_count:
        kind = "marker" if header.is_control else "batch"
        return f"empty {kind} {header.base_offset}-{header.last_offset}"
    if header.is_control:
        marker = read_end_txn_marker(batch)
        return f"{header.base_offset} {'commit' if marker.is_commit else 'abort'}"
    return ", ".join(f"{record.offset} {_text(record.key)}={_text(record.value)}" for record in iter_records(batch))


def records_of(answer: messages.FetchResponse.PartitionData) -> bytes:
    """Return the record bytes of one partition in a fetch response."""
    records: Any = answer.records
    return bytes(records or b"")


def _text(value: bytes | None) -> str:
    return "none" if value is None else value.decode()
