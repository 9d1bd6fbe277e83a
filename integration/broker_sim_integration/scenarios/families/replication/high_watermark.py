"""Records that are visible to consumers while replicas lag. Kafka: Partition.maybeIncrementLeaderHW, KIP-966."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.broker_client import EARLIEST, LATEST, Position, batch_of
from broker_sim_integration.observations import at_once, at_timeout
from broker_sim_integration.scenarios.helpers.broker_configs import SHORT_LAG, SMALL_OFFSETS_TOPIC
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.mechanisms import FETCH_WAIT_MS, NEXT_FETCH
from broker_sim_integration.scenarios.helpers.observe import described, fetched, listed, produced, read
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation


@scenario(needs={Fault.PAUSE})
def consumers_see_only_what_all_in_sync_replicas_have(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """At the high watermark a fetch waits; above it, up to the log end, it returns empty at once.

    An offset inside a batch counts as the batch's first offset: the fetch waits.
    """
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"0", b"1")
    cluster.faults.pause(cluster.third)
    leader.produce(topic, b"2", b"3", b"4", acks=1)
    yield fetched("from the start", leader.fetch(topic, 0), at_once())
    yield fetched("below", leader.fetch(topic, 1), at_once())
    reply = leader.fetch(topic, 2, max_wait_ms=700)
    yield fetched("at the high watermark", reply, at_timeout(700))
    reply = leader.fetch(topic, 3, max_wait_ms=700)
    yield fetched("inside the batch at the high watermark", reply, at_timeout(700))
    leader.produce(topic, b"5", acks=1)
    for offset, step in ((5, "at a batch above it"), (6, "at the log end")):
        reply = leader.fetch(topic, offset, max_wait_ms=700)
        yield fetched(step, reply, at_once())
    reply = leader.fetch(topic, 7, max_wait_ms=700)
    yield fetched("beyond the log end", reply, at_once())
    yield listed("latest", leader.list_offset(topic, LATEST), at_once())
    yield listed("earliest", leader.list_offset(topic, EARLIEST), at_once())


@scenario(configs=SMALL_OFFSETS_TOPIC, needs={Fault.PAUSE})
def a_user_consumer_sees_hidden_records_when_the_follower_is_back(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """confluent-kafka reads up to the high watermark, waits there, and gets the rest later."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"0", b"1")
    cluster.faults.pause(cluster.third)
    leader.produce(topic, b"2", b"3", acks=1)
    consumer = cluster.clients.consumer()
    consumer.assign(topic, 0)
    yield read("follower frozen", consumer.read(4, timeout_ms=1500))
    cluster.faults.resume(cluster.third)
    yield read("follower back", consumer.read(2, timeout_ms=10_000))


@scenario(needs={Fault.PAUSE})
def a_fetch_at_the_high_watermark_wakes_when_the_frozen_follower_goes_on(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """The follower catches up, the high watermark advances, and the parked fetch returns all records."""
    topic = cluster.topics.create()
    leader, consumer = cluster.connect(cluster.first), cluster.connect(cluster.first)
    leader.produce(topic, b"seen")
    cluster.faults.pause(cluster.third)
    leader.produce(topic, b"hidden", acks=1)
    parked = consumer.start_fetch(Position(topic, offset=1), max_wait_ms=20_000)
    cluster.wait(300)
    resumed_ms = cluster.faults.resume(cluster.third)
    reply = parked.result()
    yield fetched("woken", reply, after(reply, resumed_ms))


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def a_fetch_at_the_high_watermark_wakes_when_the_isr_shrinks(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Without the paused follower the high watermark equals the log end again."""
    topic = cluster.topics.create()
    leader, consumer = cluster.connect(cluster.first), cluster.connect(cluster.first)
    leader.produce(topic, b"seen")
    paused_ms = cluster.faults.pause(cluster.third)
    leader.produce(topic, b"hidden", acks=1)
    parked = consumer.start_fetch(Position(topic, offset=1), max_wait_ms=20_000)
    left_ms = cluster.wait_until.isr(topic, cluster.first, cluster.second)
    reply = parked.result()
    yield fetched("woken", reply, after(reply, left_ms, since=paused_ms.began_ms))


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def below_the_minimum_isr_the_high_watermark_stands(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """acks=1 is accepted below min ISR, but its record is not visible until the ISR is complete again."""
    topic = cluster.topics.create(min_insync_replicas="3")
    leader, consumer = cluster.connect(cluster.first), cluster.connect(cluster.first)
    leader.produce(topic, b"0")
    cluster.faults.pause(cluster.third)
    leader.produce(topic, b"1", acks=1)
    cluster.wait_until.isr(topic, cluster.first, cluster.second)
    for attempt in (1, 2, 3):
        appended = leader.produce(topic, b"more", acks=1)
        yield produced("acks=1", appended, at_once(), attempt=attempt)
    cluster.wait(600)
    yield fetched("hidden", leader.fetch(topic, 0), at_once())
    yield listed("latest", leader.list_offset(topic, LATEST), at_once())
    hidden = len(batch_of([b"1"])) + 3 * len(batch_of([b"more"]))
    parked = consumer.start_fetch(Position(topic, offset=1), max_wait_ms=20_000, min_bytes=hidden)
    cluster.wait(100)
    resumed_ms = cluster.faults.resume(cluster.third)
    reply = parked.result()
    yield fetched("visible", reply, after(reply, resumed_ms, spread_ms=FETCH_WAIT_MS, reason=NEXT_FETCH))
    yield described("complete", cluster, topic)


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def lowering_the_minimum_isr_lets_the_high_watermark_go_on(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The new minimum takes effect: records hidden below the old one become visible with the next append."""
    topic = cluster.topics.create(min_insync_replicas="3")
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"0")
    cluster.faults.pause(cluster.third)
    leader.produce(topic, b"1", acks=1)
    cluster.wait_until.isr(topic, cluster.first, cluster.second)
    yield produced("refused", leader.produce(topic, b"never"), at_once())
    cluster.topics.alter(topic, min_insync_replicas="2")
    cluster.wait(1500)
    yield produced("accepted", leader.produce(topic, b"2"), at_once())
    yield fetched("visible", leader.fetch(topic, 0), at_once())


@scenario()
def read_committed_sees_the_same_without_transactions(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Without transactions the last stable offset is the high watermark."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"0", b"1")
    reply = leader.fetch(topic, 0, isolation_level=1)
    yield fetched("read_committed", reply, at_once())
    reply = leader.start_fetch(Position(topic, offset=2), max_wait_ms=300, isolation_level=1).result()
    yield fetched("at the end", reply, at_timeout(300))
    listing = leader.list_offset(topic, LATEST, isolation_level=1)
    yield listed("latest, read_committed", listing, at_once())
