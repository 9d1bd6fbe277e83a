"""Controlled shutdowns of brokers. Kafka: BrokerServer.shutdown, BrokerLifecycleManager, KIP-631."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.protocol import messages
from integration.broker_verbs import Fault
from integration.clients.broker_client import Append, Position, batch_of
from integration.clients.stopwatch import now_ms
from integration.observations import Observation, at_once, on_event
from integration.scenarios.helpers.broker_configs import (
    FENCED_WITHIN_MS,
    QUICK_FENCING,
    SESSION_TIMEOUT_MS,
)
from integration.scenarios.helpers.observe import (
    after,
    answer_or_end,
    described,
    fetched,
    listed,
    produced,
)
from integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.cluster_under_test.cluster_under_test import ClusterUnderTest

METADATA_VERSION = 12
FIRST_ANSWER_MS = 50
"""A stopping broker asks the controller a second time after so long."""
HEARTBEAT_INTERVAL_MS = 2000
DEFAULT_SESSION_TIMEOUT_MS = 9000
LONG_MS = 30_000


@scenario(needs={Fault.STOP})
def a_stopped_leader_hands_over_before_it_goes_and_is_let_in_again_after_its_session(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """One more leader epoch, out of every ISR; its sockets close after the others' next heartbeats."""
    led = cluster.topics.create([cluster.second, cluster.first, cluster.third])
    followed = cluster.topics.create()
    cluster.connect(cluster.second).produce(led, b"before")
    long_poll = cluster.connect(cluster.second).start_fetch(Position(followed), max_wait_ms=LONG_MS)
    connection = cluster.connect(cluster.second)
    old_leader = connection.start_fetch(Position(led, offset=1), max_wait_ms=LONG_MS, version=10)
    behind_it = connection.send(
        messages.MetadataRequest(topics=[]), METADATA_VERSION, messages.MetadataResponse
    )
    stopped_ms = now_ms()
    ended_ms = cluster.faults.stop(cluster.second)
    reply = old_leader.result()
    yield fetched("parked at the old leader", reply, after(reply, stopped_ms))
    listed_brokers = [broker.node_id for broker in behind_it.result().message.brokers]
    yield Observation(
        "metadata right after it", fields={"brokers": cluster.brokers.roles(listed_brokers)}
    )
    due_ms = stopped_ms - long_poll.sent_ms + FIRST_ANSWER_MS + HEARTBEAT_INTERVAL_MS
    yield answer_or_end("parked at a follower", long_poll, on_event(due_ms))
    yield described("led before", cluster, led)
    yield described("followed before", cluster, followed)
    new_leader = cluster.connect(cluster.first)
    yield produced("acks=all to the new leader", new_leader.produce(led, b"after"), at_once())
    cluster.faults.start(cluster.second)
    joined_ms = cluster.wait_until.brokers(*cluster.brokers)
    # A refused registration is repeated every 2 s, and the process takes a while to start.
    due = on_event(DEFAULT_SESSION_TIMEOUT_MS, early_ms=500, late_ms=HEARTBEAT_INTERVAL_MS + 3000)
    yield Observation("listed again", elapsed_ms=joined_ms - ended_ms, timing=due)
    cluster.wait_until.isr(led, *cluster.brokers)
    yield described("led before, all back", cluster, led)


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE, Fault.STOP})
def requests_parked_at_a_stopping_leader_are_answered_when_it_loses_its_leadership(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """NOT_LEADER_OR_FOLLOWER for the produce; a paused broker delays the end until it is fenced."""
    topic = cluster.topics.create([cluster.second, cluster.first, cluster.third])
    cluster.connect(cluster.second).produce(topic, b"before")
    paused_ms = cluster.faults.pause(cluster.third)
    parked = cluster.connect(cluster.second).start_produce(Append(topic, 0, batch_of([b"parked"])))
    fetches = {
        name: cluster.connect(cluster.second).start_fetch(
            Position(topic, offset=1, leader_epoch=epoch), max_wait_ms=LONG_MS, version=version
        )
        for name, epoch, version in (("version 10", -1, 10), ("with a leader epoch", 0, 17))
    }
    any_replica = cluster.connect(cluster.second).start_fetch(
        Position(topic, offset=1), max_wait_ms=LONG_MS
    )
    cluster.wait(FIRST_ANSWER_MS)
    stopped_ms = now_ms()
    cluster.faults.stop(cluster.second)
    reply = parked.result()
    yield produced("parked produce", reply, after(reply, stopped_ms))
    for name, fetch in fetches.items():
        answer = fetch.result()
        yield fetched(f"parked fetch, {name}", answer, after(answer, stopped_ms))
    due_ms = paused_ms + SESSION_TIMEOUT_MS - any_replica.sent_ms
    due = on_event(due_ms, early_ms=600, late_ms=FENCED_WITHIN_MS)
    yield answer_or_end("parked fetch that a follower may serve", any_replica, due)
    yield described("one left", cluster, topic)


@scenario(topology="1 partition x 1 replica", configs=QUICK_FENCING, needs={Fault.STOP})
def an_only_replica_that_was_stopped_leads_again_with_all_records(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """No leader and no ISR while it is down: LEADER_NOT_AVAILABLE; two more leader epochs in all."""
    topic = cluster.topics.create([cluster.second])
    cluster.connect(cluster.second).produce(topic, b"kept", acks=1)
    cluster.faults.stop(cluster.second)
    yield described("away", cluster, topic)
    cluster.faults.start(cluster.second)
    cluster.wait_until.leader(topic, cluster.second)
    yield described("back", cluster, topic)
    back = cluster.connect(cluster.second)
    yield listed("latest", back.list_offset(topic), at_once())
    yield fetched("all", back.fetch(topic), at_once())
