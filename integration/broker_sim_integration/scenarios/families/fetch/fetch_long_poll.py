"""Fetches that wait for bytes. Kafka: DelayedFetch, ReplicaManager.fetchMessages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.clients.broker_client import Position, batch_of
from broker_sim_integration.observations import at_once, at_timeout
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.mechanisms import FETCH_WAIT_MS, NEXT_FETCH
from broker_sim_integration.scenarios.helpers.observe import fetched, produced, whole_response
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

VALUE = b"v" * 32
BATCH_BYTES = len(batch_of([VALUE]))
UNKNOWN_PARTITION = 99


@scenario()
def an_empty_partition_answers_at_max_wait(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The response is empty, without an error, after exactly max_wait_ms: 0, 100, 500, 1000 ms."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    for max_wait_ms in (0, -1):
        reply = leader.fetch(topic, max_wait_ms=max_wait_ms)
        yield fetched(f"max wait {max_wait_ms}", reply, at_once())
    for max_wait_ms in (100, 500, 1000):
        reply = leader.fetch(topic, max_wait_ms=max_wait_ms)
        yield fetched(f"max wait {max_wait_ms}", reply, at_timeout(max_wait_ms))


@scenario()
def min_bytes_of_nothing_is_answered_at_once(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """With min_bytes of 0 or below the broker does not wait, whatever the max_wait_ms."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    for min_bytes in (0, -1):
        reply = leader.fetch(topic, max_wait_ms=1000, min_bytes=min_bytes)
        yield fetched(f"min bytes {min_bytes}", reply, at_once())


@scenario()
def a_produce_wakes_a_parked_fetch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The record is returned when the high watermark passes it, long before max_wait_ms."""
    topic = cluster.topics.create()
    consumer, leader = cluster.connect(cluster.first), cluster.connect(cluster.first)
    parked = consumer.start_fetch(Position(topic), max_wait_ms=5000)
    cluster.wait(300)
    reply = leader.produce(topic, b"wakes")
    yield produced("produce", reply, at_once())
    fetch = parked.result()
    yield fetched("woken", fetch, after(fetch, reply))


@scenario()
def min_bytes_are_counted_over_several_produces(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Two batches are too few; the third one wakes the fetch, which returns all three."""
    topic = cluster.topics.create()
    consumer, leader = cluster.connect(cluster.first), cluster.connect(cluster.first)
    parked = consumer.start_fetch(Position(topic), max_wait_ms=5000, min_bytes=3 * BATCH_BYTES)
    for _ in range(3):
        cluster.wait(200)
        reply = leader.produce(topic, VALUE)
    fetch = parked.result()
    yield fetched("woken by the third", fetch, after(fetch, reply))
    again = consumer.fetch(topic, 0, max_wait_ms=300, min_bytes=3 * BATCH_BYTES + 1)
    yield fetched("one byte too few", again, at_timeout(300))


@scenario(topology="2 partitions x 3 replicas")
def min_bytes_are_counted_over_several_partitions(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """One batch in each of two partitions is enough together."""
    topic = cluster.topics.create(partitions=2)
    consumer, leader = cluster.connect(cluster.first), cluster.connect(cluster.first)
    parked = consumer.start_fetch(Position(topic, 0), Position(topic, 1), max_wait_ms=5000, min_bytes=2 * BATCH_BYTES)
    for partition in (0, 1):
        cluster.wait(200)
        reply = leader.produce(topic, VALUE, partition=partition)
    fetch = parked.result()
    for partition in (0, 1):
        yield fetched(f"partition {partition}", fetch, after(fetch, reply), partition=partition)


@scenario()
def what_is_there_below_min_bytes_is_answered_at_max_wait(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A record smaller than min_bytes is returned after max_wait_ms."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, VALUE)
    reply = leader.fetch(topic, 0, max_wait_ms=500, min_bytes=100_000)
    yield fetched("too few bytes", reply, at_timeout(500))


@scenario()
def one_produce_wakes_only_the_fetches_that_it_satisfies(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A produce wakes the parked fetch with a small min_bytes; the other one waits."""
    topic = cluster.topics.create()
    modest, greedy = cluster.connect(cluster.first), cluster.connect(cluster.first)
    leader = cluster.connect(cluster.first)
    parked_greedy = greedy.start_fetch(Position(topic), max_wait_ms=1500, min_bytes=2 * BATCH_BYTES)
    parked_modest = modest.start_fetch(Position(topic), max_wait_ms=1500)
    cluster.wait(300)
    reply = leader.produce(topic, VALUE)
    fetch = parked_modest.result()
    yield fetched("modest", fetch, after(fetch, reply))
    yield fetched("greedy", parked_greedy.result(), at_timeout(1500))


@scenario()
def one_produce_wakes_all_fetches_of_the_partition(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Five consumers wait on five connections, and all are woken."""
    topic = cluster.topics.create()
    consumers = [cluster.connect(cluster.first) for _ in range(5)]
    leader = cluster.connect(cluster.first)
    parked = [consumer.start_fetch(Position(topic), max_wait_ms=5000) for consumer in consumers]
    cluster.wait(300)
    reply = leader.produce(topic, VALUE)
    for attempt, pending in enumerate(parked, 1):
        fetch = pending.result()
        yield fetched("woken", fetch, after(fetch, reply), attempt=attempt)


@scenario(topology="2 partitions x 3 replicas")
def a_fetch_of_two_partitions_is_woken_by_either(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The response also has the partition without records, empty."""
    topic = cluster.topics.create(partitions=2)
    consumer, leader = cluster.connect(cluster.first), cluster.connect(cluster.first)
    for partition in (0, 1):
        parked = consumer.start_fetch(
            Position(topic, 0), Position(topic, 1), max_wait_ms=5000, min_bytes=(partition + 1) * BATCH_BYTES
        )
        cluster.wait(200)
        reply = leader.produce(topic, VALUE, partition=partition)
        fetch = parked.result()
        for index in (0, 1):
            step = f"produce to {partition}, seen of {index}"
            yield fetched(step, fetch, after(fetch, reply), partition=index)


@scenario()
def an_unknown_partition_alone_is_told_at_once(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_TOPIC_OR_PARTITION without a wait, by name and by id."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    for version in (12, 17):
        reply = leader.fetch(topic, partition=UNKNOWN_PARTITION, max_wait_ms=1000, version=version)
        yield fetched(f"version {version}", reply, at_once(), partition=UNKNOWN_PARTITION)


@scenario()
def an_unknown_topic_alone_is_told_at_once(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_TOPIC_OR_PARTITION by name and UNKNOWN_TOPIC_ID by id, without a wait."""
    leader = cluster.connect(cluster.first)
    topic = cluster.topics.unknown()
    for version in (12, 17):
        reply = leader.fetch(topic, max_wait_ms=1000, version=version)
        yield fetched(f"version {version}", reply, at_once())


@scenario()
def an_unknown_partition_beside_an_empty_one_does_not_shorten_the_wait(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """The response has both partitions after max_wait_ms."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    for version in (12, 17):
        reply = leader.start_fetch(
            Position(topic), Position(topic, UNKNOWN_PARTITION), max_wait_ms=500, version=version
        ).result()
        due = at_timeout(500)
        yield fetched(f"known, version {version}", reply, due)
        seen = fetched(f"unknown, version {version}", reply, due, partition=UNKNOWN_PARTITION)
        yield seen


@scenario()
def without_partitions_there_is_nothing_to_wait_for(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A fetch without partitions gets an empty response at once."""
    leader = cluster.connect(cluster.first)
    reply = leader.start_fetch(max_wait_ms=1000).result()
    yield whole_response("no partitions", cluster, reply, at_once())


@scenario(topology="2 partitions x 3 replicas")
def an_offset_out_of_range_ends_the_wait_of_the_whole_request(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """OFFSET_OUT_OF_RANGE at once; the response has the empty partition of the request, too."""
    topic = cluster.topics.create(partitions=2)
    leader = cluster.connect(cluster.first)
    leader.produce(topic, VALUE)
    for offset in (2, 1000, -1):
        reply = leader.start_fetch(Position(topic, offset=offset), Position(topic, 1), max_wait_ms=1000).result()
        yield fetched(f"offset {offset}", reply, at_once())
        yield fetched(f"beside offset {offset}", reply, at_once(), partition=1)
    reply = leader.fetch(topic, 1, max_wait_ms=300)
    yield fetched("exactly at the end", reply, at_timeout(300))


@scenario()
def any_follower_serves_consumers_from_version_11(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Version 10 gets NOT_LEADER_OR_FOLLOWER; since version 11 a follower returns records up to its high watermark."""
    topic = cluster.topics.create()
    leader, follower = cluster.connect(cluster.first), cluster.connect(cluster.second)
    leader.produce(topic, VALUE)
    cluster.wait(FETCH_WAIT_MS + 200)
    for version in (10, 11, 12, 17):
        reply = follower.fetch(topic, 0, max_wait_ms=1000, version=version)
        yield fetched(f"version {version}", reply, at_once())
    reply = follower.fetch(topic, 1, max_wait_ms=700)
    yield fetched("at its end", reply, at_timeout(700))


@scenario()
def a_fetch_parked_at_a_follower_is_woken_by_its_replication(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The follower gets the new high watermark with its next fetch, up to 500 ms later."""
    topic = cluster.topics.create()
    leader, follower = cluster.connect(cluster.first), cluster.connect(cluster.second)
    leader.produce(topic, VALUE)
    cluster.wait(FETCH_WAIT_MS + 200)
    parked = follower.start_fetch(Position(topic, offset=1), max_wait_ms=5000)
    cluster.wait(200)
    reply = leader.produce(topic, VALUE)
    fetch = parked.result()
    yield fetched("woken", fetch, after(fetch, reply, spread_ms=FETCH_WAIT_MS, reason=NEXT_FETCH))


@scenario()
def a_broker_without_a_replica_is_not_asked_in_vain(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A broker without a replica returns NOT_LEADER_OR_FOLLOWER at once."""
    topic = cluster.topics.create([cluster.first, cluster.second])
    stranger = cluster.connect(cluster.third)
    for version in (10, 12, 17):
        reply = stranger.fetch(topic, 0, max_wait_ms=1000, version=version)
        yield fetched(f"version {version}", reply, at_once())
