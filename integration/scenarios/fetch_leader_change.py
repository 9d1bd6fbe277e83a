"""Requests whose leader moves, stops or dies. Kafka: Partition.makeFollower, DelayedFetch A and E."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.clients import admin
from integration.clients.broker_client import Append, Position, batch_of
from integration.observations import Observation, at_once, at_timeout, on_event
from integration.reference.cluster import Fault
from integration.scenarios.clusters import FENCED_WITHIN_MS, QUICK_FENCING, SESSION_TIMEOUT_MS
from integration.scenarios.displaced import displaced_topic
from integration.scenarios.observe import (
    after,
    answer_or_end,
    described,
    elected,
    fetched,
    listed,
    produced,
)
from integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.stage.stage import Stage

WITHOUT_EPOCH_WAIT_MS = 2500
MOVED_LATE_MS = 500.0


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def a_parked_fetch_whose_leader_moves_away(stage: Stage) -> Iterator[Observation]:
    """Version 10: NOT_LEADER; 12 and 17 with an epoch: FENCED_LEADER_EPOCH; without: it stays."""
    topic = displaced_topic(stage)
    epoch = stage.describe(topic).leader_epoch
    old = stage.anchor
    asked = {
        "version 10": (10, -1),
        "version 10 with an epoch": (10, epoch),
        "version 12 with an epoch": (12, epoch),
        "version 17 with an epoch": (17, epoch),
        "version 12": (12, -1),
        "version 17": (17, -1),
    }
    parked = {
        step: stage.connect(old).start_fetch(
            Position(topic, leader_epoch=stated),
            max_wait_ms=WITHOUT_EPOCH_WAIT_MS,
            version=version,
        )
        for step, (version, stated) in asked.items()
    }
    stage.wait(300)
    election = admin.elect_leader(stage.ask(stage.anchor), topic)
    yield elected("election", election, at_once())
    for step, pending in parked.items():
        reply = pending.result()
        version, stated = asked[step]
        stays = version > 10 and stated < 0
        due = (
            at_timeout(WITHOUT_EPOCH_WAIT_MS)
            if stays
            else after(reply, election, late_ms=MOVED_LATE_MS)
        )
        yield fetched(step, reply, due)
    for version in (10, 12, 17):
        reply = stage.connect(old).fetch(topic, max_wait_ms=700, version=version)
        due = at_once() if version == 10 else at_timeout(700)
        yield fetched(f"afterwards, version {version}", reply, due)
    position = Position(topic, leader_epoch=epoch)
    reply = stage.connect(stage.second).start_fetch(position, max_wait_ms=1000).result()
    yield fetched("the old epoch at the new leader", reply, at_once())


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def a_parked_produce_whose_leader_is_demoted(stage: Stage) -> Iterator[Observation]:
    """NOT_LEADER_OR_FOLLOWER at the change; the record that the new leader has stays."""
    topic = displaced_topic(stage)
    leader = stage.connect(stage.anchor)
    leader.produce(topic, b"before")
    stage.pause(stage.third)
    parked = leader.start_produce(Append(topic, 0, batch_of([b"parked"])))
    stage.wait(300)
    election = admin.elect_leader(stage.ask(stage.anchor), topic)
    yield elected("election", election, at_once())
    reply = parked.result()
    yield produced("parked", reply, after(reply, election, late_ms=MOVED_LATE_MS))
    yield produced("once more at the old leader", leader.produce(topic, b"never"), at_once())
    stage.resume(stage.third)
    stage.until_isr(topic, *stage.brokers)
    new = stage.connect(stage.second)
    stage.until_visible(topic, 2)
    yield fetched("at the new leader", new.fetch(topic, 0), at_once())


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def a_leader_frozen_for_less_than_its_session_keeps_its_partitions(
    stage: Stage,
) -> Iterator[Observation]:
    """What was asked of it meanwhile is answered when it goes on; the leader epoch is the same."""
    topic = stage.topic([stage.second, stage.anchor, stage.third])
    leader, consumer = stage.connect(stage.second), stage.connect(stage.second)
    leader.produce(topic, b"before")
    parked_fetch = consumer.start_fetch(Position(topic, offset=1), max_wait_ms=300)
    stage.wait(100)
    stage.pause(stage.second)
    parked_produce = leader.start_produce(Append(topic, 0, batch_of([b"asked meanwhile"])))
    stage.wait(1000)
    resumed_ms = stage.resume(stage.second)
    fetch, produce = parked_fetch.result(), parked_produce.result()
    yield fetched("fetch", fetch, after(fetch, resumed_ms, late_ms=600))
    yield produced("produce", produce, after(produce, resumed_ms, late_ms=1200))
    yield described("afterwards", stage, topic)


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def a_leader_frozen_beyond_its_session_is_replaced(stage: Stage) -> Iterator[Observation]:
    """The first of the ISR that lives leads with the next epoch; the old one comes back to follow."""
    topic = stage.topic([stage.second, stage.anchor, stage.third])
    leader = stage.connect(stage.second)
    yield produced("before", leader.produce(topic, b"acknowledged"), at_once())
    frozen_ms = stage.pause(stage.second)
    elected_ms = stage.until_leader(topic, stage.anchor)
    due = on_event(SESSION_TIMEOUT_MS, early_ms=600, late_ms=FENCED_WITHIN_MS)
    yield Observation("new leader", elapsed_ms=elected_ms - frozen_ms, timing=due)
    yield described("without the old one", stage, topic)
    new = stage.connect(stage.anchor)
    stage.until_isr(topic, stage.anchor, stage.third)
    yield produced("at the new leader", new.produce(topic, b"later"), at_once(late_ms=1000))
    stage.resume(stage.second)
    stage.until_isr(topic, *stage.brokers)
    yield described("with the old one", stage, topic)
    yield fetched("all", new.fetch(topic, 0), at_once())


@scenario(configs=QUICK_FENCING, needs={Fault.KILL})
def a_killed_leader_closes_its_connections_and_nothing_acknowledged_is_lost(
    stage: Stage,
) -> Iterator[Observation]:
    """It stays in metadata until it is fenced, then another leads; it returns as a follower."""
    topic = stage.topic([stage.second, stage.anchor, stage.third])
    leader, consumer = stage.connect(stage.second), stage.connect(stage.second)
    for value in (b"0", b"1", b"2"):
        leader.produce(topic, value)
    parked = consumer.start_fetch(Position(topic, offset=3), max_wait_ms=20_000)
    stage.wait(100)
    killed_ms = stage.kill(stage.second)
    yield answer_or_end("parked fetch", parked, after(parked, killed_ms, early_ms=500))
    yield described("dead, not fenced", stage, topic)
    elected_ms = stage.until_leader(topic, stage.anchor)
    due = on_event(SESSION_TIMEOUT_MS, early_ms=700, late_ms=FENCED_WITHIN_MS)
    yield Observation("new leader", elapsed_ms=elected_ms - killed_ms, timing=due)
    yield described("fenced", stage, topic)
    new = stage.connect(stage.anchor)
    stage.until_visible(topic, 3)
    yield fetched("all that was acknowledged", new.fetch(topic, 0), at_once())
    yield produced("goes on", new.produce(topic, b"3"), at_once(late_ms=1000))
    stage.start(stage.second)
    stage.until_isr(topic, *stage.brokers)
    yield described("back", stage, topic)
    stage.until_serving(stage.second)
    old = stage.connect(stage.second)
    reply = old.fetch(topic, 0, max_wait_ms=5000, min_bytes=4 * len(batch_of([b"0"])))
    yield fetched("the copy of the old leader", reply)


@scenario(
    topology="1 partition x 2 replicas", configs=QUICK_FENCING, needs={Fault.PAUSE, Fault.KILL}
)
def a_returning_leader_truncates_what_nobody_acknowledged(stage: Stage) -> Iterator[Observation]:
    """A record with acks=1 that only the dead leader had is gone, its offset used again."""
    other = stage.topic([stage.second, stage.third], settled=False)
    topic = stage.topic([stage.second, stage.third])
    leader = stage.connect(stage.second)
    leader.produce(topic, b"kept")
    stage.pause(stage.third)
    # Answers the fetch that the frozen follower still has at the leader, before the record comes.
    leader.produce(other, b"not this one", acks=1)
    yield produced("acks=1", leader.produce(topic, b"lost", acks=1), at_once())
    stage.kill(stage.second)
    stage.resume(stage.third)
    stage.until_leader(topic, stage.third)
    yield described("new leader", stage, topic)
    new = stage.connect(stage.third)
    yield listed("latest", new.list_offset(topic), at_once())
    yield produced("at the new leader", new.produce(topic, b"instead"), at_once(late_ms=1000))
    stage.start(stage.second)
    stage.until_isr(topic, stage.second, stage.third)
    yield described("back", stage, topic)
    stage.until_serving(stage.second)
    old = stage.connect(stage.second)
    reply = old.fetch(topic, 0, max_wait_ms=5000, min_bytes=2 * len(batch_of([b"kept"])))
    yield fetched("the copy of the old leader", reply)


@scenario(
    topology="1 partition x 3 replicas", configs=QUICK_FENCING, needs={Fault.PAUSE, Fault.KILL}
)
def a_parked_produce_whose_leader_is_killed(stage: Stage) -> Iterator[Observation]:
    """The connection ends without an answer; the record lives on where a follower had it."""
    topic = stage.topic([stage.second, stage.anchor, stage.third])
    leader = stage.connect(stage.second)
    leader.produce(topic, b"before")
    stage.pause(stage.third)
    parked = leader.start_produce(Append(topic, 0, batch_of([b"parked"])))
    stage.wait(300)
    killed_ms = stage.kill(stage.second)
    stage.resume(stage.third)
    yield answer_or_end("parked", parked, after(parked, killed_ms, early_ms=500))
    stage.until_leader(topic, stage.anchor)
    stage.until_visible(topic, 2)
    new = stage.connect(stage.anchor)
    yield fetched("at the new leader", new.fetch(topic, 0), at_once())


@scenario(topology="2 topics of 1 partition x 1 replica")
def a_parked_fetch_of_a_topic_that_is_deleted(stage: Stage) -> Iterator[Observation]:
    """It is answered when the broker drops the partition, and the other partition with it."""
    kept, doomed = stage.topic([stage.anchor]), stage.topic([stage.anchor])
    consumers = {version: stage.connect(stage.anchor) for version in (12, 17)}
    parked = {
        version: consumer.start_fetch(
            Position(kept), Position(doomed), max_wait_ms=10_000, version=version
        )
        for version, consumer in consumers.items()
    }
    stage.wait(300)
    deleted_ms = stage.delete(doomed)
    for version, pending in parked.items():
        reply = pending.result()
        due = after(reply, deleted_ms, early_ms=300, late_ms=500)
        yield fetched(f"deleted, version {version}", reply, due, topic=doomed)
        yield fetched(f"kept, version {version}", reply, due, topic=kept)
