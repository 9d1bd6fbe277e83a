"""Shrinking and expanding ISRs. Kafka: Partition.maybeShrinkIsr, maybeExpandIsr, AlterPartition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.broker_client import Append, batch_of
from broker_sim_integration.observations import Observation, at_once, at_timeout
from broker_sim_integration.scenarios.helpers.broker_configs import LAG_TIME_MS, QUICK_FENCING, SHORT_LAG
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.mechanisms import at_next_fetch, fenced, fencing, shrinking
from broker_sim_integration.scenarios.helpers.observe import described, fetched, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def a_follower_that_lacks_a_record_leaves_after_the_lag_time(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """One unreplicated record and replica.lag.time.max.ms; the leader epoch does not change."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"replicated")
    yield described("healthy", cluster, topic)
    paused_ms = cluster.faults.pause(cluster.third)
    leader.produce(topic, b"lacking", acks=1)
    left_ms = cluster.wait_until.isr(topic, cluster.first, cluster.second)
    yield shrinking("left", paused_ms, left_ms)
    yield described("shrunk", cluster, topic)
    cluster.faults.resume(cluster.third)
    cluster.wait_until.isr(topic, *cluster.brokers)
    yield described("grown", cluster, topic)


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def a_frozen_follower_of_an_idle_partition_stays(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It lacks no record, so it does not lag, however long it is paused within its session."""
    idle, busy = cluster.topics.create(settled=False), cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(idle, b"replicated")
    leader.produce(busy, b"replicated")
    cluster.faults.pause(cluster.third)
    leader.produce(busy, b"lacking", acks=1)
    cluster.wait_until.isr(busy, cluster.first, cluster.second)
    cluster.wait(LAG_TIME_MS)
    yield described("idle", cluster, idle)
    yield described("busy", cluster, busy)
    yield produced("acks=all to the busy one", leader.produce(busy, b"a"), at_once())


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def a_follower_frozen_for_less_than_the_lag_time_stays(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It catches up before the leader's next check, and the ISR does not change."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"before")
    cluster.faults.pause(cluster.third)
    leader.produce(topic, b"lacking", acks=1)
    cluster.wait(LAG_TIME_MS / 3)
    cluster.faults.resume(cluster.third)
    cluster.wait_until.visible(topic, 2)
    cluster.wait(LAG_TIME_MS)
    yield described("afterwards", cluster, topic)
    yield produced("acks=all", leader.produce(topic, b"a"), at_once())


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def a_fenced_broker_leaves_every_isr(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """No heartbeats for broker.session.timeout.ms: the broker leaves the metadata and all ISRs, even idle ones."""
    topic = cluster.topics.create()
    paused_ms = cluster.faults.pause(cluster.third)
    left_ms = cluster.wait_until.isr(topic, cluster.first, cluster.second)
    yield fencing("left", paused_ms, left_ms)
    yield described("fenced", cluster, topic)
    cluster.wait_until.brokers(cluster.first, cluster.second)
    cluster.faults.resume(cluster.third)
    cluster.wait_until.brokers(*cluster.brokers)
    cluster.wait_until.isr(topic, *cluster.brokers)
    yield described("back", cluster, topic)


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def acks_all_is_answered_when_a_frozen_follower_is_fenced(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Min ISR 1: a parked produce succeeds then. Min ISR 3: it times out, and other produces get an error."""
    lenient = cluster.topics.create()
    strict = cluster.topics.create(min_insync_replicas="3")
    leaders = [cluster.connect(cluster.first) for _ in range(3)]
    for topic in (lenient, strict):
        minimum = "3" if topic is strict else "1"
        reply = leaders[0].produce(topic, b"0")
        yield produced(f"healthy, min ISR {minimum}", reply, at_once())
    paused = cluster.faults.pause(cluster.third)
    parked = leaders[0].start_produce(Append(lenient, 0, batch_of([b"1"])), timeout_ms=20_000)
    beyond = leaders[1].start_produce(Append(strict, 0, batch_of([b"1"])), timeout_ms=4500)
    reply = parked.result()
    yield produced("parked, min ISR 1", reply, fenced(paused, reply.sent_ms))
    cluster.wait_until.isr(strict, cluster.first, cluster.second)
    refused = leaders[2].produce(strict, b"never")
    yield produced("min ISR 3, ISR of two", refused, at_once())
    yield produced("parked, min ISR 3", beyond.result(), at_timeout(4500))
    cluster.faults.resume(cluster.third)
    cluster.wait_until.isr(strict, *cluster.brokers)
    yield described("back", cluster, strict)


@scenario(needs={Fault.PAUSE})
def with_kafkas_defaults_a_frozen_broker_is_fenced_after_nine_seconds(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """The parked acks=all then succeeds: fencing shrinks the ISR before the lag time of 30 s is over."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"before")
    paused_ms = cluster.faults.pause(cluster.third)
    parked = leader.start_produce(Append(topic, 0, batch_of([b"parked"])))
    left_ms = cluster.wait_until.isr(topic, cluster.first, cluster.second)
    reply = parked.result()
    yield fencing("fenced", paused_ms, left_ms, session_ms=9000, heartbeat_ms=2000)
    yield produced("parked", reply, after(reply, left_ms, since=paused_ms.began_ms))


@scenario(configs=QUICK_FENCING, needs={Fault.KILL})
def a_killed_follower_leaves_and_returns_with_all_records(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It is fenced like a paused one, is started again, catches up, and is in the ISR again."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"before")
    cluster.faults.kill(cluster.third)
    leader.produce(topic, b"while it was dead", acks=1)
    cluster.wait_until.isr(topic, cluster.first, cluster.second)
    yield described("without it", cluster, topic)
    yield produced("acks=all without it", leader.produce(topic, b"two replicas"), at_once())
    cluster.faults.start(cluster.third)
    cluster.wait_until.isr(topic, *cluster.brokers)
    yield described("with it again", cluster, topic)
    yield produced("acks=all with it", leader.produce(topic, b"three again"), at_next_fetch())
    cluster.wait_until.serving(cluster.third)
    copy = cluster.connect(cluster.third)
    reply = copy.fetch(topic, max_wait_ms=5000, min_bytes=280)
    yield fetched("its own copy", reply, at_next_fetch())
