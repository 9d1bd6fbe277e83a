"""Clients and brokers that disconnect, and their parked requests. Kafka: SocketServer, DelayedOperationPurgatory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.broker_client import LATEST, Append, Position, batch_of
from broker_sim_integration.clients.raw_client import RawConnection
from broker_sim_integration.observations import Observation, at_once, at_timeout
from broker_sim_integration.scenarios.helpers.broker_configs import QUICK_FENCING, SESSION_TIMEOUT_MS
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.mechanisms import at_new_leader, at_next_fetch, fencing, just_started
from broker_sim_integration.scenarios.helpers.observe import concluded, described, fetched, listed, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker_sim.protocol.messages import ProduceResponse
    from broker_sim_integration.clients.raw_client import Pending
    from broker_sim_integration.clients.stopwatch import Moment
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest

CONNECTIONS = 50
RETRANSMITTED_WITHIN_MS = 1000
RETRANSMITTED = "TCP retransmits after pauses that double: the next one is up to as long as the network was away"


@scenario(needs={Fault.PAUSE})
def a_client_that_leaves_does_not_take_its_parked_produce_along(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The record was appended and becomes visible; the request pipelined after it is not served."""
    topic = cluster.topics.create()
    leaver, observer = cluster.connect(cluster.first), cluster.connect(cluster.first)
    cluster.faults.pause(cluster.third)
    for value in (b"parked", b"behind"):
        leaver.start_produce(Append(topic, 0, batch_of([value])), timeout_ms=700)
    cluster.wait(300)
    leaver.close()
    yield produced("other client", observer.produce(topic, b"other", acks=1), at_once())
    cluster.wait(800)
    cluster.faults.resume(cluster.third)
    yield produced("healthy again", observer.produce(topic, b"last"), at_next_fetch())
    yield fetched("what is there", observer.fetch(topic, 0), at_once())


@scenario(topology="1 partition x 1 replica")
def a_client_that_leaves_a_parked_fetch_disturbs_nobody(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The next produce, and fetches of other clients, are not affected."""
    topic = cluster.topics.create([cluster.first])
    leaver, stayer = cluster.connect(cluster.first), cluster.connect(cluster.first)
    leader = cluster.connect(cluster.first)
    leaver.start_fetch(Position(topic), max_wait_ms=10_000)
    parked = stayer.start_fetch(Position(topic), max_wait_ms=10_000)
    cluster.wait(200)
    leaver.close()
    cluster.wait(200)
    reply = leader.produce(topic, b"a")
    yield produced("produce", reply, at_once())
    fetch = parked.result()
    yield fetched("who stayed", fetch, after(fetch, reply))


@scenario(topology="1 partition x 1 replica")
def fifty_parked_fetches_on_fifty_connections(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """All time out together, then all are woken together."""
    topic = cluster.topics.create([cluster.first])
    consumers = [cluster.connect(cluster.first) for _ in range(CONNECTIONS)]
    parked = [consumer.start_fetch(Position(topic), max_wait_ms=800) for consumer in consumers]
    for attempt, pending in enumerate(parked, 1):
        yield fetched("timed out", pending.result(), at_timeout(800), attempt=attempt)
    parked = [consumer.start_fetch(Position(topic), max_wait_ms=9000) for consumer in consumers]
    cluster.wait(300)
    reply = cluster.connect(cluster.first).produce(topic, b"a")
    for attempt, pending in enumerate(parked, 1):
        fetch = pending.result()
        yield fetched("woken", fetch, after(fetch, reply), attempt=attempt)


@scenario(needs={Fault.PAUSE})
def a_frozen_broker_accepts_connections_and_answers_when_it_goes_on(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A request sent during the pause, on an old or a new connection, is served when the broker is resumed."""
    topic = cluster.topics.create([cluster.third])
    old = cluster.connect(cluster.third)
    old.produce(topic, b"before")
    cluster.faults.pause(cluster.third)
    new = cluster.connect(cluster.third)
    pending = {
        "old connection": old.start_produce(Append(topic, 0, batch_of([b"old"])), acks=1),
        "new connection": new.start_produce(Append(topic, 0, batch_of([b"old"])), acks=1),
    }
    cluster.wait(500)
    resumed_ms = cluster.faults.resume(cluster.third)
    yield from _taken(pending, resumed_ms)
    yield listed("both", old.list_offset(topic, LATEST), at_once())


@scenario(needs={Fault.PAUSE}, topology="2 partitions x 1 replica and 2 x 2")
def a_paused_leader_answers_its_parked_requests_when_it_continues(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its timers stop, too: expired requests time out when it is resumed, the others at their own timeout."""
    behind = [cluster.topics.create([cluster.third, cluster.second]) for _ in range(2)]
    idle = cluster.topics.create([cluster.third])
    written = cluster.topics.create([cluster.third])
    leader = [cluster.connect(cluster.third) for _ in range(6)]
    cluster.faults.pause(cluster.second)
    produces = [
        leader[0].start_produce(Append(behind[0], 0, batch_of([b"over"])), timeout_ms=1000),
        leader[1].start_produce(Append(behind[1], 0, batch_of([b"not over"])), timeout_ms=3000),
    ]
    over = leader[2].start_fetch(Position(idle), max_wait_ms=1000)
    not_over = leader[3].start_fetch(Position(idle), max_wait_ms=3000)
    woken = leader[4].start_fetch(Position(written), max_wait_ms=20_000)
    cluster.wait(500)
    cluster.faults.pause(cluster.third)
    cluster.wait(250)
    wakes = leader[5].start_produce(Append(written, 0, batch_of([b"wakes"])), acks=1)
    cluster.wait(750)
    resumed_ms = cluster.faults.resume(cluster.third)
    yield produced("produce, over", produces[0].result(), after(produces[0], resumed_ms))
    yield fetched("fetch, over", over.result(), after(over, resumed_ms))
    yield produced("produce while it is paused", wakes.result(), after(wakes, resumed_ms))
    yield fetched("fetch that this wakes", woken.result(), after(woken, resumed_ms))
    yield produced("produce, not over", produces[1].result(), at_timeout(3000))
    yield fetched("fetch, not over", not_over.result(), at_timeout(3000))


@scenario(needs={Fault.KILL}, configs=QUICK_FENCING)
def a_killed_broker_refuses_connections_until_it_is_back(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Connections are rejected; after the start its topics are back, with their records."""
    topic = cluster.topics.create([cluster.third])
    cluster.connect(cluster.third).produce(topic, b"kept")
    cluster.faults.kill(cluster.third)
    refused = _refused(cluster, cluster.third)
    yield concluded("dead", "connecting has no response", refused=refused)
    cluster.faults.start(cluster.third)
    cluster.wait_until.serving(cluster.third)
    cluster.wait_until.leader(topic, cluster.third)
    again = cluster.connect(cluster.third)
    yield described("back", cluster, topic)
    cluster.wait_until.visible(topic, 1)
    yield fetched("its records", again.fetch(topic, 0), just_started())


@scenario(configs=QUICK_FENCING, needs={Fault.DISCONNECT})
def a_follower_cut_off_from_the_others_leaves_the_isr(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It is fenced, still serves its records to clients, and catches up when it is reconnected."""
    topic = cluster.topics.create()
    leader, cut_off = cluster.connect(cluster.first), cluster.connect(cluster.third)
    leader.produce(topic, b"before")
    cluster.wait(700)
    cut_ms = cluster.faults.disconnect(cluster.third)
    parked = leader.start_produce(Append(topic, 0, batch_of([b"after"])))
    left_ms = cluster.wait_until.isr(topic, cluster.first, cluster.second)
    yield fencing("left", cut_ms, left_ms)
    reply = parked.result()
    yield produced("parked", reply, after(reply, left_ms, since=cut_ms.began_ms))
    yield fetched("what it had", cut_off.fetch(topic, 0), at_once())
    cluster.faults.reconnect(cluster.third)
    cluster.wait_until.isr(topic, *cluster.brokers)
    yield described("reconnected", cluster, topic)


@scenario(configs=QUICK_FENCING, needs={Fault.DISCONNECT})
def a_leader_cut_off_from_the_others_acknowledges_nothing_to_acks_all(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """Clients still reach it: acks=1 is accepted and lost, acks=all times out; another one leads."""
    topic = cluster.topics.create([cluster.second, cluster.first, cluster.third])
    old = cluster.connect(cluster.second)
    old.produce(topic, b"kept")
    cluster.faults.disconnect(cluster.second)
    yield produced("acks=1", old.produce(topic, b"lost", acks=1), at_once())
    reply = old.produce(topic, b"lost too", timeout_ms=1000)
    yield produced("acks=all", reply, at_timeout(1000))
    cluster.wait_until.leader(topic, cluster.first)
    yield described("new leader", cluster, topic)
    new = cluster.connect(cluster.first)
    cluster.wait_until.isr(topic, cluster.first, cluster.third)
    yield produced("at the new leader", new.produce(topic, b"instead"), at_new_leader())
    cluster.faults.reconnect(cluster.second)
    cluster.wait_until.isr(topic, *cluster.brokers)
    yield described("reconnected", cluster, topic)
    yield fetched("what is left", new.fetch(topic, 0), at_once())


@scenario(needs={Fault.DISCONNECT_CLIENTS})
def a_follower_that_no_client_reaches_goes_on_replicating(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The leader does not notice; requests sent to it in that time get their responses afterwards."""
    topic = cluster.topics.create()
    leader, follower = cluster.connect(cluster.first), cluster.connect(cluster.third)
    cluster.faults.disconnect_clients(cluster.third)
    pending = follower.start_fetch(Position(topic))
    yield produced("acks=all", leader.produce(topic, b"a"), at_once())
    cluster.wait(1000)
    yield described("meanwhile", cluster, topic)
    reconnected_ms = cluster.faults.reconnect_clients(cluster.third)
    fetch = pending.result()
    due = after(fetch, reconnected_ms, spread_ms=RETRANSMITTED_WITHIN_MS, reason=RETRANSMITTED)
    yield fetched("from the follower", fetch, due)


@scenario(needs={Fault.DISCONNECT_CLIENTS}, configs=QUICK_FENCING)
def a_leader_that_no_client_reaches_stays_the_leader(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its heartbeats arrive, so no other broker leads; requests reach it after the reconnect."""
    topic = cluster.topics.create([cluster.third, cluster.first, cluster.second])
    old = cluster.connect(cluster.third)
    yield produced("before", old.produce(topic, b"before"), at_once())
    cluster.faults.disconnect_clients(cluster.third)
    cluster.wait(1.5 * SESSION_TIMEOUT_MS)
    yield described("meanwhile", cluster, topic)
    pending = {
        "old connection": old.start_produce(Append(topic, 0, batch_of([b"old"]))),
        "new connection": cluster.connect(cluster.third).start_produce(Append(topic, 0, batch_of([b"new"]))),
    }
    cluster.wait(300)
    reconnected_ms = cluster.faults.reconnect_clients(cluster.third)
    yield from _taken(pending, reconnected_ms, spread_ms=RETRANSMITTED_WITHIN_MS, reason=RETRANSMITTED)
    yield listed("both", old.list_offset(topic, LATEST), at_once())


@scenario(needs={Fault.PAUSE, Fault.DISCONNECT_CLIENTS})
def an_answer_that_cannot_be_delivered_waits_for_the_network(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The produce times out while no client reaches its leader; the record stays in the log."""
    topic = cluster.topics.create([cluster.second, cluster.first, cluster.third])
    leader = cluster.connect(cluster.second)
    cluster.faults.pause(cluster.third)
    pending = leader.start_produce(Append(topic, 0, batch_of([b"a"])), timeout_ms=500)
    cluster.wait(200)
    cluster.faults.disconnect_clients(cluster.second)
    cluster.wait(1000)
    reconnected_ms = cluster.faults.reconnect_clients(cluster.second)
    reply = pending.result()
    due = after(reply, reconnected_ms, spread_ms=RETRANSMITTED_WITHIN_MS, reason=RETRANSMITTED)
    yield produced("timed out", reply, due)
    cluster.faults.resume(cluster.third)
    yield produced("healthy again", leader.produce(topic, b"b"), at_next_fetch())
    yield fetched("what is there", leader.fetch(topic, 0), at_once())


def _taken(
    pending: Mapping[str, Pending[ProduceResponse]], since: Moment, *, spread_ms: float = 0.0, reason: str = ""
) -> Iterator[Observation]:
    """Observe produces that were all due at the same time, in any order of their appends."""
    for step, sent in pending.items():
        reply = sent.result()
        yield Observation(
            step,
            error_code=reply.message.responses[0].partition_responses[0].error_code,
            elapsed_ms=reply.elapsed_ms,
            answered_ms=reply.answered_ms,
            timing=after(reply, since, spread_ms=spread_ms, reason=reason),
        )


def _refused(cluster: ClusterUnderTest, broker: int) -> bool:
    try:
        RawConnection(*cluster.brokers.address(broker)).close()
    except ConnectionRefusedError:
        return True
    return False
