"""The records that the log cleaner leaves in compacted topics. Kafka: LogCleaner, LogCleanerManager, Cleaner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.protocol.record_batch import split_batches
from broker_sim_integration.clients.broker_client import EARLIEST, LATEST, MAX_TIMESTAMP, TIMESTAMP_MS
from broker_sim_integration.observations import at_once
from broker_sim_integration.scenarios.families.compaction.support.compacted_topic import (
    ONE_REPLICA,
    QUICK_CLEANING,
    CompactedTopic,
    records_of,
    shown,
)
from broker_sim_integration.scenarios.helpers.observe import concluded, listed, produced
from broker_sim_integration.scenarios.helpers.publication import Publication
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

HOUR_MS: Final = "3600000"


def _cleaner_has_passed(cluster: ClusterUnderTest) -> None:
    """Wait until the first broker's cleaner has looked at the present state of all logs.

    It looks at all of them before each cleaning; this waits for two cleanings of another log.
    """
    other = CompactedTopic(cluster)
    other.clean_always()
    for first_offset in (0, 3):
        other.append_values(b"k", b"1", b"2", b"3")
        other.await_left(f"{first_offset + 1} k=2", f"{first_offset + 2} k=3")


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def the_last_value_of_each_key_stays(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Older values of a key are removed, also in the same batch; offsets stay, the active segment is not cleaned."""
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
def a_fetch_from_a_removed_offset_begins_with_the_next(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each offset from the log's start to its end can be fetched, also those of removed records."""
    topic = CompactedTopic(cluster)
    for value in (b"1", b"2"):
        topic.append((b"a", value), (b"b", value))
    topic.append((b"c", b"1"))
    topic.append((b"d", b"1"))
    topic.clean_to("2 a=2, 3 b=2", "4 c=1", "5 d=1")
    for offset in range(8):
        reply = topic.leader.fetch(topic.topic, offset, max_wait_ms=0)
        answer = reply.message.responses[0].partitions[0]
        batches = split_batches(records_of(answer))
        yield concluded(
            f"from {offset}",
            "the cleaner works in the background",
            error_code=answer.error_code,
            log_start_offset=answer.log_start_offset,
            high_watermark=answer.high_watermark,
            first=shown(batches[0]) if batches else None,
        )


def _tombstoned(cluster: ClusterUnderTest, delete_retention_ms: str) -> CompactedTopic:
    """Return a topic that was cleaned once and has a tombstone with a delete horizon."""
    topic = CompactedTopic(cluster, delete_retention_ms=delete_retention_ms)
    topic.append((b"a", b"1"))
    topic.append((b"a", None), (b"b", b"1"))
    topic.append((b"c", b"1"))
    topic.append((b"d", b"1"))
    topic.clean_to("1 a=none, 2 b=1", "3 c=1", "4 d=1")
    return topic


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def a_tombstone_stays_for_delete_retention_ms(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The first cleaning writes the delete horizon into the batch; cleanings before that horizon keep it."""
    topic = _tombstoned(cluster, HOUR_MS)
    yield topic.seen("cleaned once")
    topic.append((b"c", b"2"))
    topic.append((b"d", b"2"))
    topic.clean_to("1 a=none, 2 b=1", "4 d=1", "5 c=2", "6 d=2")
    yield topic.seen("cleaned twice")


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def a_tombstone_goes_after_delete_retention_ms(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """With delete.retention.ms=0 it is removed in the cleaning after the one that wrote its horizon."""
    topic = _tombstoned(cluster, "0")
    yield topic.seen("cleaned once")
    topic.append((b"c", b"2"))
    topic.append((b"d", b"2"))
    topic.clean_to("2 b=1", "4 d=1", "5 c=2", "6 d=2")
    yield topic.seen("cleaned twice")


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def records_without_a_key_are_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_RECORD lists each of them; those from before the topic was compacted are dropped."""
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
    """With both policies the log start moves behind old segments; with compact alone it stays."""
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
    """min.compaction.lag.ms counts from the records' timestamps: old records are cleaned, current ones are not."""
    old = CompactedTopic(cluster, min_compaction_lag_ms=HOUR_MS)
    young = CompactedTopic(cluster, min_compaction_lag_ms=HOUR_MS, message_timestamp_type="LogAppendTime")
    for topic in (young, old):
        topic.append_values(b"a", b"1", b"2", b"3")
        topic.clean_always()
    old.await_left("1 a=2", "2 a=3")
    _cleaner_has_passed(cluster)
    yield old.seen("old")
    yield concluded("young", "the cleaner works in the background", left=young.left())


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def a_log_that_is_not_dirty_enough_is_not_cleaned(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Below min.cleanable.dirty.ratio the log is not cleaned, until the ratio is lowered."""
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
def old_records_are_compacted_whatever_the_ratio(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """max.compaction.lag.ms: a log with an older dirty segment is cleaned at any ratio."""
    topic = CompactedTopic(cluster, max_compaction_lag_ms=HOUR_MS)
    topic.append_values(b"a", b"1", b"2", b"3")
    topic.await_left("1 a=2", "2 a=3")
    yield topic.seen("cleaned")


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def a_segment_is_rolled_by_the_largest_lag(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A max.compaction.lag.ms below segment.ms is the age at which a compacted log begins a new segment."""
    for policy in ("compact", "delete"):
        topic = CompactedTopic(cluster, cleanup_policy=policy, max_compaction_lag_ms="1000", segment_ms=HOUR_MS)
        cluster.topics.alter(topic.topic, internal_segment_bytes="100000")
        Publication(cluster).wait()
        for time in (0, 1000, 2001, 2002):
            topic.append_at(time, (b"%d" % time, b"v"))
        yield concluded(
            policy, "a fetch ends with its segment", segments=[_records_at_once(topic, offset) for offset in range(4)]
        )


def _records_at_once(topic: CompactedTopic, offset: int) -> int:
    answer = topic.leader.fetch(topic.topic, offset, max_wait_ms=0).message
    return len(split_batches(records_of(answer.responses[0].partitions[0])))


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def times_are_found_in_a_cleaned_log(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """ListOffsets by timestamp, and for the largest timestamp, whose record may have been removed."""
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
    """It becomes empty and keeps its sequences: a retry is recognised, and the producer continues."""
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


@scenario(topology="1 partition x 3 replicas", configs=QUICK_CLEANING)
def every_replica_is_cleaned_for_itself(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The same records remain on all replicas; a follower accepts a log that has gaps."""
    topic = CompactedTopic(cluster, tuple(cluster.brokers))
    topic.append_values(b"a", b"1", b"2", b"3")
    topic.append((b"b", b"1"))
    topic.clean_always()
    for broker in cluster.brokers:
        client = cluster.connect(broker)
        topic.await_left("2 a=3", "3 b=1", client=client)
        yield topic.seen(cluster.brokers.role(broker), client)
