"""Effects of configurations, also when they change at run time. Kafka: LogConfig, KafkaConfig."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import Record, build_batch, iter_records
from broker_sim_integration.clients.admin_requests import creatable, create, delete, metadata, pages
from broker_sim_integration.clients.broker_client import EARLIEST, LATEST, TIMESTAMP_MS, Append, Position, batch_of
from broker_sim_integration.observations import Observation, at_once
from broker_sim_integration.scenarios.helpers.broker_configs import RESTRICTED
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.observe import (
    answer_or_end,
    fetched,
    listed,
    produced,
    seen_in,
    whole_response,
)
from broker_sim_integration.scenarios.helpers.publication import Publication
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.protocol import messages
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

MEBIBYTE = 1 << 20
HOUR_MS = 3_600_000


@scenario(topology="1 partition x 1 replica")
def max_message_bytes_holds_from_when_it_is_changed(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Lowered, raised and reset between produces: MESSAGE_TOO_LARGE only while it is low."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    published = Publication(cluster)
    for limit in (None, "500", "5000", None):
        cluster.topics.alter(topic, max_message_bytes=limit)
        published.wait()
        for size in (100, 1000):
            reply = leader.produce(topic, b"x" * size)
            yield produced(f"limit {limit}, {size} bytes", reply, at_once(), attempt=1)
    yield listed("appended", leader.list_offset(topic, LATEST), at_once())


@scenario(topology="1 partition x 1 replica")
def the_limit_is_on_the_compressed_batch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A batch whose records exceed the limit uncompressed is accepted if it fits compressed."""
    topic = cluster.topics.create([cluster.first], max_message_bytes="1000")
    leader = cluster.connect(cluster.first)
    for codec in (CompressionCodec.NONE, CompressionCodec.GZIP):
        batch = build_batch([Record(b"x" * 5000, timestamp=TIMESTAMP_MS)], codec=codec)
        reply = leader.start_produce(Append(topic, 0, batch)).result()
        yield produced(codec.name.lower(), reply, at_once())


@scenario(topology="1 partition x 1 replica")
def log_append_time_is_stamped_by_the_broker(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The stamp is in the response and in the batch, whose base timestamp stays; ListOffsets finds that time."""
    topic = cluster.topics.create([cluster.first], message_timestamp_type="LogAppendTime")
    leader = cluster.connect(cluster.first)
    reply = leader.produce(topic, b"a", b"b")
    yield produced("produce", reply, at_once())
    stamp = reply.message.responses[0].partition_responses[0].log_append_time_ms
    yield _stamped("fetched", leader.fetch(topic), stamp)
    for step, time, found in (("before", -1, True), ("at", 0, True), ("after", 1, False)):
        listing = leader.list_offset(topic, stamp + time)
        answer = listing.message.topics[0].partitions[0]
        yield seen_in(
            f"{step} that time",
            listing,
            error_code=answer.error_code,
            base_offset=answer.offset,
            is_the_stamp=answer.timestamp == stamp,
            found=found,
        )


@scenario(topology="1 partition x 1 replica")
def the_type_of_timestamps_changes_for_later_batches(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """CreateTime, LogAppendTime, CreateTime and LogAppendTime again, batch by batch in one log."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    published = Publication(cluster)
    for offset, kind in enumerate((None, "LogAppendTime", "CreateTime", "LogAppendTime")):
        cluster.topics.alter(topic, message_timestamp_type=kind)
        published.wait()
        reply = leader.produce(topic, b"a")
        step = f"{offset} {kind}"
        yield produced(step, reply, at_once())
        stamp = reply.message.responses[0].partition_responses[0].log_append_time_ms
        yield _stamped(f"{step}, fetched", leader.fetch(topic, offset), stamp)


@scenario(topology="1 partition x 1 replica")
def timestamps_out_of_bounds_are_refused_record_by_record(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_TIMESTAMP lists each bad record of a batch; with LogAppendTime nothing is checked."""
    leader = cluster.connect(cluster.first)
    batch = build_batch([Record(b"v", timestamp=time) for time in (TIMESTAMP_MS, 1 << 42, TIMESTAMP_MS, 1 << 43)])
    bounds = {"message_timestamp_after_max_ms": str(HOUR_MS)}
    for step, kind in (("by the producer", "CreateTime"), ("by the broker", "LogAppendTime")):
        topic = cluster.topics.create([cluster.first], message_timestamp_type=kind, **_texts(bounds))
        reply = leader.start_produce(Append(topic, 0, batch)).result()
        yield produced(step, reply, at_once())
    bounds = {"message_timestamp_before_max_ms": str(HOUR_MS)}
    topic = cluster.topics.create([cluster.first], **_texts(bounds))
    reply = leader.start_produce(Append(topic, 0, batch_of([b"a", b"b"]))).result()
    yield produced("too old", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def the_brokers_compression_wins(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The appended batch has the topic's codec; `producer` keeps the producer's codec."""
    leader = cluster.connect(cluster.first)
    values = [Record(b"compressible " * 20, timestamp=TIMESTAMP_MS) for _ in range(5)]
    for kind in ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"):
        topic = cluster.topics.create([cluster.first], compression_type=kind)
        for offset, codec in enumerate((CompressionCodec.NONE, CompressionCodec.GZIP)):
            batch = build_batch(values, codec=codec)
            step = f"{kind}, sent {codec.name.lower()}"
            reply = leader.start_produce(Append(topic, 0, batch)).result()
            yield produced(step, reply, at_once())
            found = leader.fetch(topic, offset * len(values))
            records: Any = found.message.responses[0].partitions[0].records
            header = parse_header(records)
            shown = [record.value == values[0].value for record in iter_records(records)]
            yield seen_in(f"{step}, fetched", found, codec=header.codec.name, same=shown, base=header.base_offset)


@scenario(topology="1 partition x 1 replica")
def a_compacted_topic_wants_keys(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A record without a key gets INVALID_RECORD with its index; tombstones are accepted."""
    topic = cluster.topics.create([cluster.first], cleanup_policy="compact")
    leader = cluster.connect(cluster.first)
    for key, value in ((b"k", b"v"), (b"k", None), (None, b"v"), (b"", b"v")):
        reply = leader.produce_keyed(topic, key, value)
        yield produced(f"key {key!r}, value {value!r}", reply, at_once())
    records = [Record(b"v", key, TIMESTAMP_MS) for key in (b"good", None, b"good", None)]
    reply = leader.start_produce(Append(topic, 0, build_batch(records))).result()
    yield whole_response("two of four without", cluster, reply)
    yield listed("appended", leader.list_offset(topic, LATEST), at_once())


@scenario(topology="1 partition x 1 replica")
def a_new_segment_wakes_a_fetch_that_wants_more(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A fetch reads one segment: parked in an older one, it completes without its min_bytes."""
    topic = cluster.topics.create([cluster.first], segment_bytes=str(MEBIBYTE))
    consumer, leader = cluster.connect(cluster.first), cluster.connect(cluster.first)
    leader.produce(topic, b"x" * (400 << 10))
    parked = consumer.start_fetch(Position(topic, max_bytes=10 * MEBIBYTE), max_wait_ms=5000, min_bytes=10 * MEBIBYTE)
    cluster.wait(100)
    leader.produce(topic, b"y" * (400 << 10))
    cluster.wait(100)
    reply = leader.produce(topic, b"z" * (400 << 10))
    fetch = parked.result()
    yield fetched("woken by the third batch", fetch, after(fetch, reply))
    for offset in (0, 1, 2):
        found = leader.fetch(topic, offset, partition_max_bytes=10 * MEBIBYTE)
        yield fetched(f"from {offset}", found, at_once())


@scenario(topology="1 partition x 3 replicas")
def min_insync_replicas_above_the_replicas_counts_as_all_of_them(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Raised and lowered at run time on a healthy topic: accepted while all replicas are in sync."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    published = Publication(cluster)
    for minimum in ("3", "4", "1", None):
        cluster.topics.alter(topic, min_insync_replicas=minimum)
        published.wait()
        reply = leader.produce(topic, b"v")
        yield produced(f"minimum {minimum}", reply, at_once())


@scenario(topology="2 partitions x 2 replicas", configs=RESTRICTED)
def brokers_defaults_are_those_of_new_topics(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """num.partitions, default.replication.factor and message.max.bytes apply to new topics."""
    client = cluster.connect(cluster.first)
    name = cluster.topics.name("defaults")
    yield whole_response("created", cluster, create(client, creatable(name)))
    cluster.wait_until.known(name)
    found = metadata(client, name)
    (topic,) = found.message.topics
    sizes = [len(partition.replica_nodes) for partition in topic.partitions]
    yield seen_in("replicas", found, sizes=sizes)
    ours = cluster.topics.create([cluster.first])
    for size in (4000, 6000):
        reply = client.produce(ours, b"x" * size)
        yield produced(f"{size} bytes", reply, at_once())
    larger = cluster.topics.create([cluster.first], max_message_bytes="7000")
    yield produced("the topic's own limit", client.produce(larger, b"x" * 6000), at_once())


@scenario(topology="1 partition x 1 replica", configs=RESTRICTED)
def fetch_max_bytes_caps_what_requests_ask(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The broker's limit caps each response, except for a single batch, and it caps min_bytes, too."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    for size in (1000, 1000, 1000, 4000):
        leader.produce(topic, b"x" * size)
    for offset in (0, 2, 3):
        yield fetched(f"from {offset}", leader.fetch(topic, offset), at_once())
    reply = leader.fetch(topic, max_wait_ms=5000, min_bytes=MEBIBYTE)
    yield fetched("min bytes are capped", reply, at_once())


@scenario(topology="1 partition x 1 replica", configs=RESTRICTED)
def a_request_above_the_sockets_limit_ends_the_connection(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """socket.request.max.bytes limits the whole frame."""
    topic = cluster.topics.create([cluster.first], max_message_bytes="200000")
    for size in (90_000, 110_000):
        connection = cluster.connect(cluster.first)
        pending = connection.start_produce(Append(topic, 0, batch_of([b"x" * size])))
        yield answer_or_end(f"{size} bytes", pending, at_once())
    reply = cluster.connect(cluster.first).list_offset(topic, LATEST)
    yield listed("appended", reply, at_once())


@scenario(topology="1 partition x 1 replica", configs=RESTRICTED)
def topics_stay_where_deletion_is_disabled(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """TOPIC_DELETION_DISABLED since version 3, INVALID_REQUEST before."""
    topic = cluster.topics.create([cluster.first])
    client = cluster.connect(cluster.first)
    for version in (1, 2, 3, 4, 5):
        yield whole_response(f"version {version}", cluster, delete(client, topic.name, version=version))
    yield whole_response("by id", cluster, delete(client, topic.topic_id))
    yield whole_response("still there", cluster, metadata(client, topic.name))


@scenario(topology="5 partitions x 1 replica", configs=RESTRICTED)
def descriptions_have_the_brokers_page_size(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """max.request.partition.size.limit limits a page of DescribeTopicPartitions."""
    topic = cluster.topics.create([cluster.first], partitions=5)
    client = cluster.connect(cluster.first)
    for limit in (2, 2000):
        reply = pages(client, (topic.name,), limit)
        yield whole_response(f"limit {limit}", cluster, reply, at_once())


@scenario(topology="1 partition x 1 replica", configs=RESTRICTED)
def old_records_are_deleted(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """retention.ms counts from the records' timestamps: the log start offset becomes the log end offset."""
    topic = cluster.topics.create([cluster.first], retention_ms=str(HOUR_MS))
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"old", b"older")

    def is_empty() -> bool:
        reply = leader.list_offset(topic, EARLIEST)
        return reply.message.topics[0].partitions[0].offset == 2

    cluster.wait_until(is_empty, "old records are deleted")
    for timestamp in (EARLIEST, LATEST, TIMESTAMP_MS):
        yield listed(f"timestamp {timestamp}", leader.list_offset(topic, timestamp), at_once())
    yield fetched("what was", leader.fetch(topic), at_once())
    yield produced("next", leader.produce(topic, b"new"), at_once())


@scenario(topology="1 partition x 1 replica", configs=RESTRICTED)
def large_logs_lose_their_oldest_segments(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """retention.bytes deletes whole segments as long as the rest of the log has at least that size."""
    topic = cluster.topics.create(
        [cluster.first],
        retention_bytes=str(MEBIBYTE),
        retention_ms="-1",
        segment_bytes=str(MEBIBYTE),
        max_message_bytes=str(MEBIBYTE),
    )
    leader = cluster.connect(cluster.first)
    for _ in range(33):
        leader.produce(topic, b"x" * 90_000)

    def is_trimmed() -> bool:
        reply = leader.list_offset(topic, EARLIEST)
        return reply.message.topics[0].partitions[0].offset > 0

    cluster.wait_until(is_trimmed, "the oldest segment is deleted")
    for timestamp in (EARLIEST, LATEST):
        yield listed(f"timestamp {timestamp}", leader.list_offset(topic, timestamp), at_once())


def _texts(configs: dict[str, str]) -> dict[str, Any]:
    """Return configurations for `Topics.create`, whose keyword parameters have other types, too."""
    return dict(configs)


def _stamped(step: str, reply: Reply[messages.FetchResponse], stamp: int) -> Observation:
    """Observe whether a batch's timestamps are `stamp`, the log append time of the response, or the producer's."""
    records: Any = reply.message.responses[0].partitions[0].records
    header = parse_header(records)
    record = next(iter_records(records))
    return seen_in(
        step,
        reply,
        base_offset=header.base_offset,
        attributes=header.attributes,
        base_timestamp=header.base_timestamp,
        max_timestamp_is_the_stamp=header.max_timestamp == stamp,
        max_timestamp_is_the_producers=header.max_timestamp == TIMESTAMP_MS,
        record_is_the_stamp=record.timestamp == stamp,
    )
