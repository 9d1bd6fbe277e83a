"""Produce with acks=-1 that waits, times out or fails. Kafka: DelayedProduce, ReplicaManager."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.broker_client import Append, batch_of
from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.observations import at_once, at_timeout
from broker_sim_integration.scenarios.helpers.broker_configs import SHORT_LAG
from broker_sim_integration.scenarios.helpers.due import CONNECTS, after
from broker_sim_integration.scenarios.helpers.mechanisms import at_next_fetch, lagged_out
from broker_sim_integration.scenarios.helpers.observe import delivered, fetched, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

UNKNOWN_PARTITION = 99


@scenario(needs={Fault.PAUSE})
def acks_all_times_out_while_a_frozen_follower_is_in_the_isr(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """REQUEST_TIMED_OUT with the appended base offset; the record can be read later."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    yield produced("before", leader.produce(topic, b"before"), at_once())
    cluster.faults.pause(cluster.third)
    yield produced("acks=1", leader.produce(topic, b"one", acks=1), at_once())
    reply = leader.produce(topic, b"timed out", timeout_ms=1500)
    yield produced("acks=all", reply, at_timeout(1500))
    yield fetched("not visible yet", leader.fetch(topic, 1, max_wait_ms=0), at_once())
    cluster.faults.resume(cluster.third)
    cluster.wait_until.visible(topic, 3)
    found = leader.fetch(topic, 1)
    yield fetched("readable later", found, at_once())


@scenario(needs={Fault.PAUSE})
def user_producer_times_out_while_a_follower_is_frozen(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """confluent-kafka with request.timeout.ms=1500: REQUEST_TIMED_OUT, whatever the minimum ISR."""
    for minimum in ("1", "3"):
        topic = cluster.topics.create(min_insync_replicas=minimum)
        producer = cluster.clients.producer(acks=-1, request_timeout_ms=1500)
        producer.warm_up(topic)
        healthy = producer.produce(topic, b"a")
        yield delivered(f"healthy, min ISR {minimum}", healthy, CONNECTS)
        cluster.faults.pause(cluster.third)
        delivery = producer.produce(topic, b"b")
        yield delivered(f"frozen, min ISR {minimum}", delivery, at_timeout(1500))
        cluster.faults.resume(cluster.third)


@scenario(needs={Fault.PAUSE})
def a_timeout_of_nothing_is_over_at_once(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """timeout_ms 0, 1 and negative: appended, but timed out at once; acks=1 ignores the timeout."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    cluster.faults.pause(cluster.third)
    for timeout_ms in (0, 1, -1, -1000):
        reply = leader.produce(topic, b"a", timeout_ms=timeout_ms)
        yield produced(f"timeout {timeout_ms}", reply, at_once())
    reply = leader.produce(topic, b"b", acks=1, timeout_ms=0)
    yield produced("acks=1, timeout 0", reply, at_once())


@scenario(needs={Fault.PAUSE}, topology="2 partitions x 3 replicas and 1 x 1")
def a_request_with_one_slow_partition_is_answered_as_a_whole(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Failed and complete partitions wait for the one that times out: there is one response."""
    topic = cluster.topics.create()
    alone = cluster.topics.create([cluster.first])
    foreign = cluster.topics.create([cluster.second])
    leader = cluster.connect(cluster.first)
    cluster.faults.pause(cluster.third)
    corrupt = bytearray(batch_of([b"corrupt"]))
    corrupt[-1] ^= 1
    reply = leader.start_produce(
        Append(topic, 0, batch_of([b"slow"])),
        Append(topic, UNKNOWN_PARTITION, batch_of([b"unknown"])),
        Append(alone, 0, batch_of([b"done"])),
        Append(foreign, 0, batch_of([b"not the leader"])),
        timeout_ms=1000,
    ).result()
    due = at_timeout(1000)
    yield produced("slow", reply, due, topic=topic)
    yield produced("unknown", reply, due, topic=topic, partition=UNKNOWN_PARTITION)
    yield produced("done", reply, due, topic=alone)
    yield produced("not the leader", reply, due, topic=foreign)
    reply = leader.start_produce(
        Append(topic, 0, batch_of([b"slow"])), Append(alone, 0, bytes(corrupt)), timeout_ms=1000
    ).result()
    yield produced("slow beside corrupt", reply, due, topic=topic)
    yield produced("corrupt", reply, due, topic=alone)


@scenario(topology="1 partition x 3 replicas and 1 x 1")
def a_request_whose_partitions_all_fail_is_answered_at_once(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The broker does not wait, because no partition was appended."""
    topic = cluster.topics.create()
    foreign = cluster.topics.create([cluster.second])
    leader = cluster.connect(cluster.first)
    reply = leader.start_produce(
        Append(topic, UNKNOWN_PARTITION, batch_of([b"unknown"])),
        Append(foreign, 0, batch_of([b"not the leader"])),
        timeout_ms=1000,
    ).result()
    yield produced("unknown", reply, at_once(), topic=topic, partition=UNKNOWN_PARTITION)
    yield produced("not the leader", reply, at_once(), topic=foreign)


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def acks_all_is_answered_when_the_isr_shrinks(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The paused follower leaves the ISR because of its lag, which completes the parked produce."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    yield produced("before", leader.produce(topic, b"before"), at_once())
    paused_ms = cluster.faults.pause(cluster.third)
    reply = leader.produce(topic, b"waits")
    yield produced("acks=all", reply, lagged_out(paused_ms, reply.sent_ms))
    yield produced("after the shrink", leader.produce(topic, b"after"), at_once())


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def below_the_minimum_isr_acks_all_is_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Min ISR 3: a timeout while the ISR is 3, NOT_ENOUGH_REPLICAS below, success after recovery."""
    topic = cluster.topics.create(min_insync_replicas="3")
    leader = cluster.connect(cluster.first)
    yield produced("healthy", leader.produce(topic, b"0"), at_once())
    cluster.faults.pause(cluster.third)
    reply = leader.produce(topic, b"1", timeout_ms=500)
    yield produced("ISR not shrunk yet", reply, at_timeout(500))
    cluster.wait_until.isr(topic, cluster.first, cluster.second)
    for attempt in (1, 2, 3):
        reply = leader.produce(topic, b"never", timeout_ms=1500)
        yield produced("ISR of two", reply, at_once(), attempt=attempt)
    yield produced("acks=1", leader.produce(topic, b"2", acks=1), at_once())
    cluster.faults.resume(cluster.third)
    cluster.wait_until.isr(topic, *cluster.brokers)
    yield produced("recovered", leader.produce(topic, b"3"), at_next_fetch())
    yield fetched("all that was appended", leader.fetch(topic), at_once())


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def a_parked_produce_does_not_notice_that_the_isr_fell_below_the_minimum(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """It ends with REQUEST_TIMED_OUT at its own timeout, not at the shrink."""
    topic = cluster.topics.create(min_insync_replicas="3")
    leader, other = cluster.connect(cluster.first), cluster.connect(cluster.first)
    cluster.faults.pause(cluster.third)
    parked = leader.start_produce(Append(topic, 0, batch_of([b"parked"])), timeout_ms=4000)
    cluster.wait_until.isr(topic, cluster.first, cluster.second)
    yield produced("refused meanwhile", other.produce(topic, b"never"), at_once())
    yield produced("parked", parked.result(), at_timeout(4000))


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def a_parked_produce_succeeds_when_the_frozen_follower_goes_on(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The resumed follower fetches the missing record, and the response comes long before the timeout."""
    topic = cluster.topics.create(min_insync_replicas="3")
    leader = cluster.connect(cluster.first)
    cluster.faults.pause(cluster.third)
    parked = leader.start_produce(Append(topic, 0, batch_of([b"parked"])), timeout_ms=20_000)
    cluster.wait(600)
    resumed_ms = cluster.faults.resume(cluster.third)
    reply = parked.result()
    yield produced("parked", reply, after(reply, resumed_ms))


@scenario(configs=SHORT_LAG, needs={Fault.PAUSE})
def user_producer_gets_through_when_the_isr_shrinks(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """confluent-kafka with a long timeout: success, or NOT_ENOUGH_REPLICAS with a minimum of 3."""
    lenient, strict = (cluster.topics.create(settled=False), cluster.topics.create(min_insync_replicas="3"))
    producer = cluster.clients.producer(acks=-1, request_timeout_ms=30_000)
    for topic in (lenient, strict):
        producer.warm_up(topic)
        healthy = producer.produce(topic, b"a")
        yield delivered(f"healthy, {_strictness(topic, strict)}", healthy, CONNECTS)
    paused_ms = cluster.faults.pause(cluster.third)
    sent_ms = now_ms()
    delivery = producer.produce(lenient, b"b")
    yield delivered("until the shrink", delivery, lagged_out(paused_ms, sent_ms))
    yield delivered("after the shrink", producer.produce(lenient, b"c"), at_once())
    cluster.connect(cluster.first).produce(strict, b"lacking", acks=1)
    cluster.wait_until.isr(strict, cluster.first, cluster.second)
    yield delivered("refused", producer.produce(strict, b"never"), at_once())


@scenario(needs={Fault.PAUSE})
def parked_produces_are_answered_together_when_the_follower_goes_on(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Five connections wait with one record each; one fetch of the follower completes them all."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"before")
    cluster.faults.pause(cluster.third)
    parked = []
    for turn in range(5):
        append = Append(topic, 0, batch_of([b"%d" % turn]))
        parked.append(cluster.connect(cluster.first).start_produce(append))
        cluster.wait_until.appended(topic, turn + 2)
    resumed_ms = cluster.faults.resume(cluster.third)
    for attempt, pending in enumerate(parked, 1):
        reply = pending.result()
        due = after(reply, resumed_ms)
        yield produced("parked", reply, due, attempt=attempt)


@scenario(needs={Fault.PAUSE})
def a_parked_produce_whose_topic_is_deleted(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It completes when the broker drops the partition, long before its timeout."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"before")
    cluster.faults.pause(cluster.third)
    parked = leader.start_produce(Append(topic, 0, batch_of([b"parked"])), timeout_ms=8000)
    cluster.wait(300)
    deleted_ms = cluster.topics.delete(topic)
    reply = parked.result()
    yield produced("parked", reply, after(reply, deleted_ms))


@scenario(topology="1 partition x 1 replica")
def a_minimum_above_the_replicas_counts_as_their_number(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """min.insync.replicas=3 on a topic with one or two replicas does not make acks=all fail."""
    alone = cluster.topics.create([cluster.first], min_insync_replicas="3")
    pair = cluster.topics.create([cluster.first, cluster.second], min_insync_replicas="3")
    leader = cluster.connect(cluster.first)
    yield produced("one replica", leader.produce(alone, b"a"), at_once())
    yield produced("two replicas", leader.produce(pair, b"a"), at_once())


def _strictness(topic: Topic, strict: Topic) -> str:
    return "min ISR 3" if topic is strict else "min ISR 1"
