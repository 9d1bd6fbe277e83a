"""What configurations do, also when they change at run time. Kafka: LogConfig, KafkaConfig."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import Record, build_batch, iter_records
from integration.clients.admin_requests import creatable, create, delete, metadata, pages
from integration.clients.broker_client import (
    EARLIEST,
    LATEST,
    TIMESTAMP_MS,
    Append,
    Position,
    batch_of,
)
from integration.observations import Observation, at_once
from integration.scenarios.clusters import RESTRICTED
from integration.scenarios.observe import after, answer_or_end, fetched, listed, produced
from integration.scenarios.publication import Publication
from integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.protocol import messages
    from integration.clients.raw_client import Reply
    from integration.stage.stage import Stage

MEBIBYTE = 1 << 20
HOUR_MS = 3_600_000


@scenario(topology="1 partition x 1 replica")
def max_message_bytes_holds_from_when_it_is_changed(stage: Stage) -> Iterator[Observation]:
    """Lowered, raised and reset while a producer goes on: MESSAGE_TOO_LARGE only in between."""
    topic = stage.topic([stage.anchor])
    leader = stage.connect(stage.anchor)
    published = Publication(stage)
    for limit in (None, "500", "5000", None):
        stage.alter_topic(topic, max_message_bytes=limit)
        published.wait()
        for size in (100, 1000):
            reply = leader.produce(topic, b"x" * size)
            yield produced(f"limit {limit}, {size} bytes", reply, at_once(), attempt=1)
    yield listed("appended", leader.list_offset(topic, LATEST))


@scenario(topology="1 partition x 1 replica")
def the_limit_is_on_the_compressed_batch(stage: Stage) -> Iterator[Observation]:
    """A batch that is too large in full passes when it is small enough compressed."""
    topic = stage.topic([stage.anchor], max_message_bytes="1000")
    leader = stage.connect(stage.anchor)
    for codec in (CompressionCodec.NONE, CompressionCodec.GZIP):
        batch = build_batch([Record(b"x" * 5000, timestamp=TIMESTAMP_MS)], codec=codec)
        reply = leader.start_produce(Append(topic, 0, batch)).result()
        yield produced(codec.name.lower(), reply, at_once())


@scenario(topology="1 partition x 1 replica")
def log_append_time_is_stamped_by_the_broker(stage: Stage) -> Iterator[Observation]:
    """In the answer and on the batch, whose base timestamp stays; found by that time."""
    topic = stage.topic([stage.anchor], message_timestamp_type="LogAppendTime")
    leader = stage.connect(stage.anchor)
    reply = leader.produce(topic, b"a", b"b")
    yield produced("produce", reply, at_once())
    stamp = reply.message.responses[0].partition_responses[0].log_append_time_ms
    yield _stamped("fetched", leader.fetch(topic), stamp)
    for step, time, found in (("before", -1, True), ("at", 0, True), ("after", 1, False)):
        answer = leader.list_offset(topic, stamp + time).message.topics[0].partitions[0]
        fields = {"is_the_stamp": answer.timestamp == stamp, "found": found}
        yield Observation(
            f"{step} that time",
            error_code=answer.error_code,
            base_offset=answer.offset,
            fields=fields,
        )


@scenario(topology="1 partition x 1 replica")
def the_type_of_timestamps_changes_for_later_batches(stage: Stage) -> Iterator[Observation]:
    """CreateTime, then LogAppendTime, then CreateTime again, batch by batch in one log."""
    topic = stage.topic([stage.anchor])
    leader = stage.connect(stage.anchor)
    published = Publication(stage)
    for offset, kind in enumerate((None, "LogAppendTime", "CreateTime", "LogAppendTime")):
        stage.alter_topic(topic, message_timestamp_type=kind)
        published.wait()
        reply = leader.produce(topic, b"a")
        step = f"{offset} {kind}"
        yield produced(step, reply, at_once())
        stamp = reply.message.responses[0].partition_responses[0].log_append_time_ms
        yield _stamped(f"{step}, fetched", leader.fetch(topic, offset), stamp)


@scenario(topology="1 partition x 1 replica")
def timestamps_out_of_bounds_are_refused_record_by_record(stage: Stage) -> Iterator[Observation]:
    """INVALID_TIMESTAMP names each bad record of a batch; LogAppendTime does not look."""
    leader = stage.connect(stage.anchor)
    batch = build_batch(
        [Record(b"v", timestamp=time) for time in (TIMESTAMP_MS, 1 << 42, TIMESTAMP_MS, 1 << 43)]
    )
    bounds = {"message_timestamp_after_max_ms": str(HOUR_MS)}
    for step, kind in (("by the producer", "CreateTime"), ("by the broker", "LogAppendTime")):
        topic = stage.topic([stage.anchor], message_timestamp_type=kind, **_texts(bounds))
        reply = leader.start_produce(Append(topic, 0, batch)).result()
        yield produced(step, reply, at_once())
    bounds = {"message_timestamp_before_max_ms": str(HOUR_MS)}
    topic = stage.topic([stage.anchor], **_texts(bounds))
    reply = leader.start_produce(Append(topic, 0, batch_of([b"a", b"b"]))).result()
    yield produced("too old", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def the_brokers_compression_wins(stage: Stage) -> Iterator[Observation]:
    """What is appended has the topic's codec; `producer` keeps the producer's."""
    leader = stage.connect(stage.anchor)
    values = [Record(b"compressible " * 20, timestamp=TIMESTAMP_MS) for _ in range(5)]
    for kind in ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"):
        topic = stage.topic([stage.anchor], compression_type=kind)
        for offset, codec in enumerate((CompressionCodec.NONE, CompressionCodec.GZIP)):
            batch = build_batch(values, codec=codec)
            step = f"{kind}, sent {codec.name.lower()}"
            reply = leader.start_produce(Append(topic, 0, batch)).result()
            yield produced(step, reply, at_once())
            found = leader.fetch(topic, offset * len(values))
            records: Any = found.message.responses[0].partitions[0].records
            header = parse_header(records)
            shown = [record.value == values[0].value for record in iter_records(records)]
            fields = {"codec": header.codec.name, "same": shown, "base": header.base_offset}
            yield Observation(f"{step}, fetched", fields=fields)


@scenario(topology="1 partition x 1 replica")
def a_compacted_topic_wants_keys(stage: Stage) -> Iterator[Observation]:
    """A record without a key is INVALID_RECORD, named by its place; tombstones are welcome."""
    topic = stage.topic([stage.anchor], cleanup_policy="compact")
    leader = stage.connect(stage.anchor)
    for key, value in ((b"k", b"v"), (b"k", None), (None, b"v"), (b"", b"v")):
        reply = leader.produce_keyed(topic, key, value)
        yield produced(f"key {key!r}, value {value!r}", reply, at_once())
    records = [Record(b"v", key, TIMESTAMP_MS) for key in (b"good", None, b"good", None)]
    reply = leader.start_produce(Append(topic, 0, build_batch(records))).result()
    yield stage.whole("two of four without", reply)
    yield listed("appended", leader.list_offset(topic, LATEST))


@scenario(topology="1 partition x 1 replica")
def a_new_segment_wakes_a_fetch_that_wants_more(stage: Stage) -> Iterator[Observation]:
    """A fetch reads one segment: parked in an older one it is answered though min bytes lack."""
    topic = stage.topic([stage.anchor], segment_bytes=str(MEBIBYTE))
    consumer, leader = stage.connect(stage.anchor), stage.connect(stage.anchor)
    leader.produce(topic, b"x" * (400 << 10))
    parked = consumer.start_fetch(
        Position(topic, max_bytes=10 * MEBIBYTE), max_wait_ms=5000, min_bytes=10 * MEBIBYTE
    )
    stage.wait(100)
    leader.produce(topic, b"y" * (400 << 10))
    stage.wait(100)
    reply = leader.produce(topic, b"z" * (400 << 10))
    fetch = parked.result()
    yield fetched("woken by the third batch", fetch, after(fetch, reply))
    for offset in (0, 1, 2):
        found = leader.fetch(topic, offset, partition_max_bytes=10 * MEBIBYTE)
        yield fetched(f"from {offset}", found, at_once())


@scenario(topology="1 partition x 3 replicas")
def min_insync_replicas_above_the_replicas_counts_as_all_of_them(
    stage: Stage,
) -> Iterator[Observation]:
    """Raised and lowered at run time on a healthy topic: accepted as long as all are in sync."""
    topic = stage.topic()
    leader = stage.connect(stage.anchor)
    published = Publication(stage)
    for minimum in ("3", "4", "1", None):
        stage.alter_topic(topic, min_insync_replicas=minimum)
        published.wait()
        reply = leader.produce(topic, b"v")
        yield produced(f"minimum {minimum}", reply, at_once())


@scenario(topology="2 partitions x 2 replicas", configs=RESTRICTED)
def brokers_defaults_are_those_of_new_topics(stage: Stage) -> Iterator[Observation]:
    """num.partitions, default.replication.factor and message.max.bytes in what is created."""
    client = stage.connect(stage.anchor)
    name = stage.name("defaults")
    yield stage.whole("created", create(client, creatable(name)))
    stage.until_known(name)
    (topic,) = metadata(client, name).message.topics
    sizes = [len(partition.replica_nodes) for partition in topic.partitions]
    yield Observation("replicas", fields={"sizes": sizes})
    ours = stage.topic([stage.anchor])
    for size in (4000, 6000):
        reply = client.produce(ours, b"x" * size)
        yield produced(f"{size} bytes", reply, at_once())
    larger = stage.topic([stage.anchor], max_message_bytes="7000")
    yield produced("the topic's own limit", client.produce(larger, b"x" * 6000), at_once())


@scenario(topology="1 partition x 1 replica", configs=RESTRICTED)
def fetch_max_bytes_caps_what_requests_ask(stage: Stage) -> Iterator[Observation]:
    """No answer is larger than the broker allows, but for a single batch; min bytes neither."""
    topic = stage.topic([stage.anchor])
    leader = stage.connect(stage.anchor)
    for size in (1000, 1000, 1000, 4000):
        leader.produce(topic, b"x" * size)
    for offset in (0, 2, 3):
        yield fetched(f"from {offset}", leader.fetch(topic, offset), at_once())
    reply = leader.fetch(topic, max_wait_ms=5000, min_bytes=MEBIBYTE)
    yield fetched("min bytes are capped", reply, at_once())


@scenario(topology="1 partition x 1 replica", configs=RESTRICTED)
def a_request_above_the_sockets_limit_ends_the_connection(
    stage: Stage,
) -> Iterator[Observation]:
    """socket.request.max.bytes is on the whole frame."""
    topic = stage.topic([stage.anchor], max_message_bytes="200000")
    for size in (90_000, 110_000):
        connection = stage.connect(stage.anchor)
        pending = connection.start_produce(Append(topic, 0, batch_of([b"x" * size])))
        yield answer_or_end(f"{size} bytes", pending, at_once())
    reply = stage.connect(stage.anchor).list_offset(topic, LATEST)
    yield listed("appended", reply)


@scenario(topology="1 partition x 1 replica", configs=RESTRICTED)
def topics_stay_where_deletion_is_disabled(stage: Stage) -> Iterator[Observation]:
    """TOPIC_DELETION_DISABLED from version 3 on, INVALID_REQUEST before."""
    topic = stage.topic([stage.anchor])
    client = stage.connect(stage.anchor)
    for version in (1, 2, 3, 4, 5):
        yield stage.whole(f"version {version}", delete(client, topic.name, version=version))
    yield stage.whole("by id", delete(client, topic.topic_id))
    yield stage.whole("still there", metadata(client, topic.name))


@scenario(topology="5 partitions x 1 replica", configs=RESTRICTED)
def descriptions_have_the_brokers_page_size(stage: Stage) -> Iterator[Observation]:
    """max.request.partition.size.limit caps a page of DescribeTopicPartitions."""
    topic = stage.topic([stage.anchor], partitions=5)
    client = stage.connect(stage.anchor)
    for limit in (2, 2000):
        reply = pages(client, (topic.name,), limit)
        yield stage.whole(f"limit {limit}", reply, at_once())


@scenario(topology="1 partition x 1 replica", configs=RESTRICTED)
def old_records_are_deleted(stage: Stage) -> Iterator[Observation]:
    """retention.ms by the records' own time: the log begins where it ends, and says so."""
    topic = stage.topic([stage.anchor], retention_ms=str(HOUR_MS))
    leader = stage.connect(stage.anchor)
    leader.produce(topic, b"old", b"older")

    def is_empty() -> bool:
        reply = leader.list_offset(topic, EARLIEST)
        return reply.message.topics[0].partitions[0].offset == 2

    stage.until(is_empty, "old records are deleted")
    for timestamp in (EARLIEST, LATEST, TIMESTAMP_MS):
        yield listed(f"timestamp {timestamp}", leader.list_offset(topic, timestamp), at_once())
    yield fetched("what was", leader.fetch(topic), at_once())
    yield produced("next", leader.produce(topic, b"new"), at_once())


@scenario(topology="1 partition x 1 replica", configs=RESTRICTED)
def large_logs_lose_their_oldest_segments(stage: Stage) -> Iterator[Observation]:
    """retention.bytes takes whole segments, as many as leave the log no smaller than it says."""
    topic = stage.topic(
        [stage.anchor],
        retention_bytes=str(MEBIBYTE),
        retention_ms="-1",
        segment_bytes=str(MEBIBYTE),
        max_message_bytes=str(MEBIBYTE),
    )
    leader = stage.connect(stage.anchor)
    for _ in range(33):
        leader.produce(topic, b"x" * 90_000)

    def is_trimmed() -> bool:
        reply = leader.list_offset(topic, EARLIEST)
        return reply.message.topics[0].partitions[0].offset > 0

    stage.until(is_trimmed, "the oldest segment is deleted")
    for timestamp in (EARLIEST, LATEST):
        yield listed(f"timestamp {timestamp}", leader.list_offset(topic, timestamp), at_once())


def _texts(configs: dict[str, str]) -> dict[str, Any]:
    """Return configurations as further arguments of `Stage.topic`, which has others as well."""
    return dict(configs)


def _stamped(step: str, reply: Reply[messages.FetchResponse], stamp: int) -> Observation:
    """Observe whose time a batch carries; ``stamp`` is what the broker said of it."""
    records: Any = reply.message.responses[0].partitions[0].records
    header = parse_header(records)
    record = next(iter_records(records))
    return Observation(
        step,
        base_offset=header.base_offset,
        fields={
            "attributes": header.attributes,
            "base_timestamp": header.base_timestamp,
            "max_timestamp_is_the_stamp": header.max_timestamp == stamp,
            "max_timestamp_is_the_producers": header.max_timestamp == TIMESTAMP_MS,
            "record_is_the_stamp": record.timestamp == stamp,
        },
    )
