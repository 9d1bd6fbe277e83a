"""Requests whose leader changes, stops or dies. Kafka: Partition.makeFollower, DelayedFetch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients import admin
from broker_sim_integration.clients.broker_client import Append, Position, batch_of
from broker_sim_integration.observations import Observation, at_once, at_timeout
from broker_sim_integration.scenarios.helpers.broker_configs import QUICK_FENCING
from broker_sim_integration.scenarios.helpers.displaced_leader import topic_with_displaced_leader
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.mechanisms import (
    FETCH_WAIT_MS,
    NEXT_FETCH,
    at_new_leader,
    at_next_fetch,
    fencing,
)
from broker_sim_integration.scenarios.helpers.observe import (
    answer_or_end,
    described,
    elected,
    fetched,
    listed,
    produced,
)
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

WITHOUT_EPOCH_WAIT_MS = 2500


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def a_parked_fetch_whose_leader_moves_away(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """NOT_LEADER_OR_FOLLOWER in version 10, FENCED_LEADER_EPOCH in 12 and 17 with an epoch; others wait on."""
    topic = topic_with_displaced_leader(cluster)
    epoch = cluster.metadata.describe(topic).leader_epoch
    old = cluster.first
    asked = {
        "version 10": (10, -1),
        "version 10 with an epoch": (10, epoch),
        "version 12 with an epoch": (12, epoch),
        "version 17 with an epoch": (17, epoch),
        "version 12": (12, -1),
        "version 17": (17, -1),
    }
    parked = {
        step: cluster.connect(old).start_fetch(
            Position(topic, leader_epoch=stated), max_wait_ms=WITHOUT_EPOCH_WAIT_MS, version=version
        )
        for step, (version, stated) in asked.items()
    }
    cluster.wait(300)
    election = admin.elect_leader(cluster.clients.ask(cluster.first), topic)
    yield elected("election", election, at_once())
    for step, pending in parked.items():
        reply = pending.result()
        version, stated = asked[step]
        stays = version > 10 and stated < 0
        due = at_timeout(WITHOUT_EPOCH_WAIT_MS) if stays else after(reply, election)
        yield fetched(step, reply, due)
    for version in (10, 12, 17):
        reply = cluster.connect(old).fetch(topic, max_wait_ms=700, version=version)
        due = at_once() if version == 10 else at_timeout(700)
        yield fetched(f"afterwards, version {version}", reply, due)
    position = Position(topic, leader_epoch=epoch)
    reply = cluster.connect(cluster.second).start_fetch(position, max_wait_ms=1000).result()
    yield fetched("the old epoch at the new leader", reply, at_once())


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def a_parked_produce_whose_leader_is_demoted(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """NOT_LEADER_OR_FOLLOWER at the change; the record survives, because the new leader has it."""
    topic = topic_with_displaced_leader(cluster)
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"before")
    cluster.faults.pause(cluster.third)
    parked = leader.start_produce(Append(topic, 0, batch_of([b"parked"])))
    cluster.wait(300)
    election = admin.elect_leader(cluster.clients.ask(cluster.first), topic)
    yield elected("election", election, at_once())
    reply = parked.result()
    yield produced("parked", reply, after(reply, election))
    yield produced("once more at the old leader", leader.produce(topic, b"never"), at_once())
    cluster.faults.resume(cluster.third)
    cluster.wait_until.isr(topic, *cluster.brokers)
    new = cluster.connect(cluster.second)
    cluster.wait_until.visible(topic, 2)
    yield fetched("at the new leader", new.fetch(topic, 0), at_once())


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def a_leader_frozen_for_less_than_its_session_keeps_its_partitions(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Requests sent during the pause get their responses after it; the leader epoch stays the same."""
    topic = cluster.topics.create([cluster.second, cluster.first, cluster.third])
    leader, consumer = cluster.connect(cluster.second), cluster.connect(cluster.second)
    leader.produce(topic, b"before")
    parked_fetch = consumer.start_fetch(Position(topic, offset=1), max_wait_ms=300)
    cluster.wait(100)
    cluster.faults.pause(cluster.second)
    parked_produce = leader.start_produce(Append(topic, 0, batch_of([b"asked meanwhile"])))
    cluster.wait(1000)
    resumed_ms = cluster.faults.resume(cluster.second)
    fetch, produce = parked_fetch.result(), parked_produce.result()
    yield fetched("fetch", fetch, after(fetch, resumed_ms))
    yield produced("produce", produce, after(produce, resumed_ms, spread_ms=FETCH_WAIT_MS, reason=NEXT_FETCH))
    yield described("afterwards", cluster, topic)


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def a_leader_frozen_beyond_its_session_is_replaced(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The next live broker of the ISR becomes the leader in the next epoch; the old leader returns as a follower."""
    topic = cluster.topics.create([cluster.second, cluster.first, cluster.third])
    leader = cluster.connect(cluster.second)
    yield produced("before", leader.produce(topic, b"acknowledged"), at_once())
    paused_ms = cluster.faults.pause(cluster.second)
    elected_ms = cluster.wait_until.leader(topic, cluster.first)
    yield fencing("new leader", paused_ms, elected_ms)
    yield described("without the old one", cluster, topic)
    new = cluster.connect(cluster.first)
    cluster.wait_until.isr(topic, cluster.first, cluster.third)
    yield produced("at the new leader", new.produce(topic, b"later"), at_new_leader())
    cluster.faults.resume(cluster.second)
    cluster.wait_until.isr(topic, *cluster.brokers)
    yield described("with the old one", cluster, topic)
    yield fetched("all", new.fetch(topic, 0), at_once())


@scenario(configs=QUICK_FENCING, needs={Fault.KILL})
def a_killed_leader_closes_its_connections_and_nothing_acknowledged_is_lost(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """It leads in the metadata until it is fenced; then another one leads, and it returns as a follower."""
    topic = cluster.topics.create([cluster.second, cluster.first, cluster.third])
    leader, consumer = cluster.connect(cluster.second), cluster.connect(cluster.second)
    for value in (b"0", b"1", b"2"):
        leader.produce(topic, value)
    parked = consumer.start_fetch(Position(topic, offset=3), max_wait_ms=20_000)
    cluster.wait(100)
    killed_ms = cluster.faults.kill(cluster.second)
    yield answer_or_end("parked fetch", parked, after(parked, killed_ms))
    yield described("dead, not fenced", cluster, topic)
    elected_ms = cluster.wait_until.leader(topic, cluster.first)
    yield fencing("new leader", killed_ms, elected_ms)
    yield described("fenced", cluster, topic)
    new = cluster.connect(cluster.first)
    cluster.wait_until.visible(topic, 3)
    yield fetched("all that was acknowledged", new.fetch(topic, 0), at_once())
    yield produced("goes on", new.produce(topic, b"3"), at_new_leader())
    cluster.faults.start(cluster.second)
    cluster.wait_until.isr(topic, *cluster.brokers)
    yield described("back", cluster, topic)
    cluster.wait_until.serving(cluster.second)
    old = cluster.connect(cluster.second)
    reply = old.fetch(topic, 0, max_wait_ms=5000, min_bytes=4 * len(batch_of([b"0"])))
    yield fetched("the copy of the old leader", reply, at_next_fetch())


@scenario(topology="1 partition x 2 replicas", configs=QUICK_FENCING, needs={Fault.PAUSE, Fault.KILL})
def a_returning_leader_truncates_what_nobody_acknowledged(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A record with acks=1 that only the killed leader had is gone, and its offset is used again."""
    other = cluster.topics.create([cluster.second, cluster.third], settled=False)
    topic = cluster.topics.create([cluster.second, cluster.third])
    leader = cluster.connect(cluster.second)
    leader.produce(topic, b"kept")
    cluster.faults.pause(cluster.third)
    # This record completes the paused follower's last fetch at the leader, before the record to be lost.
    leader.produce(other, b"not this one", acks=1)
    yield produced("acks=1", leader.produce(topic, b"lost", acks=1), at_once())
    cluster.faults.kill(cluster.second)
    cluster.faults.resume(cluster.third)
    cluster.wait_until.leader(topic, cluster.third)
    yield described("new leader", cluster, topic)
    new = cluster.connect(cluster.third)
    yield listed("latest", new.list_offset(topic), at_once())
    yield produced("at the new leader", new.produce(topic, b"instead"), at_new_leader())
    cluster.faults.start(cluster.second)
    cluster.wait_until.isr(topic, cluster.second, cluster.third)
    yield described("back", cluster, topic)
    cluster.wait_until.serving(cluster.second)
    old = cluster.connect(cluster.second)
    reply = old.fetch(topic, 0, max_wait_ms=5000, min_bytes=2 * len(batch_of([b"kept"])))
    yield fetched("the copy of the old leader", reply, at_next_fetch())


@scenario(topology="1 partition x 3 replicas", configs=QUICK_FENCING, needs={Fault.PAUSE, Fault.KILL})
def a_parked_produce_whose_leader_is_killed(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The connection is closed without a response; the record survives on the follower that had it."""
    topic = cluster.topics.create([cluster.second, cluster.first, cluster.third])
    leader = cluster.connect(cluster.second)
    leader.produce(topic, b"before")
    cluster.faults.pause(cluster.third)
    parked = leader.start_produce(Append(topic, 0, batch_of([b"parked"])))
    cluster.wait(300)
    killed_ms = cluster.faults.kill(cluster.second)
    cluster.faults.resume(cluster.third)
    yield answer_or_end("parked", parked, after(parked, killed_ms))
    cluster.wait_until.leader(topic, cluster.first)
    cluster.wait_until.visible(topic, 2)
    new = cluster.connect(cluster.first)
    yield fetched("at the new leader", new.fetch(topic, 0), at_once())


@scenario(topology="2 topics of 1 partition x 1 replica")
def a_parked_fetch_of_a_topic_that_is_deleted(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The whole response, with both partitions, is sent when the broker drops the deleted partition."""
    kept, doomed = cluster.topics.create([cluster.first]), cluster.topics.create([cluster.first])
    consumers = {version: cluster.connect(cluster.first) for version in (12, 17)}
    parked = {
        version: consumer.start_fetch(Position(kept), Position(doomed), max_wait_ms=10_000, version=version)
        for version, consumer in consumers.items()
    }
    cluster.wait(300)
    deleted_ms = cluster.topics.delete(doomed)
    for version, pending in parked.items():
        reply = pending.result()
        due = after(reply, deleted_ms)
        yield fetched(f"deleted, version {version}", reply, due, topic=doomed)
        yield fetched(f"kept, version {version}", reply, due, topic=kept)
