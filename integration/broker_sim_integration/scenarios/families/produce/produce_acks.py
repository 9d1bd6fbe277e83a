"""Produce with acks 0, 1 and -1 on a healthy cluster. Kafka: ReplicaManager.appendRecords."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.clients.broker_client import EARLIEST, Append, batch_of
from broker_sim_integration.observations import at_once
from broker_sim_integration.scenarios.helpers.mechanisms import at_next_fetch
from broker_sim_integration.scenarios.helpers.observe import delivered, fetched, listed, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation


@scenario()
def user_producer_gets_offsets_for_acks_1_and_all_but_not_for_0(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """confluent-kafka with acks 0, 1 and all on a healthy topic; acks=0 gets no offset."""
    topic = cluster.topics.create()
    for turn, acks in enumerate((0, 1, -1), 1):
        producer = cluster.clients.producer(acks=acks)
        producer.warm_up(topic)
        producer.produce(topic, b"first connects")
        for attempt in (1, 2, 3):
            delivery = producer.produce(topic, b"timed")
            yield delivered(f"acks={acks}", delivery, at_once(), attempt=attempt)
        cluster.wait_until.visible(topic, 4 * turn)
    reply = cluster.connect(cluster.first).fetch(topic)
    yield fetched("all are there", reply, at_once())


@scenario()
def acks_0_is_appended_without_an_answer(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The first response on the connection is that of the next request."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce_unanswered(topic, b"unanswered")
    yield listed("next request", leader.list_offset(topic, EARLIEST), at_once())
    yield fetched("appended", leader.fetch(topic, max_wait_ms=5000), at_next_fetch())


@scenario()
def acks_1_is_answered_at_once(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The leader's append completes it; offsets increase by the number of records in each batch."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    for attempt, values in enumerate(([b"a"], [b"b", b"c"], [b"d"]), 1):
        reply = leader.produce(topic, *values, acks=1)
        yield produced("acks=1", reply, at_once(), attempt=attempt)


@scenario()
def acks_all_is_answered_when_all_replicas_have_it(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """When the response arrives, the high watermark has passed the records."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    for attempt in (1, 2, 3):
        reply = leader.produce(topic, b"replicated")
        yield produced("acks=all", reply, at_once(), attempt=attempt)
        visible = leader.fetch(topic, attempt - 1, max_wait_ms=0)
        yield fetched("visible", visible, at_once(), attempt=attempt)


@scenario(topology="5 topics of 1 partition x 3 replicas")
def the_first_record_of_a_new_topic_may_wait_for_the_followers(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The followers' parked fetches do not have the new partition yet: up to 500 ms, once."""
    leader = cluster.connect(cluster.first)
    for attempt in range(1, 6):
        topic = cluster.topics.create(settled=False)
        first = leader.produce(topic, b"first")
        yield produced("first", first, at_next_fetch(), attempt=attempt)
        yield produced("second", leader.produce(topic, b"second"), at_once(), attempt=attempt)


@scenario(topology="1 partition x 1 replica")
def acks_all_with_one_replica_waits_for_nobody(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The leader is the whole ISR, so the append completes the request."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    for attempt in (1, 2, 3):
        reply = leader.produce(topic, b"alone")
        yield produced("acks=all", reply, at_once(), attempt=attempt)


@scenario()
def other_acks_are_invalid(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_REQUIRED_ACKS at once for 2, -2 and 32767, and nothing is appended."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    for acks in (2, -2, 32767):
        reply = leader.produce(topic, b"never", acks=acks)
        yield produced(f"acks={acks}", reply, at_once())
    yield listed("nothing appended", leader.list_offset(topic), at_once())


@scenario(topology="2 partitions x 3 replicas")
def one_request_to_two_partitions_has_one_answer(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """One response has the offsets of both partitions."""
    topic = cluster.topics.create(partitions=2)
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"a", partition=1)
    reply = leader.start_produce(Append(topic, 0, batch_of([b"b"])), Append(topic, 1, batch_of([b"c"]))).result()
    for partition in (0, 1):
        yield produced(f"partition {partition}", reply, at_once(), partition=partition)
