"""What the log cleaner leaves of compacted topics. Kafka: LogCleaner, LogCleanerManager, Cleaner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.record_batch import parse_header, split_batches
from broker_sim.protocol.records import Record, build_batch, iter_records, read_end_txn_marker
from integration.clients.broker_client import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    PRODUCE_VERSION,
    TIMESTAMP_MS,
    Append,
    produce_request,
)
from integration.observations import at_once
from integration.scenarios.families.transactions.support.transactions_under_test import (
    QUICK_TRANSACTIONS,
    TransactionsUnderTest,
)
from integration.scenarios.helpers.observe import concluded, listed, produced
from integration.scenarios.helpers.publication import Publication
from integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from integration.clients.broker_client import BrokerClient
    from integration.clients.raw_client import Reply
    from integration.clients.topics import Topic
    from integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from integration.observations import Observation
    from integration.scenarios.families.transactions.support.transactional_producer import (
        TransactionalProducer,
    )

QUICK_CLEANING: Final = QUICK_TRANSACTIONS | {
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
}
"""The cleaner looks for a dirty log every 100 ms."""
ONE_BATCH_PER_SEGMENT: Final = "140"
"""A segment's size in bytes: one small batch fits, two do not, so that each append begins a segment."""
HOUR_MS: Final = "3600000"
ONE_REPLICA: Final = "1 partition x 1 replica"
NEVER: Final = "1"
"""A dirty ratio that no log exceeds."""


class CompactedTopic:
    """A topic that is cleaned when it is told to, its leader, and what is left in its log."""

    def __init__(
        self, cluster: ClusterUnderTest, replicas: Sequence[int] | None = None, **configs: str
    ) -> None:
        self._cluster = cluster
        self._published = Publication(cluster)
        configs = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": NEVER} | configs
        self.topic = cluster.topics.create(
            replicas or [cluster.first], internal_segment_bytes=ONE_BATCH_PER_SEGMENT, **configs
        )
        self.leader = cluster.connect(cluster.first)

    def append(self, *pairs: tuple[bytes | None, bytes | None], **header: Any) -> Reply[Any]:
        """Append one batch of keys and values, all with the same old timestamp."""
        return self.append_at(0, *pairs, **header)

    def append_at(
        self, time: int, *pairs: tuple[bytes | None, bytes | None], **header: Any
    ) -> Reply[Any]:
        """Append one batch with a timestamp so many ms later."""
        records = [Record(value, key, TIMESTAMP_MS + time) for key, value in pairs]
        return self.leader.start_produce(
            Append(self.topic, 0, build_batch(records, **header))
        ).result()

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
        """Append a batch per value."""
        for value in values:
            self.append((key, value))

    def clean_to(self, *expected: str) -> None:
        """Let the log be cleaned once, and wait until exactly these records are left."""
        self.clean_always()
        self.await_left(*expected)
        self._cluster.topics.alter(self.topic, min_cleanable_dirty_ratio=NEVER)
        self._published.wait()

    def clean_always(self) -> None:
        """Let the log be cleaned from now on as soon as it has a dirty segment."""
        self._cluster.topics.alter(self.topic, min_cleanable_dirty_ratio="0")

    def await_left(self, *expected: str, client: BrokerClient | None = None) -> None:
        """Wait until exactly these records of producers are left, `offset key=value` per batch."""
        self._cluster.wait_until(
            lambda: self.left(client) == list(expected), f"{expected} are left"
        )

    def left(self, client: BrokerClient | None = None) -> list[str]:
        """Return the records of producers that are left, as above."""
        return [
            _shown(batch)
            for batch in _batches(client or self.leader, self.topic)
            if (header := parse_header(batch)).records_count and not header.is_control
        ]

    def seen(self, step: str, client: BrokerClient | None = None) -> Observation:
        """Observe every batch that is left: its records, offsets, sequences, and the log's end."""
        batches = _batches(client or self.leader, self.topic)
        headers = [parse_header(batch) for batch in batches]
        return concluded(
            step,
            "the cleaner works in the background",
            left=[_shown(batch) for batch in batches],
            offsets=[[header.base_offset, header.last_offset] for header in headers],
            sequences=[header.base_sequence for header in headers],
            counts=[header.records_count for header in headers],
            with_horizon=[header.delete_horizon_ms is not None for header in headers],
            # A base timestamp of today makes the deltas of old records longer, by when the run is.
            sizes=[
                header.size_bytes if header.delete_horizon_ms is None else -1 for header in headers
            ],
            max_timestamps=[
                header.max_timestamp - TIMESTAMP_MS if not header.is_control else -1
                for header in headers
            ],
        )


def _batches(client: BrokerClient, topic: Topic) -> list[memoryview]:
    """Return all batches of the log, segment by segment."""
    found: list[memoryview] = []
    offset = 0
    while True:
        reply = client.fetch(topic, offset, max_wait_ms=0)
        answer = reply.message.responses[0].partitions[0]
        offset = max(offset, answer.log_start_offset)
        batches = split_batches(bytes(answer.records or b""))
        if not batches:
            return found
        found += batches
        offset = parse_header(batches[-1]).last_offset + 1


def _shown(batch: memoryview) -> str:
    header = parse_header(batch)
    if not header.records_count:
        kind = "marker" if header.is_control else "batch"
        return f"empty {kind} {header.base_offset}-{header.last_offset}"
    if header.is_control:
        marker = read_end_txn_marker(batch)
        return f"{header.base_offset} {'commit' if marker.is_commit else 'abort'}"
    return ", ".join(
        f"{record.offset} {_text(record.key)}={_text(record.value)}"
        for record in iter_records(batch)
    )


def _text(value: bytes | None) -> str:
    return "none" if value is None else value.decode()


def _cleaner_has_passed(cluster: ClusterUnderTest) -> None:
    """Wait until the first broker's cleaner has looked at all logs as they are now.

    It looks at all of them before each cleaning; this waits for two cleanings of another log.
    """
    other = CompactedTopic(cluster)
    other.clean_always()
    for first_offset in (0, 3):
        other.append_values(b"k", b"1", b"2", b"3")
        other.await_left(f"{first_offset + 1} k=2", f"{first_offset + 2} k=3")


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def the_last_value_of_each_key_stays(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Older values of a key go, in their own batch too; offsets stay, the active segment is not cleaned."""
    topic = CompactedTopic(cluster)
    topic.append((b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    topic.append((b"c", b"1"))
    topic.append((b"b", b"2"))
    topic.append((b"c", b"active"))
    topic.clean_to("2 a=2", "3 c=1", "4 b=2", "5 c=active")
    yield topic.seen("cleaned")
    yield listed("end", topic.leader.list_offset(topic.topic, LATEST), at_once())
    topic.append((b"d", b"1"))
    topic.clean_to("2 a=2", "4 b=2", "5 c=active", "6 d=1")
    yield topic.seen("cleaned again")


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def a_fetch_from_a_removed_offset_begins_with_the_next(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """Every offset from the log's start to its end can be fetched, also those that are gone."""
    topic = CompactedTopic(cluster)
    for value in (b"1", b"2"):
        topic.append((b"a", value), (b"b", value))
    topic.append((b"c", b"1"))
    topic.append((b"d", b"1"))
    topic.clean_to("2 a=2, 3 b=2", "4 c=1", "5 d=1")
    for offset in range(8):
        reply = topic.leader.fetch(topic.topic, offset, max_wait_ms=0)
        answer = reply.message.responses[0].partitions[0]
        batches = split_batches(bytes(answer.records or b""))
        yield concluded(
            f"from {offset}",
            "the cleaner works in the background",
            error_code=answer.error_code,
            log_start_offset=answer.log_start_offset,
            high_watermark=answer.high_watermark,
            first=_shown(batches[0]) if batches else None,
        )


def _tombstoned(cluster: ClusterUnderTest, delete_retention_ms: str) -> CompactedTopic:
    """Return a topic that was cleaned once, with a tombstone and its horizon."""
    topic = CompactedTopic(cluster, delete_retention_ms=delete_retention_ms)
    topic.append((b"a", b"1"))
    topic.append((b"a", None), (b"b", b"1"))
    topic.append((b"c", b"1"))
    topic.append((b"d", b"1"))
    topic.clean_to("1 a=none, 2 b=1", "3 c=1", "4 d=1")
    return topic


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def a_tombstone_stays_for_delete_retention_ms(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The first cleaning writes the delete horizon into its batch; cleanings before it let it stay."""
    topic = _tombstoned(cluster, HOUR_MS)
    yield topic.seen("cleaned once")
    topic.append((b"c", b"2"))
    topic.append((b"d", b"2"))
    topic.clean_to("1 a=none, 2 b=1", "4 d=1", "5 c=2", "6 d=2")
    yield topic.seen("cleaned twice")


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def a_tombstone_goes_after_delete_retention_ms(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """With no retention it goes in the cleaning after the one that met it first."""
    topic = _tombstoned(cluster, "0")
    yield topic.seen("cleaned once")
    topic.append((b"c", b"2"))
    topic.append((b"d", b"2"))
    topic.clean_to("2 b=1", "4 d=1", "5 c=2", "6 d=2")
    yield topic.seen("cleaned twice")


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def records_without_a_key_are_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_RECORD names each of them; those from before the topic was compacted are dropped."""
    topic = CompactedTopic(cluster)
    yield produced("one", topic.append((None, b"v")), at_once())
    mixed = topic.append((b"a", b"1"), (None, b"v"), (b"b", b"1"), (None, b"w"))
    yield produced("two of four", mixed, at_once())
    yield produced("with keys", topic.append((b"a", b"1")), at_once())
    before = CompactedTopic(cluster, cleanup_policy="delete")
    yield produced("not compacted yet", before.append((None, b"v"), (b"a", b"1")), at_once())
    before.append((b"b", b"1"))
    before.append((b"c", b"1"))
    cluster.topics.alter(before.topic, cleanup_policy="compact")
    before.clean_to("1 a=1", "2 b=1", "3 c=1")
    yield before.seen("compacted")


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def compact_and_delete_deletes_old_segments_too(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """With both policies the log start moves behind what is too old; compacted alone it stays."""
    topics = {
        policy: CompactedTopic(cluster, cleanup_policy=policy, retention_ms=HOUR_MS)
        for policy in ("compact,delete", "compact")
    }
    for topic in topics.values():
        topic.append((b"a", b"1"))
        topic.append((b"a", b"2"))
        topic.append((b"b", b"1"))
    topics["compact,delete"].await_left()
    topics["compact"].clean_to("1 a=2", "2 b=1")
    for policy, topic in topics.items():
        yield topic.seen(policy)
        fetched = topic.leader.fetch(topic.topic, 3, max_wait_ms=0).message
        answer = fetched.responses[0].partitions[0]
        yield concluded(
            f"{policy}, log start",
            "the cleaner works in the background",
            log_start_offset=answer.log_start_offset,
            high_watermark=answer.high_watermark,
        )


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def young_records_are_not_compacted(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """min.compaction.lag.ms, by the records' timestamps: old ones are cleaned, those of now are not."""
    old = CompactedTopic(cluster, min_compaction_lag_ms=HOUR_MS)
    young = CompactedTopic(
        cluster, min_compaction_lag_ms=HOUR_MS, message_timestamp_type="LogAppendTime"
    )
    for topic in (young, old):
        topic.append_values(b"a", b"1", b"2", b"3")
        topic.clean_always()
    old.await_left("1 a=2", "2 a=3")
    _cleaner_has_passed(cluster)
    yield old.seen("old")
    yield concluded("young", "the cleaner works in the background", left=young.left())


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def a_log_that_is_not_dirty_enough_is_not_cleaned(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """Below min.cleanable.dirty.ratio nothing happens, until the ratio is lowered."""
    topic = CompactedTopic(cluster)
    topic.append_values(b"a", b"1", b"2", b"3")
    _cleaner_has_passed(cluster)
    yield topic.seen("ratio 1")
    cluster.topics.alter(topic.topic, min_cleanable_dirty_ratio="0.5")
    topic.await_left("1 a=2", "2 a=3")
    yield topic.seen("ratio 0.5")
    topic.append((b"b", b"1"))
    _cleaner_has_passed(cluster)
    yield topic.seen("half of it is dirty")
    topic.append((b"b", b"2"))
    topic.await_left("2 a=3", "3 b=1", "4 b=2")
    yield topic.seen("more than half of it is dirty")


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def old_records_are_compacted_whatever_the_ratio(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """max.compaction.lag.ms: a log with an older dirty segment is cleaned at any ratio."""
    topic = CompactedTopic(cluster, max_compaction_lag_ms=HOUR_MS)
    topic.append_values(b"a", b"1", b"2", b"3")
    topic.await_left("1 a=2", "2 a=3")
    yield topic.seen("cleaned")


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def a_segment_is_rolled_by_the_largest_lag(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """max.compaction.lag.ms below segment.ms is the age at which a compacted log begins a segment."""
    for policy in ("compact", "delete"):
        topic = CompactedTopic(
            cluster, cleanup_policy=policy, max_compaction_lag_ms="1000", segment_ms=HOUR_MS
        )
        cluster.topics.alter(topic.topic, internal_segment_bytes="100000")
        Publication(cluster).wait()
        for time in (0, 1000, 2001, 2002):
            topic.append_at(time, (b"%d" % time, b"v"))
        yield concluded(
            policy,
            "a fetch ends with its segment",
            segments=[_records_at_once(topic, offset) for offset in range(4)],
        )


def _records_at_once(topic: CompactedTopic, offset: int) -> int:
    answer = topic.leader.fetch(topic.topic, offset, max_wait_ms=0).message
    return len(split_batches(bytes(answer.responses[0].partitions[0].records or b"")))


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def times_are_found_in_a_cleaned_log(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """ListOffsets by time, and for the largest timestamp, whose record may be gone."""
    topic = CompactedTopic(cluster)
    topic.append_at(900, (b"a", b"1"))
    topic.append_at(500, (b"a", b"2"), (b"b", b"1"))
    topic.append_at(700, (b"c", b"1"))
    topic.append_at(600, (b"d", b"1"))
    asked = (0, 500, 501, 600, 700, 701, 900, 901)

    def all_listed(step: str) -> Iterator[Observation]:
        for time in asked:
            reply = topic.leader.list_offset(topic.topic, TIMESTAMP_MS + time)
            yield listed(f"{step}, +{time} ms", reply, at_once())
        for timestamp in (MAX_TIMESTAMP, LATEST, EARLIEST):
            reply = topic.leader.list_offset(topic.topic, timestamp)
            yield listed(f"{step}, timestamp {timestamp}", reply, at_once())

    yield from all_listed("dirty")
    topic.clean_to("1 a=2, 2 b=1", "3 c=1", "4 d=1")
    yield from all_listed("cleaned")


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def the_last_batch_of_a_producer_stays(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Empty, with its sequences: the producer's retry is recognised, and it goes on."""
    topic = CompactedTopic(cluster)
    producer = {"producer_id": cluster.clients.producer_id(), "producer_epoch": 0}
    for sequence in (0, 1, 2):
        topic.append((b"a", b"%d" % sequence), base_sequence=sequence, **producer)
    topic.append((b"a", b"plain"))
    topic.append((b"b", b"1"))
    topic.clean_to("3 a=plain", "4 b=1")
    yield topic.seen("cleaned")
    for step, sequence in (("retry", 2), ("gap", 4), ("next", 3)):
        reply = topic.append((b"a", b"%d" % sequence), base_sequence=sequence, **producer)
        yield produced(step, reply, at_once())
    topic.append((b"c", b"1"))
    topic.clean_to("4 b=1", "5 a=3", "6 c=1")
    yield topic.seen("cleaned again")


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def records_of_aborted_transactions_go(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """They hide no older value; a committed one does, and an open one ends what is cleaned."""
    transactions = TransactionsUnderTest(cluster)
    topic = CompactedTopic(cluster)
    producer = transactions.producer()
    topic.append((b"a", b"before"))
    topic.append((b"b", b"before"))
    topic.append_in(producer, (b"a", b"aborted"))
    transactions.ended(producer, committed=False)
    topic.append_in(producer, (b"b", b"committed"))
    transactions.ended(producer)
    topic.append_in(producer, (b"c", b"open"))
    topic.append_values(b"a", b"after", b"last")
    topic.clean_to("0 a=before", "4 b=committed", "6 c=open", "7 a=after", "8 a=last")
    yield topic.seen("one is open")
    transactions.ended(producer, committed=False)
    topic.append((b"d", b"1"))
    topic.clean_to("4 b=committed", "8 a=last", "10 d=1")
    yield topic.seen("aborted")
    yield transactions.read("committed", topic.leader, topic.topic, offset=2)


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def a_marker_goes_after_the_records_of_its_transaction(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """The cleaning that finds none of them writes a delete horizon; a later one drops the marker."""
    transactions = TransactionsUnderTest(cluster)
    topic = CompactedTopic(cluster, delete_retention_ms="0")
    first, second = transactions.producer(), transactions.producer()
    for producer, committed in ((first, False), (first, True), (second, True)):
        topic.append_in(producer, (b"a", b"v"))
        transactions.ended(producer, committed=committed)
    for number in range(4):
        topic.append((b"b", b"%d" % number))
        topic.append((b"c", b"%d" % number))
        end = 6 + 2 * number
        topic.clean_to(*_after_round(number, end))
        yield topic.seen(f"cleaning {number + 1}")


def _after_round(number: int, end: int) -> list[str]:
    """Return what is left of the records of producers after so many rounds that each append b and c."""
    older = [f"{end - 1} c={number - 1}"] if number else []
    return ["4 a=v", *older, f"{end} b={number}", f"{end + 1} c={number}"]


@scenario(topology="1 partition x 3 replicas", configs=QUICK_CLEANING)
def every_replica_is_cleaned_for_itself(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The same records stay on all of them; a follower takes over a log that has gaps."""
    topic = CompactedTopic(cluster, tuple(cluster.brokers))
    topic.append_values(b"a", b"1", b"2", b"3")
    topic.append((b"b", b"1"))
    topic.clean_always()
    for broker in cluster.brokers:
        client = cluster.connect(broker)
        topic.await_left("2 a=3", "3 b=1", client=client)
        yield topic.seen(cluster.brokers.role(broker), client)
