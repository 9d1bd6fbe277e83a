"""The amount of data in one fetch response. Kafka: ReplicaManager.readFromLog, LocalLog.read, FetchContext."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.protocol import messages
from broker_sim_integration.clients.broker_client import Append, Position, batch_of, fetch_request
from broker_sim_integration.observations import Observation, at_once, at_timeout
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.observe import fetched, values_of, whole_response
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

VALUE = b"v" * 1000
BATCH_BYTES = len(batch_of([VALUE]))
READ_COMMITTED = 1
FETCH_BY_NAME = 12


@scenario(topology="1 partition x 1 replica")
def the_first_batch_is_whole_whatever_the_limits(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A first batch larger than either limit is returned complete and alone, so that a consumer makes progress."""
    topic = _filled(cluster, batches=3)
    leader = cluster.connect(cluster.first)
    for limit in (0, 1, 17, BATCH_BYTES - 1, BATCH_BYTES):
        reply = leader.fetch(topic, partition_max_bytes=limit)
        yield fetched(f"partition max bytes {limit}", reply, at_once())
        reply = leader.fetch(topic, max_bytes=limit)
        yield fetched(f"max bytes {limit}", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def negative_limits_fail_the_partition(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A negative limit gets UNKNOWN_SERVER_ERROR if there is something to read."""
    topic = _filled(cluster, batches=2)
    leader = cluster.connect(cluster.first)
    for limit in (-1, -(1 << 31)):
        reply = leader.fetch(topic, partition_max_bytes=limit, max_wait_ms=300)
        yield fetched(f"partition max bytes {limit}", reply, at_once())
        reply = leader.fetch(topic, max_bytes=limit, max_wait_ms=300)
        yield fetched(f"max bytes {limit}", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def a_later_batch_is_cut_at_the_limit(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A second batch that does not fit is cut: the response has only the bytes that fit."""
    topic = _filled(cluster, batches=4)
    leader = cluster.connect(cluster.first)
    for limit in (BATCH_BYTES + 1, BATCH_BYTES + 61, 2 * BATCH_BYTES - 1, 2 * BATCH_BYTES):
        reply = leader.fetch(topic, partition_max_bytes=limit)
        yield fetched(f"partition max bytes {limit}", reply, at_once())
        reply = leader.fetch(topic, max_bytes=limit)
        yield fetched(f"max bytes {limit}", reply, at_once())
    reply = leader.fetch(topic, max_bytes=2 * BATCH_BYTES, partition_max_bytes=BATCH_BYTES + 5)
    yield fetched("the smaller of both counts", reply, at_once())


@scenario(topology="3 partitions x 1 replica")
def partitions_share_max_bytes_in_the_order_asked(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The first partitions use up the limit; the others are empty, without an error."""
    topic = _filled(cluster, batches=2, partitions=3)
    leader = cluster.connect(cluster.first)
    limits = (1, BATCH_BYTES, BATCH_BYTES + 10, 2 * BATCH_BYTES, 3 * BATCH_BYTES + 10)
    for order in ((0, 1, 2), (2, 0, 1)):
        for max_bytes in limits:
            reply = _fetch_all(leader, topic, order, max_bytes=max_bytes)
            yield _shares(f"order {order}, max bytes {max_bytes}", reply)
    for max_bytes in limits:
        reply = _fetch_all(leader, topic, (0, 1, 2), max_bytes=max_bytes, partition_max_bytes=BATCH_BYTES)
        yield _shares(f"a batch per partition, max bytes {max_bytes}", reply)


@scenario(topology="3 partitions x 1 replica")
def the_first_batch_is_that_of_the_first_partition_that_has_one(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """An empty or failing partition before it uses nothing of the limit."""
    topic = cluster.topics.create([cluster.first], partitions=3)
    leader = cluster.connect(cluster.first)
    for partition in (1, 2):
        leader.produce(topic, VALUE, partition=partition)
    for max_bytes in (1, BATCH_BYTES + 10):
        reply = _fetch_all(leader, topic, (0, 1, 2), max_bytes=max_bytes)
        yield _shares(f"after an empty one, max bytes {max_bytes}", reply)
        reply = leader.start_fetch(
            Position(topic, 0, offset=7), Position(topic, 1), Position(topic, 2), max_bytes=max_bytes
        ).result()
        yield _shares(f"after one out of range, max bytes {max_bytes}", reply)


@scenario(topology="2 topics of 2 partitions x 1 replica")
def a_response_has_the_partitions_in_the_order_of_the_request(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Topics and partitions, unknown ones included, in the order of the request."""
    first, second = (_filled(cluster, batches=1, partitions=2) for _ in range(2))
    unknown = cluster.topics.unknown()
    leader = cluster.connect(cluster.first)
    positions = (
        Position(second, 1),
        Position(unknown, 0),
        Position(first, 1),
        Position(second, 99),
        Position(first, 0),
        Position(second, 0),
    )
    for version in (4, 11, FETCH_BY_NAME):
        reply = leader.start_fetch(*positions, version=version).result()
        yield whole_response(f"version {version}", cluster, reply, at_once())


@scenario(topology="1 partition x 1 replica")
def a_partition_asked_twice_is_answered_once(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Only one of two positions of the same partition counts."""
    topic = _filled(cluster, batches=3)
    leader = cluster.connect(cluster.first)
    for version in (FETCH_BY_NAME, 17):
        reply = leader.start_fetch(Position(topic, offset=1), Position(topic, offset=2), version=version).result()
        yield _shares(f"version {version}", reply)


@scenario(topology="1 partition x 1 replica")
def min_bytes_are_capped_by_max_bytes(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A fetch whose min_bytes exceed its max_bytes is answered as soon as max_bytes are available."""
    topic = _filled(cluster, batches=2)
    leader = cluster.connect(cluster.first)
    reply = leader.fetch(topic, max_wait_ms=2000, min_bytes=1 << 20, max_bytes=2 * BATCH_BYTES)
    yield fetched("max bytes are there", reply, at_once())
    reply = leader.fetch(topic, max_wait_ms=300, min_bytes=1 << 20, max_bytes=2 * BATCH_BYTES + 1)
    yield fetched("one byte lacks", reply, at_timeout(300))
    reply = leader.fetch(topic, max_wait_ms=300, min_bytes=2 * BATCH_BYTES, partition_max_bytes=BATCH_BYTES)
    yield fetched("a partition's limit does not cap them", reply, at_timeout(300))


@scenario(topology="1 partition x 1 replica")
def a_parked_fetch_counts_no_more_than_its_partition_limit(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Bytes beyond the partition's limit do not wake the fetch; with a larger limit they do."""
    topic = cluster.topics.create([cluster.first])
    consumer, leader = cluster.connect(cluster.first), cluster.connect(cluster.first)
    parked = consumer.start_fetch(Position(topic, max_bytes=BATCH_BYTES), max_wait_ms=600, min_bytes=2 * BATCH_BYTES)
    cluster.wait(100)
    for _ in range(3):
        leader.produce(topic, VALUE)
    yield fetched("limit of one batch", parked.result(), at_timeout(600))
    parked = consumer.start_fetch(
        Position(topic, offset=3, max_bytes=2 * BATCH_BYTES), max_wait_ms=5000, min_bytes=2 * BATCH_BYTES
    )
    cluster.wait(100)
    for _ in range(2):
        produced = leader.produce(topic, VALUE)
    fetch = parked.result()
    yield fetched("limit of two batches", fetch, after(fetch, produced))


@scenario(topology="1 partition x 1 replica")
def a_position_within_a_batch_is_answered_with_the_whole_batch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Records before the fetch offset are returned, too: the batch's base offset is below it."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    for values in ((b"a", b"b", b"c"), (b"d", b"e")):
        leader.produce(topic, *values)
    for offset in (1, 2, 3, 4):
        yield fetched(f"offset {offset}", leader.fetch(topic, offset), at_once())
        one = leader.fetch(topic, offset, partition_max_bytes=1)
        yield fetched(f"offset {offset}, one batch", one, at_once())


@scenario(topology="1 partition x 1 replica")
def read_committed_sees_plain_records_as_read_uncommitted_does(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Whole responses at both levels: only the list of aborted transactions may differ."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    yield whole_response("empty", cluster, leader.fetch(topic, isolation_level=READ_COMMITTED, max_wait_ms=0))
    leader.produce(topic, b"plain")
    for version in (4, 5, 11, FETCH_BY_NAME, 17):
        for level in (0, READ_COMMITTED):
            reply = leader.fetch(topic, isolation_level=level, version=version)
            yield whole_response(f"version {version}, isolation level {level}", cluster, reply, at_once())


@scenario(topology="1 partition x 1 replica")
def a_fetch_ends_with_its_segment(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Records of the next segment are not returned, even if they fit."""
    topic = cluster.topics.create([cluster.first], segment_bytes=str(1 << 20))
    leader = cluster.connect(cluster.first)
    for _ in range(4):
        leader.produce(topic, b"s" * (400 << 10))
    for attempt, offset in enumerate((0, 1, 2, 3), 1):
        reply = leader.fetch(topic, offset, partition_max_bytes=8 << 20)
        yield fetched("next", reply, at_once(), attempt=attempt)


@scenario(topology="1 partition x 3 replicas")
def a_follower_keeps_to_the_same_limits(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A consumer that reads from a follower gets the first batch complete and the second one cut."""
    topic = cluster.topics.create()
    leader, follower = cluster.connect(cluster.first), cluster.connect(cluster.second)
    for _ in range(2):
        leader.produce(topic, VALUE)
    cluster.wait_until(
        lambda: follower.fetch(topic, 1, max_wait_ms=0).message.responses[0].partitions[0].records,
        "the follower shows both batches",
    )
    for limit in (1, BATCH_BYTES + 10):
        reply = follower.fetch(topic, partition_max_bytes=limit)
        yield fetched(f"partition max bytes {limit}", reply, at_once())


@scenario(topology="1 partition x 1 replica")
def an_unknown_isolation_level_fails_the_request(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Whole responses for levels 2 and -1, in versions with topic names and with topic ids."""
    topic = _filled(cluster, batches=1)
    leader = cluster.connect(cluster.first)
    for version in (4, FETCH_BY_NAME, 13, 17):
        for level in (2, -1):
            reply = leader.fetch(topic, isolation_level=level, version=version)
            yield whole_response(f"version {version}, isolation level {level}", cluster, reply, at_once())


@scenario(topology="1 partition x 1 replica")
def fetch_sessions_have_rules(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A new session, an unknown one, a wrong epoch, and the end of a session that does not exist."""
    topic = _filled(cluster, batches=1)
    leader = cluster.connect(cluster.first)
    for step, session_id, epoch in (
        ("none wanted", 0, -1),
        ("new", 0, 0),
        ("unknown", 77, 1),
        ("none, but later", 0, 5),
        ("unknown, ended", 77, -1),
        ("unknown, anew", 77, 0),
    ):
        request = fetch_request([Position(topic)], version=17)
        request.session_id, request.session_epoch = session_id, epoch
        reply = leader.request(request, 17, messages.FetchResponse)
        yield whole_response(step, cluster, reply, at_once())


def _filled(cluster: ClusterUnderTest, *, batches: int, partitions: int = 1) -> Topic:
    """Return a topic on the first broker alone, with `batches` batches in every partition."""
    topic = cluster.topics.create([cluster.first], partitions=partitions)
    leader = cluster.clients.ask(cluster.first)
    for partition in range(partitions):
        for _ in range(batches):
            leader.start_produce(Append(topic, partition, batch_of([VALUE]))).result()
    return topic


def _fetch_all(
    leader: BrokerClient, topic: Topic, partitions: Sequence[int], *, max_bytes: int, partition_max_bytes: int = 1 << 20
) -> Reply[messages.FetchResponse]:
    """Fetch these partitions from offset 0, in this order."""
    positions = [Position(topic, partition, max_bytes=partition_max_bytes) for partition in partitions]
    return leader.start_fetch(*positions, max_bytes=max_bytes).result()


def _shares(step: str, reply: Reply[messages.FetchResponse]) -> Observation:
    """Observe the error, high watermark, bytes and records of each partition, in the order of the response."""
    answers = [answer for named in reply.message.responses for answer in named.partitions]
    return Observation(
        step,
        elapsed_ms=reply.elapsed_ms,
        answered_ms=reply.answered_ms,
        timing=at_once(),
        fields={"shares": [_share(answer) for answer in answers]},
    )


def _share(answer: messages.FetchResponse.PartitionData) -> dict[str, int]:
    records: Any = answer.records or b""
    return {
        "partition": answer.partition_index,
        "error_code": answer.error_code,
        "high_watermark": answer.high_watermark,
        "bytes": len(records),
        "whole_records": len(values_of(records)),
    }
