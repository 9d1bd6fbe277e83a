"""Fetches that are woken by records. Kafka: DelayedFetch, Partition.maybeIncrementLeaderHW.

Each kind is repeated often enough to be judged by its distribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker_sim_integration.clients.broker_client import Append, Position, batch_of
from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.observations import at_once, at_timeout
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.observe import fetched, produced
from broker_sim_integration.scenarios.helpers.side_by_side import SAMPLES, pause_until
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim.protocol import messages
    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

    FetchReply = Reply[messages.FetchResponse]
    ProduceReply = Reply[messages.ProduceResponse]

VALUE: Final = b"v" * 32
BATCH_BYTES: Final = len(batch_of([VALUE]))
PARKED_AFTER_MS: Final = 10
LONG_MS: Final = 10_000
SEVERAL: Final = 5
SHORT_MS: Final = 500
"""The max_wait_ms of fetches whose record comes shortly before the timeout."""
LEFT_MS: Final = 40
STAGGER_MS: Final = 10
ROUNDS: Final = 5


@scenario(topology="1 partition x 1 replica")
def a_record_wakes_a_fetch_of_its_partition(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty parked fetches, one after the other, each woken by a produce with acks=1."""
    topic = cluster.topics.create([cluster.first])
    consumer, leader = cluster.connect(cluster.first), cluster.connect(cluster.first)
    for attempt in range(1, SAMPLES + 1):
        parked = consumer.start_fetch(Position(topic, offset=attempt - 1), max_wait_ms=LONG_MS)
        cluster.wait(PARKED_AFTER_MS)
        reply = leader.produce(topic, VALUE, acks=1)
        fetch = parked.result()
        yield fetched("woken", fetch, after(fetch, reply), attempt=attempt)


@scenario(topology="5 partitions x 1 replica")
def a_record_in_any_of_its_partitions_wakes_a_fetch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty fetches of five partitions; each of the partitions gets a record in turn."""
    topic = cluster.topics.create([cluster.first], partitions=SEVERAL)
    consumer, leader = cluster.connect(cluster.first), cluster.connect(cluster.first)
    ends = [0] * SEVERAL
    for attempt in range(1, SAMPLES + 1):
        parked = consumer.start_fetch(*_positions(topic, ends), max_wait_ms=LONG_MS)
        cluster.wait(PARKED_AFTER_MS)
        partition = attempt % SEVERAL
        reply = leader.produce(topic, VALUE, partition=partition, acks=1)
        fetch = parked.result()
        due = after(fetch, reply)
        yield fetched("woken", fetch, due, partition=partition, attempt=attempt)
        ends[partition] += 1


@scenario(topology="5 partitions x 1 replica")
def the_last_of_several_partitions_fills_min_bytes(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty fetches that need a batch from each of five partitions: the fifth batch wakes them."""
    topic = cluster.topics.create([cluster.first], partitions=SEVERAL)
    consumer, leader = cluster.connect(cluster.first), cluster.connect(cluster.first)
    for attempt in range(1, SAMPLES + 1):
        parked = consumer.start_fetch(
            *_positions(topic, [attempt - 1] * SEVERAL), max_wait_ms=LONG_MS, min_bytes=SEVERAL * BATCH_BYTES
        )
        for partition in range(SEVERAL):
            cluster.wait(PARKED_AFTER_MS / SEVERAL)
            reply = leader.produce(topic, VALUE, partition=partition, acks=1)
        fetch = parked.result()
        due = after(fetch, reply)
        yield fetched("woken", fetch, due, partition=attempt % SEVERAL, attempt=attempt)


@scenario()
def the_high_watermark_wakes_a_fetch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty fetches, each woken when the followers have the record, with the response to acks=all."""
    topic = cluster.topics.create()
    consumer, leader = cluster.connect(cluster.first), cluster.connect(cluster.first)
    leader.produce(topic, b"the first one may take longer")
    for attempt in range(1, SAMPLES + 1):
        parked = consumer.start_fetch(Position(topic, offset=attempt), max_wait_ms=LONG_MS)
        cluster.wait(PARKED_AFTER_MS)
        reply = leader.produce(topic, VALUE)
        fetch = parked.result()
        yield produced("acks=all", reply, at_once(), attempt=attempt)
        yield fetched("woken", fetch, after(fetch, reply), attempt=attempt)


@scenario()
def the_next_fetch_of_a_follower_wakes_a_fetch_there(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty fetches at a follower; a record of another topic completes the follower's own fetch.

    The follower's next fetch returns the new high watermark, for which alone it would wait 500 ms.
    """
    other, topic = cluster.topics.create(settled=False), cluster.topics.create()
    consumer, leader = cluster.connect(cluster.second), cluster.connect(cluster.first)
    for warmed in (topic, other):
        leader.produce(warmed, b"the first one may take longer")
    for attempt in range(1, SAMPLES + 1):
        parked = consumer.start_fetch(Position(topic, offset=attempt), max_wait_ms=LONG_MS)
        cluster.wait(PARKED_AFTER_MS)
        reply = leader.produce(topic, VALUE)
        brings = leader.produce(other, VALUE, acks=1)
        fetch = parked.result()
        due = after(fetch, brings, since=reply.sent_ms)
        yield fetched("woken at the follower", fetch, due, attempt=attempt)


@scenario(topology="30 partitions x 1 replica")
def a_record_shortly_before_the_timeout_is_not_missed(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """40 ms before max_wait_ms is over it wakes the fetch; a fetch that needs more bytes waits on.

    Then the record is in the response at the timeout.
    """
    # Connected before, because on a busy machine connecting takes longer than the first fetches wait.
    leader = cluster.connect(cluster.first)
    lanes = [Lane(number, cluster.connect(cluster.first), cluster.connect(cluster.first)) for number in range(SAMPLES)]
    for _ in range(ROUNDS):
        topic = cluster.topics.create([cluster.first], partitions=SAMPLES)
        missed = []
        for lane, modest, greedy, reply in _shortly_before_the_timeout(leader, topic, lanes):
            if reply.answered_ms > min(modest.sent_ms, greedy.sent_ms) + SHORT_MS:
                missed.append(lane)  # the machine was too slow: the lane is played again
                continue
            due, partition, attempt = after(modest, reply), lane.partition, lane.partition + 1
            yield fetched("woken", modest, due, partition=partition, attempt=attempt)
            due = at_timeout(SHORT_MS)
            yield fetched("below min bytes", greedy, due, partition=partition, attempt=attempt)
        lanes = missed
        if not lanes:
            return


class Lane(NamedTuple):
    """A partition, and the connections of its two fetches."""

    partition: int
    modest: BrokerClient
    greedy: BrokerClient


def _shortly_before_the_timeout(
    leader: BrokerClient, topic: Topic, lanes: Sequence[Lane]
) -> list[tuple[Lane, FetchReply, FetchReply, ProduceReply]]:
    """Return each lane with its two fetch responses and the response of the produce before their timeout."""
    parked = []
    began_ms = now_ms()
    for index, lane in enumerate(lanes):
        pause_until(began_ms + index * STAGGER_MS)
        position = Position(topic, lane.partition)
        modest = lane.modest.start_fetch(position, max_wait_ms=SHORT_MS)
        greedy = lane.greedy.start_fetch(position, max_wait_ms=SHORT_MS, min_bytes=2 * BATCH_BYTES)
        parked.append((lane, modest, greedy))
    produced = []
    for lane, modest, _greedy in parked:
        pause_until(modest.sent_ms + SHORT_MS - LEFT_MS)
        produced.append(leader.start_produce(Append(topic, lane.partition, batch_of([VALUE])), acks=1))
    return [
        (lane, modest.result(), greedy.result(), produce.result())
        for (lane, modest, greedy), produce in zip(parked, produced, strict=True)
    ]


def _positions(topic: Topic, offsets: list[int]) -> list[Position]:
    return [Position(topic, partition, offset=offset) for partition, offset in enumerate(offsets)]
