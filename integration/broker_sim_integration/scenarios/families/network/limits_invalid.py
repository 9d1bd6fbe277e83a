"""Requests that are too large, malformed or unknown. Kafka: RequestChannel, UnifiedLog, Records."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.records import Record, build_batch
from broker_sim_integration.clients.broker_client import TIMESTAMP_MS, Append, batch_of, produce_request
from broker_sim_integration.observations import at_once, untimed
from broker_sim_integration.scenarios.helpers.broker_configs import SMALL_OFFSETS_TOPIC
from broker_sim_integration.scenarios.helpers.observe import (
    answer_or_end,
    fetched,
    listed,
    produced,
    versions_advertised,
    whole_response,
)
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

MEBIBYTE = 1 << 20
NO_API = 9999
ASKED = untimed("Kafka asks the coordinator, which may be another broker")
NEGATIVE = b"\xff\xff\xff\xff\x0f"
"""-1 as the varint of an int32."""
CLIENT = b"\0\1c"
DAY_MS = 24 * 3600 * 1000


def frame(api_key: int, version: int, body: bytes = b"", *, size: int | None = None) -> bytes:
    """Return the bytes of a request with a header of version 1; `size` replaces the true size."""
    content = struct.pack(">hhi", api_key, version, 7) + CLIENT + body
    return struct.pack(">i", len(content) if size is None else size) + content


@scenario(topology="1 partition x 1 replica")
def a_batch_above_max_message_bytes_is_too_large(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A batch of exactly the limit is accepted; one more byte gets MESSAGE_TOO_LARGE."""
    size = len(batch_of([b"x" * 1000]))
    topic = cluster.topics.create([cluster.first], max_message_bytes=str(size))
    leader = cluster.connect(cluster.first)
    yield produced("as large as the limit", leader.produce(topic, b"x" * 1000), at_once())
    for acks in (1, -1):
        reply = leader.produce(topic, b"x" * 1001, acks=acks)
        yield produced(f"one byte more, acks={acks}", reply, at_once())
    yield listed("appended", leader.list_offset(topic), at_once())


@scenario(topology="1 partition x 1 replica")
def a_batch_above_the_segment_size_is_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """RECORD_LIST_TOO_LARGE, although max.message.bytes would allow it."""
    topic = cluster.topics.create([cluster.first], max_message_bytes=str(4 * MEBIBYTE), segment_bytes=str(MEBIBYTE))
    leader = cluster.connect(cluster.first)
    yield produced("2 MiB", leader.produce(topic, b"x" * (2 * MEBIBYTE)), at_once())
    yield produced("fits", leader.produce(topic, b"x" * (MEBIBYTE // 2)), at_once())


@scenario(topology="1 partition x 1 replica")
def damaged_records_are_refused_one_by_one(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Wrong CRC, unknown magic, old magic, wrong length, no bytes at all, two batches in one."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    good = batch_of([b"good"])
    damaged = {
        "wrong CRC": good[:-1] + bytes([good[-1] ^ 1]),
        "magic 3": good[:16] + b"\3" + good[17:],
        "magic 1": good[:16] + b"\1" + good[17:],
        "length too small": good[:8] + struct.pack(">i", 3) + good[12:],
        "cut off": good[:-3],
        "header only": good[:61],
        "empty": b"",
        "two batches": good + good,
        "rubbish behind": good + b"rubbish",
    }
    for step, records in damaged.items():
        reply = leader.start_produce(Append(topic, 0, records), acks=1).result()
        yield produced(step, reply, at_once())
    yield listed("appended", leader.list_offset(topic), at_once())


@scenario(topology="1 partition x 1 replica")
def a_batch_whose_header_lies_about_its_records_is_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Record count and last offset delta must match; clients may not send control batches."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    records = [Record(b"a", timestamp=TIMESTAMP_MS), Record(b"b", timestamp=TIMESTAMP_MS)]
    gap = [records[0], records[1]._replace(offset=5)]
    cases = {
        "offsets with a gap": build_batch(gap),
        "no records": build_batch([]),
        "control batch": build_batch(records, is_control=True),
        "transactional without an id": build_batch(
            records, is_transactional=True, producer_id=1, producer_epoch=0, base_sequence=0
        ),
        "base offset 7": build_batch(records, base_offset=7),
    }
    for step, batch in cases.items():
        reply = leader.start_produce(Append(topic, 0, batch), acks=1).result()
        yield produced(step, reply, at_once())
    yield fetched("what is there", leader.fetch(topic, max_wait_ms=0), at_once())


@scenario(topology="1 partition x 1 replica")
def compressed_batches_are_kept_as_they_are(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Batches with gzip, snappy, lz4 and zstd are returned byte for byte; zstd needs version 7."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    records = [Record(b"compressible " * 20, timestamp=TIMESTAMP_MS) for _ in range(10)]
    offset = 0
    for codec in CompressionCodec:
        batch = build_batch(records, codec=codec)
        reply = leader.start_produce(Append(topic, 0, batch)).result()
        yield produced(codec.name.lower(), reply, at_once())
        found = leader.fetch(topic, offset)
        yield fetched(f"{codec.name.lower()} fetched", found, at_once())
        offset += len(records)
    zstd = build_batch(records, codec=CompressionCodec.ZSTD)
    reply = leader.start_produce(Append(topic, 0, zstd), version=6).result()
    yield produced("zstd by version 6", reply, at_once())


@scenario()
def an_unknown_version_ends_the_connection(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Except for ApiVersions, which gets UNSUPPORTED_VERSION in a response of version 0."""
    cases = (
        (ApiKey.PRODUCE, messages.ProduceResponse, 2),
        (ApiKey.PRODUCE, messages.ProduceResponse, 99),
        (ApiKey.FETCH, messages.FetchResponse, 3),
        (ApiKey.FETCH, messages.FetchResponse, 99),
        (ApiKey.METADATA, messages.MetadataResponse, 99),
    )
    for api_key, expected, version in cases:
        connection = cluster.connect(cluster.first)
        pending = connection.send_frame(frame(api_key, version), api_key=api_key, version=version, expected=expected)
        yield answer_or_end(f"{api_key.name} {version}", pending, at_once())
    connection = cluster.connect(cluster.first)
    steps = {"ApiVersions 99": (99, b"\0"), "the connection lives on": (0, b"")}
    for step, (version, body) in steps.items():
        reply = connection.send_frame(
            frame(ApiKey.API_VERSIONS, version, body),
            api_key=ApiKey.API_VERSIONS,
            version=version,
            expected=messages.ApiVersionsResponse,
        ).result()
        yield versions_advertised(step, reply)


@scenario()
def bytes_that_are_no_request_end_the_connection(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Unknown API, negative or huge size, a body that is cut off or contains wrong lengths."""
    cases = {
        "unknown API": frame(NO_API, 0),
        "negative API": frame(-1, 0),
        "negative size": frame(ApiKey.METADATA, 0, size=-1),
        "absurd size": frame(ApiKey.METADATA, 0, size=0x7FFFFFFF),
        "one byte too large": frame(ApiKey.METADATA, 0, size=100 * MEBIBYTE + 1),
        "body cut off": frame(ApiKey.METADATA, 0, b"\0\0"),
        "absurd count": frame(ApiKey.METADATA, 0, b"\x7f\xff\xff\xff"),
        "string beyond the end": frame(ApiKey.METADATA, 0, b"\0\0\0\1\x7f\xff"),
    }
    for step, content in cases.items():
        connection = cluster.connect(cluster.first)
        pending = connection.send_frame(content, api_key=ApiKey.METADATA, version=0, expected=messages.MetadataResponse)
        yield answer_or_end(step, pending, at_once(), timeout_ms=3000)


@scenario(topology="1 partition x 1 replica", configs=SMALL_OFFSETS_TOPIC)
def a_transaction_that_nobody_has_begun_is_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_PRODUCER_ID_MAPPING for an invented transactional id; without an id, the request fails."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    records = [Record(b"a", timestamp=TIMESTAMP_MS)]
    batch = build_batch(records, is_transactional=True, producer_id=77, producer_epoch=0, base_sequence=0)

    def produce(name: str | None, version: int) -> Reply[messages.ProduceResponse]:
        append = Append(topic, 0, batch)
        request = produce_request([append], acks=-1, timeout_ms=1000, version=version)
        request.transactional_id = name
        return leader.request(request, version, messages.ProduceResponse)

    def coordinator_is_known() -> bool:
        find = messages.FindCoordinatorRequest(key="invented", key_type=1)
        leader.request(find, 3, messages.FindCoordinatorResponse)
        answer = produce("invented", 12).message.responses[0].partition_responses[0]
        return answer.error_code != ErrorCode.NOT_ENOUGH_REPLICAS

    cluster.wait_until(coordinator_is_known, "there is a coordinator of transactions")
    for version in (7, 12, 13):
        for name in ("invented", "", None):
            yield produced(f"id {name}, version {version}", produce(name, version), ASKED)
    yield listed("appended", leader.list_offset(topic), at_once())


@scenario()
def what_a_request_has_too_much_is_ignored(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Bytes after a request, unknown tagged fields, negative lengths of nullable fields."""
    nothing = b"\0\0\0\0"
    cases = {
        "bytes behind": (0, frame(ApiKey.METADATA, 0, nothing + b"abc")),
        "three bytes behind": (4, frame(ApiKey.METADATA, 4, nothing + b"\1\0\0\0")),
        "null is not allowed": (0, frame(ApiKey.METADATA, 0, b"\xff\xff\xff\xff")),
        "a count of -2": (0, frame(ApiKey.METADATA, 0, b"\xff\xff\xff\xfe")),
        "unknown tagged field": (12, frame(ApiKey.METADATA, 12, b"\0\1\0\0\1\x63\2ab")),
        "too large tagged field": (12, frame(ApiKey.METADATA, 12, b"\0\1\0\0\1\x63\7ab")),
        "tagged fields, -1 of them": (12, frame(ApiKey.METADATA, 12, b"\0\1\0\0" + NEGATIVE)),
        "boolean 2": (4, frame(ApiKey.METADATA, 4, nothing + b"\2")),
    }
    for step, (version, content) in cases.items():
        connection = cluster.connect(cluster.first)
        pending = connection.send_frame(
            content, api_key=ApiKey.METADATA, version=version, expected=messages.MetadataResponse
        )
        seen = answer_or_end(step, pending, at_once(), timeout_ms=3000)
        yield replace(seen, bytes=None)  # the response contains all topics of the cluster


@scenario(topology="1 partition x 1 replica")
def timestamps_too_far_ahead_are_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """message.timestamp.after.max.ms and before.max.ms: INVALID_TIMESTAMP with the record's index."""
    topic = cluster.topics.create([cluster.first], message_timestamp_before_max_ms=str(DAY_MS))
    leader = cluster.connect(cluster.first)
    for step, timestamp_ms in (("far future", 1 << 42), ("long ago", TIMESTAMP_MS)):
        batch = batch_of([b"a", b"b"], timestamp_ms=timestamp_ms)
        reply = leader.start_produce(Append(topic, 0, batch)).result()
        yield produced(step, reply, at_once())
    other = cluster.topics.create([cluster.first])
    batch = batch_of([b"a", b"b"], timestamp_ms=1 << 42)
    reply = leader.start_produce(Append(other, 0, batch)).result()
    yield produced("far future with the defaults", reply, at_once())


@scenario()
def produce_to_what_does_not_exist_is_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Unknown topic by name and by id, unknown and negative partition, the wrong broker."""
    unknown = cluster.topics.unknown()
    topic = cluster.topics.create([cluster.second])
    leader, other = cluster.connect(cluster.second), cluster.connect(cluster.first)
    for version in (9, 12, 13):
        reply = leader.produce(unknown, b"a", version=version)
        yield produced(f"unknown topic, version {version}", reply, at_once())
        for partition in (1, -1):
            reply = leader.produce(topic, b"a", version=version, partition=partition)
            step = f"partition {partition}, version {version}"
            yield produced(step, reply, at_once(), partition=partition)
        reply = other.produce(topic, b"a", version=version)
        yield produced(f"wrong broker, version {version}", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def refused_batches_are_told_why(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Whole responses with the error messages of batches and records, in old and new versions."""
    topic = cluster.topics.create([cluster.first])
    compacted = cluster.topics.create([cluster.first], cleanup_policy="compact", max_message_bytes="200")
    leader = cluster.connect(cluster.first)
    records = [Record(b"a", timestamp=TIMESTAMP_MS), Record(b"b", timestamp=TIMESTAMP_MS)]
    good = batch_of([b"good"])
    numbered = build_batch(records, producer_id=7, producer_epoch=0, base_sequence=-1)
    cases = {
        "offsets with a gap": Append(topic, 0, build_batch([records[0], records[1]._replace(offset=5)])),
        "no records": Append(topic, 0, build_batch([])),
        "control batch": Append(topic, 0, build_batch(records, is_control=True)),
        "stamped by the client": Append(topic, 0, build_batch(records, log_append_time=True)),
        "no sequence": Append(topic, 0, numbered),
        "wrong CRC": Append(topic, 0, good[:-1] + bytes([good[-1] ^ 1])),
        "magic 1": Append(topic, 0, good[:16] + b"\1" + good[17:]),
        "two batches": Append(topic, 0, good + good),
        "empty": Append(topic, 0, b""),
        "cut off": Append(topic, 0, good[:-3]),
        "unknown partition": Append(topic, 9, good),
        "unknown topic": Append(cluster.topics.unknown(), 0, good),
        "without keys": Append(compacted, 0, build_batch(records * 2)),
        "too large": Append(compacted, 0, batch_of([b"x" * 500])),
    }
    for step, append in cases.items():
        for version in (7, 12, 13):
            reply = leader.start_produce(append, acks=1, version=version).result()
            yield whole_response(f"{step}, version {version}", cluster, reply, at_once())


@scenario(topology="2 partitions x 1 replica")
def a_partition_produced_to_twice_in_one_request(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The same partition in one entry or in two: the appended records and the responses."""
    topic = cluster.topics.create([cluster.first], partitions=2)
    leader = cluster.connect(cluster.first)
    appends = [Append(topic, 0, batch_of([value])) for value in (b"first", b"second")]
    for version in (12, 13):
        reply = leader.start_produce(*appends, version=version).result()
        yield whole_response(f"one entry, version {version}", cluster, reply, at_once())
        parts = [produce_request([append], acks=-1, timeout_ms=1000, version=version) for append in appends]
        parts[0].topic_data += parts[1].topic_data
        reply = leader.request(parts[0], version, messages.ProduceResponse)
        yield whole_response(f"two entries, version {version}", cluster, reply, at_once())
    yield fetched("what is there", leader.fetch(topic), at_once())


@scenario(topology="1 partition x 1 replica")
def requests_about_nothing_are_answered(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Requests without topics, partitions or a topic id: whole responses."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    request = messages.ProduceRequest
    empty = request.TopicProduceData(topic_id=topic.topic_id)
    nobody = request.TopicProduceData(
        topic_id=bytes(16), partition_data=[request.PartitionProduceData(0, batch_of([b"v"]))]
    )
    for step, data in (("no topics", []), ("no partitions", [empty]), ("no id", [nobody])):
        wanted = request(acks=1, timeout_ms=1000, topic_data=data)
        reply = leader.request(wanted, 13, messages.ProduceResponse)
        yield whole_response(step, cluster, reply, at_once())
    offsets = messages.ListOffsetsRequest(replica_id=-1, topics=[])
    reply_to_offsets = leader.request(offsets, 11, messages.ListOffsetsResponse)
    yield whole_response("no offsets", cluster, reply_to_offsets, at_once())
