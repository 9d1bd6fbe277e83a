"""Offsets of a log's start and end, and offsets by timestamp. Kafka: UnifiedLog.fetchOffsetByTimestamp."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.protocol import messages
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.records import Record, build_batch
from broker_sim_integration.clients.broker_client import (
    EARLIEST,
    LATEST,
    LIST_OFFSETS_VERSION,
    MAX_TIMESTAMP,
    TIMESTAMP_MS,
    Append,
    batch_of,
)
from broker_sim_integration.observations import at_once
from broker_sim_integration.scenarios.helpers.observe import epoch_end, listed, whole_response
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -4, -5, -6
MEBIBYTE = 1 << 20
UNKNOWN_PARTITION = 99
DEBUGGING_CONSUMER = -2
UNORDERED = ("topics", "partitions")
"""The lists of a ListOffsets response that Kafka collects in a hash map."""


@scenario(topology="1 partition x 1 replica")
def an_empty_log_begins_and_ends_at_0(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Earliest, latest, max timestamp and a timestamp, before the first record and after five."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    asked = (EARLIEST, LATEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, 0, TIMESTAMP_MS)
    for step in ("empty", "five records"):
        for timestamp in asked:
            reply = leader.list_offset(topic, timestamp)
            yield listed(f"{step}, timestamp {timestamp}", reply, at_once())
        leader.produce(topic, *([b"v"] * 5))


@scenario(topology="1 partition x 1 replica")
def a_time_finds_the_first_record_that_is_as_new(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Timestamps before, at, between and after those of the records, also inside batches; -1 after all of them."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    for times in ((100, 200, 200), (300,), (500, 700)):
        _append_at(leader, topic, times)
    for time in (0, 99, 100, 101, 199, 200, 201, 300, 301, 600, 700, 701):
        reply = leader.list_offset(topic, TIMESTAMP_MS + time)
        yield listed(f"+{time} ms", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def times_out_of_order_find_the_first_batch_that_reaches_them(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """With decreasing timestamps it is the first record in log order with that timestamp or a later one."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    for times in ((500,), (100, 900, 200), (300,), (900,)):
        _append_at(leader, topic, times)
    for time in (0, 150, 250, 500, 501, 900, 901):
        reply = leader.list_offset(topic, TIMESTAMP_MS + time)
        yield listed(f"+{time} ms", reply, at_once())
    yield listed("max timestamp", leader.list_offset(topic, MAX_TIMESTAMP), at_once())


@scenario(topology="1 partition x 1 replica")
def the_max_timestamp_is_that_of_the_first_record_that_has_it(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its offset after each append: later records with the same timestamp do not change it."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    for times in ((100,), (100,), (50, 400, 200), (400,), (300,)):
        _append_at(leader, topic, times)
        reply = leader.list_offset(topic, MAX_TIMESTAMP)
        yield listed(f"after {times}", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def compressed_batches_are_searched_record_by_record(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each codec gives the same offsets."""
    leader = cluster.connect(cluster.first)
    for codec in CompressionCodec:
        topic = cluster.topics.create([cluster.first])
        times = (100, 200, 300, 300, 250)
        records = [Record(b"v", timestamp=TIMESTAMP_MS + time) for time in times]
        leader.start_produce(Append(topic, 0, build_batch(records, codec=codec))).result()
        name = codec.name.lower()
        for time in (150, 300, 301):
            reply = leader.list_offset(topic, TIMESTAMP_MS + time)
            yield listed(f"{name}, +{time} ms", reply, at_once())
        reply = leader.list_offset(topic, MAX_TIMESTAMP)
        yield listed(f"{name}, max timestamp", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def times_are_found_across_segments(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Several segments of 1 MiB, each with later records, and one timestamp that decreases."""
    topic = cluster.topics.create([cluster.first], segment_bytes=str(MEBIBYTE))
    leader = cluster.connect(cluster.first)
    for time in (100, 200, 300, 250, 400):
        batch = batch_of([b"x" * (600 << 10)], timestamp_ms=TIMESTAMP_MS + time)
        leader.start_produce(Append(topic, 0, batch)).result()
    for time in (0, 100, 150, 250, 260, 300, 301, 400, 401):
        reply = leader.list_offset(topic, TIMESTAMP_MS + time)
        yield listed(f"+{time} ms", reply, at_once())
    yield listed("max timestamp", leader.list_offset(topic, MAX_TIMESTAMP), at_once())


@scenario(topology="1 partition x 1 replica")
def isolation_levels_agree_on_plain_records(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Both levels, for each kind of lookup; any other level gets UNKNOWN_SERVER_ERROR."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"a", b"b")
    for level in (0, 1, 2):
        for timestamp in (EARLIEST, LATEST, MAX_TIMESTAMP, TIMESTAMP_MS):
            reply = leader.list_offset(topic, timestamp, isolation_level=level)
            yield listed(f"level {level}, timestamp {timestamp}", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def a_leader_epoch_other_than_the_current_is_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """FENCED_LEADER_EPOCH below it, UNKNOWN_LEADER_EPOCH above, for offsets and ends of epochs."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"a")
    epoch = cluster.metadata.describe(topic).leader_epoch
    for difference in (-1, 0, 1):
        wanted = epoch + difference if epoch + difference >= 0 else -2
        reply = leader.list_offset(topic, LATEST, leader_epoch=wanted)
        yield listed(f"current {difference:+d}", reply, at_once())
        ends = leader.offset_for_leader_epoch(topic, epoch, current_leader_epoch=wanted)
        yield epoch_end(f"end, current {difference:+d}", ends)


@scenario(topology="1 partition x 1 replica")
def the_end_of_an_epoch_is_where_the_next_begins(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """OffsetForLeaderEpoch of the only epoch, of unknown epochs and of an empty log."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    for step in ("empty", "three records"):
        for epoch in (0, 1, 100, -1, -2):
            yield epoch_end(f"{step}, epoch {epoch}", leader.offset_for_leader_epoch(topic, epoch))
        leader.produce(topic, b"a", b"b", b"c")


@scenario(topology="1 partition x 2 replicas")
def only_the_leader_knows_offsets(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Another broker returns NOT_LEADER_OR_FOLLOWER, except to a debugging consumer (replica id -2)."""
    topic = cluster.topics.create([cluster.first, cluster.second])
    cluster.clients.ask(cluster.first).produce(topic, b"a")
    for part, broker in (("follower", cluster.second), ("stranger", cluster.third)):
        client = cluster.connect(broker)
        for timestamp in (EARLIEST, LATEST, MAX_TIMESTAMP, TIMESTAMP_MS):
            reply = client.list_offset(topic, timestamp)
            yield listed(f"{part}, timestamp {timestamp}", reply, at_once())
        for replica_id in (DEBUGGING_CONSUMER, cluster.second):
            reply = _ask(client, _partition(topic, EARLIEST), replica_id=replica_id)
            name = "debugging" if replica_id < 0 else "replica"
            yield whole_response(f"{part}, asked as {name}", cluster, reply, at_once())


@scenario(topology="2 topics of 2 partitions x 1 replica")
def unknown_partitions_fail_alone(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Known and unknown topics and partitions in one request: whole responses by version."""
    first, second = (cluster.topics.create([cluster.first], partitions=2) for _ in range(2))
    unknown = cluster.topics.unknown()
    leader = cluster.connect(cluster.first)
    leader.produce(second, b"a")
    topics = (
        _partition(unknown, LATEST),
        _partition(first, LATEST, UNKNOWN_PARTITION),
        _partition(second, LATEST),
        _partition(first, EARLIEST, 1),
        _partition(second, LATEST, -1),
    )
    for version in (1, 4, 7, LIST_OFFSETS_VERSION):
        reply = _ask(leader, *topics, version=version)
        yield whole_response(f"version {version}", cluster, reply, at_once(), unordered=UNORDERED)


@scenario(topology="1 partition x 1 replica")
def a_partition_asked_twice_is_an_invalid_request(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Twice in one topic entry or in two, known or unknown; the other partitions get their offsets."""
    topic, other = (cluster.topics.create([cluster.first]) for _ in range(2))
    unknown = cluster.topics.unknown()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"a")
    wanted = messages.ListOffsetsRequest.ListOffsetsPartition
    twice = messages.ListOffsetsRequest.ListOffsetsTopic(topic.name, [wanted(0, -1, EARLIEST), wanted(0, -1, LATEST)])
    cases = {
        "in one entry": (twice, _partition(other, LATEST)),
        "in two entries": (_partition(topic, LATEST), _partition(topic, EARLIEST)),
        "of an unknown topic": (_partition(unknown, LATEST), _partition(unknown, LATEST)),
    }
    for step, topics in cases.items():
        for version in (1, LIST_OFFSETS_VERSION):
            reply = _ask(leader, *topics, version=version)
            step_by_version = f"{step}, version {version}"
            yield whole_response(step_by_version, cluster, reply, at_once(), unordered=UNORDERED)


@scenario(topology="1 partition x 1 replica")
def special_timestamps_have_a_first_version(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The supported timestamps of -1 to -7 in each version, and the responses of older versions to the others."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"a", b"b")
    for version in range(1, LIST_OFFSETS_VERSION + 1):
        for timestamp in (MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD, -7):
            reply = leader.list_offset(topic, timestamp, version=version)
            yield listed(f"version {version}, timestamp {timestamp}", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def deleted_records_are_not_found(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """After a deletion the earliest offset, and that of an old timestamp, is the log start offset."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    for times in ((100, 200), (300, 400), (500,)):
        _append_at(leader, topic, times)
    for offset in (1, 3, 5):
        leader.start_delete_records(topic, offset).result()
        for timestamp in (EARLIEST, LATEST, MAX_TIMESTAMP, TIMESTAMP_MS, TIMESTAMP_MS + 300):
            reply = leader.list_offset(topic, timestamp)
            yield listed(f"deleted to {offset}, timestamp {timestamp}", reply, at_once())


def _append_at(leader: BrokerClient, topic: Topic, times: Sequence[int]) -> None:
    """Append one batch of records with these timestamps, in ms after `TIMESTAMP_MS`."""
    records = [Record(b"v", timestamp=TIMESTAMP_MS + time) for time in times]
    leader.start_produce(Append(topic, 0, build_batch(records))).result()


def _partition(topic: Topic, timestamp: int, partition: int = 0) -> messages.ListOffsetsRequest.ListOffsetsTopic:
    """Return an entry of the request that looks up one offset of one partition."""
    request = messages.ListOffsetsRequest
    return request.ListOffsetsTopic(
        topic.name, [request.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)]
    )


def _ask(
    client: BrokerClient,
    *topics: messages.ListOffsetsRequest.ListOffsetsTopic,
    replica_id: int = -1,
    version: int = LIST_OFFSETS_VERSION,
) -> Reply[messages.ListOffsetsResponse]:
    """Send a ListOffsets request for several partitions; return the response."""
    request = messages.ListOffsetsRequest(replica_id=replica_id, isolation_level=0, topics=list(topics))
    return client.request(request, version, messages.ListOffsetsResponse)
