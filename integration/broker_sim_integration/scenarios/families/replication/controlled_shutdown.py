"""Controlled shutdowns of brokers. Kafka: BrokerServer.shutdown, BrokerLifecycleManager, KIP-631."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.protocol import messages
from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.broker_client import Append, Position, batch_of
from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.observations import Observation, at_once, on_event
from broker_sim_integration.scenarios.helpers.broker_configs import QUICK_FENCING
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.mechanisms import at_next_heartbeat, fenced, just_started
from broker_sim_integration.scenarios.helpers.observe import answer_or_end, described, fetched, listed, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

METADATA_VERSION = 12
FIRST_ANSWER_MS = 50
"""Time in ms until a stopping broker sends its second heartbeat to the controller."""
DEFAULT_HEARTBEAT_INTERVAL_MS = 2000
DEFAULT_SESSION_TIMEOUT_MS = 9000
LONG_MS = 30_000
STARTED_WITHIN_MS = 3000
STOPPING_MS = 300
STOPPING = "a process that is told to stop asks the controller first, and Docker tells it late"


@scenario(needs={Fault.STOP})
def a_stopped_leader_hands_over_before_it_goes_and_is_let_in_again_after_its_session(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """The leader epoch rises by one; the broker leaves all ISRs; its sockets close after the others' heartbeats."""
    led = cluster.topics.create([cluster.second, cluster.first, cluster.third])
    followed = cluster.topics.create()
    cluster.connect(cluster.second).produce(led, b"before")
    long_poll = cluster.connect(cluster.second).start_fetch(Position(followed), max_wait_ms=LONG_MS)
    connection = cluster.connect(cluster.second)
    old_leader = connection.start_fetch(Position(led, offset=1), max_wait_ms=LONG_MS, version=10)
    behind_it = connection.send(messages.MetadataRequest(topics=[]), METADATA_VERSION, messages.MetadataResponse)
    stopped_ms = now_ms()
    ended_ms = cluster.faults.stop(cluster.second)
    reply = old_leader.result()
    due = after(reply, stopped_ms, spread_ms=STOPPING_MS, reason=STOPPING)
    yield fetched("parked at the old leader", reply, due)
    listing = behind_it.result()
    listed_brokers = [broker.node_id for broker in listing.message.brokers]
    yield Observation(
        "metadata right after it",
        elapsed_ms=listing.elapsed_ms,
        answered_ms=listing.answered_ms,
        timing=after(listing, stopped_ms, spread_ms=STOPPING_MS, reason=STOPPING),
        fields={"brokers": cluster.brokers.roles(listed_brokers)},
    )
    due_ms = stopped_ms - long_poll.sent_ms + FIRST_ANSWER_MS + DEFAULT_HEARTBEAT_INTERVAL_MS
    due = on_event(due_ms, earliest_ms=stopped_ms - long_poll.sent_ms, spread_ms=STOPPING_MS, reason=STOPPING)
    yield answer_or_end("parked at a follower", long_poll, due)
    yield described("led before", cluster, led)
    yield described("followed before", cluster, followed)
    new_leader = cluster.connect(cluster.first)
    yield produced("acks=all to the new leader", new_leader.produce(led, b"after"), at_once())
    cluster.faults.start(cluster.second)
    joined_ms = cluster.wait_until.brokers(*cluster.brokers)
    due = on_event(
        ended_ms - stopped_ms + DEFAULT_SESSION_TIMEOUT_MS,
        earliest_ms=DEFAULT_SESSION_TIMEOUT_MS,
        spread_ms=DEFAULT_HEARTBEAT_INTERVAL_MS + STARTED_WITHIN_MS,
        reason="a refused registration is repeated every 2 s, and the process takes time to start",
    )
    listed_ms = joined_ms - stopped_ms
    yield Observation("listed again", elapsed_ms=listed_ms, answered_ms=joined_ms, timing=due)
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
    any_replica = cluster.connect(cluster.second).start_fetch(Position(topic, offset=1), max_wait_ms=LONG_MS)
    cluster.wait(FIRST_ANSWER_MS)
    stopped_ms = now_ms()
    cluster.faults.stop(cluster.second)
    reply = parked.result()
    due = after(reply, stopped_ms, spread_ms=STOPPING_MS, reason=STOPPING)
    yield produced("parked produce", reply, due)
    for name, fetch in fetches.items():
        answer = fetch.result()
        due = after(answer, stopped_ms, spread_ms=STOPPING_MS, reason=STOPPING)
        yield fetched(f"parked fetch, {name}", answer, due)
    due = at_next_heartbeat(fenced(paused_ms, any_replica.sent_ms))
    yield answer_or_end("parked fetch that a follower may serve", any_replica, due)
    yield described("one left", cluster, topic)


@scenario(topology="1 partition x 1 replica", configs=QUICK_FENCING, needs={Fault.STOP})
def an_only_replica_that_was_stopped_leads_again_with_all_records(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """No leader and no ISR while it is down: LEADER_NOT_AVAILABLE; the leader epoch rises by two in all."""
    topic = cluster.topics.create([cluster.second])
    cluster.connect(cluster.second).produce(topic, b"kept", acks=1)
    cluster.faults.stop(cluster.second)
    yield described("away", cluster, topic)
    cluster.faults.start(cluster.second)
    cluster.wait_until.leader(topic, cluster.second)
    yield described("back", cluster, topic)
    back = cluster.connect(cluster.second)
    yield listed("latest", back.list_offset(topic), just_started())
    yield fetched("all", back.fetch(topic), just_started())
