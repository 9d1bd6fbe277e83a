"""Requests that are woken by followers, or by changes of ISR, leader and topic.

Kafka: DelayedProduce, DelayedDeleteRecords, Partition.maybeShrinkIsr, ReplicaManager.applyDelta.
Each kind is repeated often enough to be judged by its distribution.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients import admin
from broker_sim_integration.clients.admin_requests import move
from broker_sim_integration.clients.broker_client import EARLIEST, Append, Position, batch_of
from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.scenarios.helpers.broker_configs import LAG_TIME_MS, SHORT_LAG
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.mechanisms import ROUND_TRIP_MS, lagged_out, next_check_ms
from broker_sim_integration.scenarios.helpers.observe import deleted, fetched, produced
from broker_sim_integration.scenarios.helpers.side_by_side import SAMPLES, pause_until
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.protocol import messages
    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Pending
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

    ParkedFetch = Pending[messages.FetchResponse]
    ParkedProduce = Pending[messages.ProduceResponse]

PARKED_AFTER_MS: Final = 10
LONG_MS: Final = 20_000
AFTER_CHECK_MS: Final = LAG_TIME_MS / 6
"""Time in ms from an ISR check until the followers are caught up, so that this is not close to a check."""
EVENTS: Final = 10
"""Number of events, each of which wakes `SAMPLES // EVENTS` requests."""


@scenario(topology="3 partitions x 3 replicas", needs={Fault.PAUSE})
def the_last_follower_completes_acks_all(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A follower is paused and resumed ten times, and three produces wait for it each time.

    They are due when the resuming begins: Docker returns only after the broker has continued.
    """
    together = SAMPLES // EVENTS
    topic = cluster.topics.create(partitions=together)
    clients = [cluster.connect(cluster.first) for _ in range(together)]
    _warm_up(cluster, topic)
    for event in range(EVENTS):
        cluster.faults.pause(cluster.third)
        parked = [
            client.start_produce(Append(topic, partition, batch_of([b"parked"])))
            for partition, client in enumerate(clients)
        ]
        cluster.wait(PARKED_AFTER_MS)
        resumed = cluster.faults.resume(cluster.third)
        for partition, pending in enumerate(parked):
            reply = pending.result()
            attempt = event * together + partition + 1
            due = after(reply, resumed.began_ms)
            yield produced("acks=all", reply, due, partition=partition, attempt=attempt)


@scenario()
def the_next_fetches_of_the_followers_complete_a_deletion(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty deletions; a record of another topic completes the followers' parked fetches.

    The responses contain the new log start offset, and the followers' next fetches confirm it.
    """
    other, topic = cluster.topics.create(settled=False), cluster.topics.create()
    leader, deleter = cluster.connect(cluster.first), cluster.connect(cluster.first)
    leader.produce(topic, *(b"%d" % index for index in range(SAMPLES)))
    _warm_up(cluster, other)
    for attempt in range(1, SAMPLES + 1):
        parked = deleter.start_delete_records(topic, attempt)
        cluster.wait_until(partial(_starts_at, leader, topic, attempt), "the leader has deleted it")
        brings = leader.produce(other, b"brings the answer", acks=1)
        reply = parked.result()
        yield deleted("deleted", reply, after(reply, brings, since=parked.sent_ms), attempt=attempt)


@scenario(topology="30 partitions x 3 replicas", configs=SHORT_LAG, needs={Fault.PAUSE})
def a_shrinking_isr_completes_acks_all_and_fetches(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty partitions lose the paused follower because of its lag, and their high watermarks advance.

    The ISR of another topic shrinks first: its time shows the phase of the leader's checks, and so the first
    check after the lag time.
    """
    other, topic = cluster.topics.create(settled=False), cluster.topics.create(partitions=SAMPLES)
    leader = cluster.connect(cluster.first)
    leader.produce(other, b"replicated")
    paused_ms = cluster.faults.pause(cluster.third)
    first = leader.produce(other, b"lacking")
    yield produced("first", first, lagged_out(paused_ms, first.sent_ms))
    cluster.faults.resume(cluster.third)
    cluster.wait_until.replicated(other)
    pause_until(next_check_ms(first.answered_ms, now_ms()) + AFTER_CHECK_MS)
    _warm_up(cluster, topic)
    caught_up_ms = now_ms()
    cluster.faults.pause(cluster.third)
    lag_over_ms = caught_up_ms + LAG_TIME_MS
    checked_ms = next_check_ms(first.answered_ms, lag_over_ms)
    for partition, (produce, fetch) in enumerate(_park(cluster, topic)):
        reply, woken, attempt = produce.result(), fetch.result(), partition + 1
        due = after(reply, checked_ms, since=lag_over_ms - ROUND_TRIP_MS)
        yield produced("acks=all", reply, due, partition=partition, attempt=attempt)
        due = after(woken, checked_ms, since=lag_over_ms - ROUND_TRIP_MS)
        yield fetched("fetch", woken, due, partition=partition, attempt=attempt)


@scenario(topology="30 partitions x 3 replicas", needs={Fault.PAUSE})
def an_election_ends_acks_all_and_fetches_at_the_old_leader(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The preferred leaders of thirty partitions are elected, one after the other.

    acks=all waits for a paused follower, and gets NOT_LEADER_OR_FOLLOWER; a fetch with its leader epoch
    gets FENCED_LEADER_EPOCH.
    """
    topic = cluster.topics.create(partitions=SAMPLES)
    _warm_up(cluster, topic)
    reordered = (cluster.second, cluster.first, cluster.third)
    asked = cluster.clients.ask(cluster.first)
    move(asked, *((topic.name, partition, reordered) for partition in range(SAMPLES)))
    cluster.wait_until(
        lambda: all(found.replicas == reordered for found in cluster.metadata.describe_all(topic.name).values()),
        f"{topic.name} has other preferred leaders",
    )
    cluster.faults.pause(cluster.third)
    parked = _park(cluster, topic)
    for partition, (produce, fetch) in enumerate(parked):
        election = admin.elect_leader(asked, topic, partition=partition)
        reply, woken, attempt = produce.result(), fetch.result(), partition + 1
        due = after(reply, election)
        yield produced("acks=all", reply, due, partition=partition, attempt=attempt)
        due = after(woken, election)
        yield fetched("fetch", woken, due, partition=partition, attempt=attempt)


@scenario(topology="10 topics of 3 partitions x 1 replica")
def deleting_a_topic_ends_the_fetches_of_its_partitions(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Ten topics are deleted while a fetch of each of their three partitions is parked."""
    together = SAMPLES // EVENTS
    topics = [cluster.topics.create([cluster.first], partitions=together, settled=False) for _ in range(EVENTS)]
    clients = [cluster.connect(cluster.first) for _ in range(together)]
    for event, topic in enumerate(topics):
        parked = [
            client.start_fetch(Position(topic, partition), max_wait_ms=LONG_MS)
            for partition, client in enumerate(clients)
        ]
        cluster.wait(PARKED_AFTER_MS)
        deleted_ms = cluster.topics.delete(topic)
        for partition, pending in enumerate(parked):
            reply = pending.result()
            attempt = event * together + partition + 1
            due = after(reply, deleted_ms)
            yield fetched("woken", reply, due, partition=partition, attempt=attempt)


def _starts_at(leader: BrokerClient, topic: Topic, offset: int) -> bool:
    """Whether the leader has deleted all records below `offset`."""
    listing = leader.list_offset(topic, EARLIEST)
    return listing.message.topics[0].partitions[0].offset == offset


def _warm_up(cluster: ClusterUnderTest, topic: Topic) -> None:
    """Replicate a record of each partition, so that the followers' fetches include all partitions."""
    appends = [Append(topic, partition, batch_of([b"first"])) for partition in range(len(topic.replicas))]
    cluster.clients.ask(cluster.first).start_produce(*appends).result()


def _park(cluster: ClusterUnderTest, topic: Topic) -> list[tuple[ParkedProduce, ParkedFetch]]:
    """Park a produce and a fetch in each partition, each on its own connection; return them."""
    parked = []
    for partition in range(SAMPLES):
        append = Append(topic, partition, batch_of([b"parked"]))
        position = Position(topic, partition, offset=1, leader_epoch=0)
        produce = cluster.connect(cluster.first).start_produce(append)
        fetch = cluster.connect(cluster.first).start_fetch(position, max_wait_ms=LONG_MS)
        parked.append((produce, fetch))
    return parked
