"""Clients and brokers that go away. Kafka: SocketServer, and what the purgatory keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.clients.broker_client import LATEST, Append, Position, batch_of
from integration.clients.raw_client import RawConnection
from integration.observations import Observation, at_once, at_timeout, on_event
from integration.reference.cluster import Fault
from integration.scenarios.clusters import FENCED_WITHIN_MS, QUICK_FENCING, SESSION_TIMEOUT_MS
from integration.scenarios.observe import after, described, fetched, listed, produced
from integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker_sim.protocol.messages import ProduceResponse
    from integration.clients.raw_client import Pending
    from integration.stage.stage import Stage

CONNECTIONS = 50
RETRANSMITTED_WITHIN_MS = 1500
"""What TCP sent in vain it sends again, after pauses that double; Docker's proxy is in between."""
ONCE_MENDED = {"early_ms": 500, "late_ms": RETRANSMITTED_WITHIN_MS}
"""The network is whole somewhat before Docker says so."""


@scenario(needs={Fault.PAUSE})
def a_client_that_leaves_does_not_take_its_parked_produce_along(
    stage: Stage,
) -> Iterator[Observation]:
    """The record was appended and becomes visible; what was pipelined behind it is not served."""
    topic = stage.topic()
    leaver, observer = stage.connect(stage.anchor), stage.connect(stage.anchor)
    stage.pause(stage.third)
    for value in (b"parked", b"behind"):
        leaver.start_produce(Append(topic, 0, batch_of([value])), timeout_ms=700)
    stage.wait(300)
    leaver.close()
    yield produced("other client", observer.produce(topic, b"other", acks=1), at_once())
    stage.wait(800)
    stage.resume(stage.third)
    yield produced("healthy again", observer.produce(topic, b"last"), at_once(late_ms=1500))
    yield fetched("what is there", observer.fetch(topic, 0), at_once())


@scenario(topology="1 partition x 1 replica")
def a_client_that_leaves_a_parked_fetch_disturbs_nobody(stage: Stage) -> Iterator[Observation]:
    """The next produce and the fetches of others are as if it had never been there."""
    topic = stage.topic([stage.anchor])
    leaver, stayer = stage.connect(stage.anchor), stage.connect(stage.anchor)
    leader = stage.connect(stage.anchor)
    leaver.start_fetch(Position(topic), max_wait_ms=10_000)
    parked = stayer.start_fetch(Position(topic), max_wait_ms=10_000)
    stage.wait(200)
    leaver.close()
    stage.wait(200)
    reply = leader.produce(topic, b"a")
    yield produced("produce", reply, at_once())
    fetch = parked.result()
    yield fetched("who stayed", fetch, after(fetch, reply))


@scenario(topology="1 partition x 1 replica")
def fifty_parked_fetches_on_fifty_connections(stage: Stage) -> Iterator[Observation]:
    """All time out together, then all are woken together."""
    topic = stage.topic([stage.anchor])
    consumers = [stage.connect(stage.anchor) for _ in range(CONNECTIONS)]
    parked = [consumer.start_fetch(Position(topic), max_wait_ms=800) for consumer in consumers]
    for attempt, pending in enumerate(parked, 1):
        yield fetched("timed out", pending.result(), at_timeout(800), attempt=attempt)
    parked = [consumer.start_fetch(Position(topic), max_wait_ms=9000) for consumer in consumers]
    stage.wait(300)
    reply = stage.connect(stage.anchor).produce(topic, b"a")
    for attempt, pending in enumerate(parked, 1):
        fetch = pending.result()
        yield fetched("woken", fetch, after(fetch, reply), attempt=attempt)


@scenario(needs={Fault.PAUSE})
def a_frozen_broker_accepts_connections_and_answers_when_it_goes_on(
    stage: Stage,
) -> Iterator[Observation]:
    """A request that was sent meanwhile, on an old or on a new connection, is served then."""
    topic = stage.topic([stage.third])
    old = stage.connect(stage.third)
    old.produce(topic, b"before")
    stage.pause(stage.third)
    new = stage.connect(stage.third)
    pending = {
        "old connection": old.start_produce(Append(topic, 0, batch_of([b"old"])), acks=1),
        "new connection": new.start_produce(Append(topic, 0, batch_of([b"old"])), acks=1),
    }
    stage.wait(500)
    resumed_ms = stage.resume(stage.third)
    yield from _taken(pending, resumed_ms, late_ms=500)
    yield listed("both", old.list_offset(topic, LATEST), at_once())


@scenario(needs={Fault.KILL}, configs=QUICK_FENCING)
def a_killed_broker_refuses_connections_until_it_is_back(stage: Stage) -> Iterator[Observation]:
    """Refused, not ignored; after the start its topics are there again, with their records."""
    topic = stage.topic([stage.third])
    stage.connect(stage.third).produce(topic, b"kept")
    stage.kill(stage.third)
    yield Observation("dead", fields={"refused": _refused(stage, stage.third)})
    stage.start(stage.third)
    stage.until_serving(stage.third)
    stage.until_leader(topic, stage.third)
    again = stage.connect(stage.third)
    yield described("back", stage, topic)
    stage.until_visible(topic, 1)
    yield fetched("its records", again.fetch(topic, 0), at_once())


@scenario(configs=QUICK_FENCING, needs={Fault.DISCONNECT})
def a_follower_cut_off_from_the_others_leaves_the_isr(stage: Stage) -> Iterator[Observation]:
    """It is fenced, still answers clients with what it had, and catches up when reconnected."""
    topic = stage.topic()
    leader, cut_off = stage.connect(stage.anchor), stage.connect(stage.third)
    leader.produce(topic, b"before")
    stage.wait(700)
    cut_ms = stage.disconnect(stage.third)
    parked = leader.start_produce(Append(topic, 0, batch_of([b"after"])))
    left_ms = stage.until_isr(topic, stage.anchor, stage.second)
    due = on_event(SESSION_TIMEOUT_MS, early_ms=700, late_ms=FENCED_WITHIN_MS)
    yield Observation("left", elapsed_ms=left_ms - cut_ms, timing=due)
    reply = parked.result()
    yield produced("parked", reply, after(reply, left_ms, early_ms=300))
    yield fetched("what it had", cut_off.fetch(topic, 0), at_once())
    stage.reconnect(stage.third)
    stage.until_isr(topic, *stage.brokers)
    yield described("reconnected", stage, topic)


@scenario(configs=QUICK_FENCING, needs={Fault.DISCONNECT})
def a_leader_cut_off_from_the_others_acknowledges_nothing_to_acks_all(
    stage: Stage,
) -> Iterator[Observation]:
    """Clients still reach it: acks=1 is taken and lost, acks=all times out; another one leads."""
    topic = stage.topic([stage.second, stage.anchor, stage.third])
    old = stage.connect(stage.second)
    old.produce(topic, b"kept")
    stage.disconnect(stage.second)
    yield produced("acks=1", old.produce(topic, b"lost", acks=1), at_once())
    reply = old.produce(topic, b"lost too", timeout_ms=1000)
    yield produced("acks=all", reply, at_timeout(1000))
    stage.until_leader(topic, stage.anchor)
    yield described("new leader", stage, topic)
    new = stage.connect(stage.anchor)
    stage.until_isr(topic, stage.anchor, stage.third)
    yield produced("at the new leader", new.produce(topic, b"instead"), at_once(late_ms=1200))
    stage.reconnect(stage.second)
    stage.until_isr(topic, *stage.brokers)
    yield described("reconnected", stage, topic)
    yield fetched("what is left", new.fetch(topic, 0), at_once())


@scenario(needs={Fault.DISCONNECT_CLIENTS})
def a_follower_that_no_client_reaches_goes_on_replicating(stage: Stage) -> Iterator[Observation]:
    """Nothing of it is seen at the leader; what it was asked meanwhile it answers afterwards."""
    topic = stage.topic()
    leader, follower = stage.connect(stage.anchor), stage.connect(stage.third)
    stage.disconnect_clients(stage.third)
    pending = follower.start_fetch(Position(topic))
    yield produced("acks=all", leader.produce(topic, b"a"), at_once())
    stage.wait(1000)
    yield described("meanwhile", stage, topic)
    mended_ms = stage.reconnect_clients(stage.third)
    fetch = pending.result()
    due = after(fetch, mended_ms, **ONCE_MENDED)
    yield fetched("from the follower", fetch, due)


@scenario(needs={Fault.DISCONNECT_CLIENTS}, configs=QUICK_FENCING)
def a_leader_that_no_client_reaches_stays_the_leader(stage: Stage) -> Iterator[Observation]:
    """Its heartbeats arrive, so nobody else leads; the requests reach it when the way is free."""
    topic = stage.topic([stage.third, stage.anchor, stage.second])
    old = stage.connect(stage.third)
    yield produced("before", old.produce(topic, b"before"), at_once())
    stage.disconnect_clients(stage.third)
    stage.wait(SESSION_TIMEOUT_MS + FENCED_WITHIN_MS)
    yield described("meanwhile", stage, topic)
    pending = {
        "old connection": old.start_produce(Append(topic, 0, batch_of([b"old"]))),
        "new connection": stage.connect(stage.third).start_produce(
            Append(topic, 0, batch_of([b"new"]))
        ),
    }
    stage.wait(300)
    mended_ms = stage.reconnect_clients(stage.third)
    yield from _taken(pending, mended_ms, **ONCE_MENDED)
    yield listed("both", old.list_offset(topic, LATEST), at_once())


@scenario(needs={Fault.PAUSE, Fault.DISCONNECT_CLIENTS})
def an_answer_that_cannot_be_delivered_waits_for_the_network(
    stage: Stage,
) -> Iterator[Observation]:
    """The produce times out while no client reaches its leader; the record stays in the log."""
    topic = stage.topic([stage.second, stage.anchor, stage.third])
    leader = stage.connect(stage.second)
    stage.pause(stage.third)
    pending = leader.start_produce(Append(topic, 0, batch_of([b"a"])), timeout_ms=500)
    stage.wait(200)
    stage.disconnect_clients(stage.second)
    stage.wait(1000)
    mended_ms = stage.reconnect_clients(stage.second)
    reply = pending.result()
    due = after(reply, mended_ms, **ONCE_MENDED)
    yield produced("timed out", reply, due)
    stage.resume(stage.third)
    yield produced("healthy again", leader.produce(topic, b"b"), at_once(late_ms=1500))
    yield fetched("what is there", leader.fetch(topic, 0), at_once())


def _taken(
    pending: Mapping[str, Pending[ProduceResponse]], since_ms: float, **window: float
) -> Iterator[Observation]:
    """Observe produces that were due at one moment, in whatever order they were appended."""
    for step, sent in pending.items():
        reply = sent.result()
        yield Observation(
            step,
            error_code=reply.message.responses[0].partition_responses[0].error_code,
            elapsed_ms=reply.elapsed_ms,
            timing=after(reply, since_ms, **window),
        )


def _refused(stage: Stage, broker: int) -> bool:
    try:
        RawConnection(*stage.address(broker)).close()
    except ConnectionRefusedError:
        return True
    return False
