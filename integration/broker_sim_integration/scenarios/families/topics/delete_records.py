"""Deleting records from the start of a log. Kafka: DelayedDeleteRecords, KIP-107."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.broker_client import EARLIEST, LATEST, Position
from broker_sim_integration.observations import at_once, at_timeout
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.mechanisms import FETCH_WAIT_MS, NEXT_FETCH, at_next_fetch
from broker_sim_integration.scenarios.helpers.observe import deleted, fetched, listed, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation


@scenario()
def records_are_gone_when_all_replicas_have_deleted_them(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The response has the low watermark; a fetch below it gets OFFSET_OUT_OF_RANGE."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"0", b"1", b"2")
    leader.produce(topic, b"3")
    reply = leader.start_delete_records(topic, 2).result()
    yield deleted("below 2", reply, at_next_fetch())
    yield listed("earliest", leader.list_offset(topic, EARLIEST), at_once())
    yield fetched("below the start", leader.fetch(topic, 1), at_once())
    yield fetched("at the start", leader.fetch(topic, 2), at_once())
    reply = leader.start_delete_records(topic, 1).result()
    yield deleted("below what is gone", reply, at_next_fetch())
    reply = leader.start_delete_records(topic, -1).result()
    yield deleted("all", reply, at_next_fetch())
    yield listed("earliest of none", leader.list_offset(topic, EARLIEST), at_once())
    yield fetched("nothing left", leader.fetch(topic, 4, max_wait_ms=200), at_timeout(200))
    yield produced("offsets go on", leader.produce(topic, b"4"), at_once())


@scenario(topology="1 partition x 1 replica")
def with_one_replica_deletion_is_done_at_once(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """There is no follower to wait for; offsets outside the log get an error."""
    topic = cluster.topics.create([cluster.first])
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"0", b"1", b"2")
    for offset in (0, 1, 3, 4, -2, -1):
        reply = leader.start_delete_records(topic, offset).result()
        yield deleted(f"below {offset}", reply, at_once())
    reply = leader.start_delete_records(topic, 1, partition=9).result()
    yield deleted("unknown partition", reply, at_once())
    unknown = cluster.topics.unknown()
    reply = leader.start_delete_records(unknown, 1).result()
    yield deleted("unknown topic", reply, at_once())


@scenario(needs={Fault.PAUSE})
def deletion_times_out_while_a_follower_is_frozen(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """REQUEST_TIMED_OUT at the request's timeout, although the leader has deleted the records."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"0", b"1", b"2")
    cluster.faults.pause(cluster.third)
    reply = leader.start_delete_records(topic, 2, timeout_ms=1000).result()
    yield deleted("frozen", reply, at_timeout(1000))
    yield listed("earliest", leader.list_offset(topic, EARLIEST), at_once())
    reply = leader.start_delete_records(topic, 2, timeout_ms=0).result()
    yield deleted("timeout 0", reply, at_once())
    cluster.faults.resume(cluster.third)
    reply = leader.start_delete_records(topic, 2, timeout_ms=20_000).result()
    yield deleted("after it went on", reply, at_next_fetch())


@scenario(needs={Fault.PAUSE})
def a_parked_deletion_is_done_when_the_frozen_follower_goes_on(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its fetches contain its log start offset, which completes the request."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"0", b"1", b"2")
    cluster.faults.pause(cluster.third)
    parked = leader.start_delete_records(topic, 2)
    cluster.wait(700)
    resumed_ms = cluster.faults.resume(cluster.third)
    reply = parked.result()
    yield deleted("deleted", reply, after(reply, resumed_ms, spread_ms=FETCH_WAIT_MS, reason=NEXT_FETCH))


@scenario(needs={Fault.PAUSE})
def deletion_above_the_high_watermark_is_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """OFFSET_OUT_OF_RANGE for records that consumers cannot see yet; -1 means the high watermark."""
    topic = cluster.topics.create()
    leader = cluster.connect(cluster.first)
    leader.produce(topic, b"0", b"1")
    cluster.faults.pause(cluster.third)
    leader.produce(topic, b"2", acks=1)
    reply = leader.start_delete_records(topic, 3, timeout_ms=500).result()
    yield deleted("above", reply, at_once())
    reply = leader.start_delete_records(topic, -1, timeout_ms=500).result()
    yield deleted("what is visible", reply, at_timeout(500))
    yield listed("earliest", leader.list_offset(topic, EARLIEST), at_once())
    yield listed("latest", leader.list_offset(topic, LATEST), at_once())


@scenario()
def only_the_leader_deletes(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A follower returns NOT_LEADER_OR_FOLLOWER at once."""
    topic = cluster.topics.create()
    follower = cluster.connect(cluster.second)
    yield deleted("follower", follower.start_delete_records(topic, 0).result(), at_once())


@scenario(topology="1 partition x 1 replica")
def a_parked_fetch_does_not_notice_a_deletion(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """All records are deleted; the fetch at the log end stays parked until its max_wait_ms."""
    topic = cluster.topics.create([cluster.first])
    leader, consumer = cluster.connect(cluster.first), cluster.connect(cluster.first)
    leader.produce(topic, b"0", b"1")
    parked = consumer.start_fetch(Position(topic, offset=2), max_wait_ms=800)
    cluster.wait(200)
    yield deleted("all", leader.start_delete_records(topic, -1).result(), at_once())
    yield fetched("parked", parked.result(), at_timeout(800))


@scenario(topology="1 partition x 1 replica")
def a_compacted_topic_refuses_deletion(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """POLICY_VIOLATION with cleanup.policy=compact; compact,delete allows it."""
    leader = cluster.connect(cluster.first)
    for policy in ("compact", "compact,delete"):
        topic = cluster.topics.create([cluster.first], cleanup_policy=policy)
        leader.produce_keyed(topic, b"k", b"v")
        reply = leader.start_delete_records(topic, 1).result()
        yield deleted(policy, reply, at_once())
