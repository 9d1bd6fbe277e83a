"""Elections that somebody asks for. Kafka: ElectLeaders, DelayedElectLeader, KIP-460."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.clients import admin
from integration.observations import at_once
from integration.reference.cluster import Fault
from integration.scenarios.clusters import QUICK_FENCING
from integration.scenarios.displaced import displaced_topic
from integration.scenarios.observe import described, elected, fetched, listed, produced
from integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.clients.topics import Topic
    from integration.observations import Observation
    from integration.stage.stage import Stage

PREFERRED, UNCLEAN = 0, 1


def offline_topic(stage: Stage, *, unclean: bool = False) -> Topic:
    """Return a topic of two replicas whose only in-sync one, ``second``, has just been killed.

    ``third`` lacks the last record and lives.
    """
    enabled = str(unclean).lower()
    replicas = [stage.second, stage.third]
    topic = stage.topic(replicas, unclean_leader_election_enable=enabled)
    leader = stage.connect(stage.second)
    leader.produce(topic, b"both have it")
    stage.pause(stage.third)
    stage.until_isr(topic, stage.second)
    leader.produce(topic, b"only the dead one has it")
    stage.kill(stage.second)
    stage.resume(stage.third)
    stage.until_brokers(stage.anchor, stage.third)
    return topic


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def the_preferred_leader_takes_over_when_asked(stage: Stage) -> Iterator[Observation]:
    """NONE, the first replica leads, its epoch one higher; once more is ELECTION_NOT_NEEDED."""
    topic = displaced_topic(stage)
    yield described("displaced", stage, topic)
    reply = admin.elect_leader(stage.ask(stage.anchor), topic)
    yield elected("asked", reply, at_once())
    stage.until_leader(topic, stage.second)
    yield described("moved", stage, topic)
    new = stage.connect(stage.second)
    yield produced("at the new leader", new.produce(topic, b"a"), at_once(late_ms=1200))
    reply = admin.elect_leader(stage.ask(stage.anchor), topic)
    yield elected("asked again", reply, at_once())


@scenario()
def an_election_that_is_not_needed_says_so(stage: Stage) -> Iterator[Observation]:
    """ELECTION_NOT_NEEDED for preferred and unclean; unknown partitions and types are refused."""
    topic, unknown = stage.topic(), stage.unknown_topic()
    connection = stage.connect(stage.second)
    for kind in (PREFERRED, UNCLEAN):
        reply = admin.elect_leader(connection, topic, election_type=kind)
        yield elected(f"type {kind}", reply, at_once())
        reply = admin.elect_leader(connection, unknown, election_type=kind)
        yield elected(f"type {kind}, unknown topic", reply, at_once())
        reply = admin.elect_leader(connection, topic, partition=9, election_type=kind)
        yield elected(f"type {kind}, unknown partition", reply, at_once())
    yield described("afterwards", stage, topic)


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def a_fenced_preferred_leader_is_not_available(stage: Stage) -> Iterator[Observation]:
    """PREFERRED_LEADER_NOT_AVAILABLE at once while it is frozen."""
    topic = stage.topic([stage.second, stage.anchor, stage.third])
    stage.pause(stage.second)
    stage.until_leader(topic, stage.anchor)
    reply = admin.elect_leader(stage.ask(stage.anchor), topic)
    yield elected("asked", reply, at_once())
    yield described("the same leader", stage, topic)


@scenario(
    topology="1 partition x 2 replicas", configs=QUICK_FENCING, needs={Fault.PAUSE, Fault.KILL}
)
def a_partition_without_an_in_sync_replica_waits_for_it(stage: Stage) -> Iterator[Observation]:
    """No leader, LEADER_NOT_AVAILABLE; when the dead one starts again, nothing is lost."""
    topic = offline_topic(stage)
    stage.until_leader(topic, -1)
    yield described("offline", stage, topic)
    lagging = stage.connect(stage.third)
    yield produced("produce to the lagging one", lagging.produce(topic, b"never"), at_once())
    yield listed("its latest", lagging.list_offset(topic), at_once())
    reply = admin.elect_leader(stage.ask(stage.anchor), topic)
    yield elected("preferred", reply, at_once())
    stage.start(stage.second)
    stage.until_leader(topic, stage.second)
    stage.until_isr(topic, stage.second, stage.third)
    stage.until_serving(stage.second)
    yield described("online", stage, topic)
    yield fetched("all", stage.connect(stage.second).fetch(topic, 0), at_once())


@scenario(
    topology="1 partition x 2 replicas", configs=QUICK_FENCING, needs={Fault.PAUSE, Fault.KILL}
)
def an_unclean_election_when_asked_loses_what_the_dead_leader_had(
    stage: Stage,
) -> Iterator[Observation]:
    """The lagging replica leads; the dead one comes back and truncates."""
    topic = offline_topic(stage)
    stage.until_leader(topic, -1)
    reply = admin.elect_leader(stage.ask(stage.anchor), topic, election_type=UNCLEAN)
    yield elected("asked", reply, at_once())
    stage.until_leader(topic, stage.third)
    yield described("unclean", stage, topic)
    new = stage.connect(stage.third)
    yield listed("latest", new.list_offset(topic), at_once())
    yield produced("goes on", new.produce(topic, b"instead"), at_once())
    stage.start(stage.second)
    stage.until_isr(topic, stage.second, stage.third)
    yield described("both", stage, topic)
    yield fetched("all that is left", new.fetch(topic, 0), at_once())


@scenario(
    topology="1 partition x 2 replicas", configs=QUICK_FENCING, needs={Fault.PAUSE, Fault.KILL}
)
def with_unclean_elections_enabled_the_lagging_replica_leads_by_itself(
    stage: Stage,
) -> Iterator[Observation]:
    """unclean.leader.election.enable=true: no leader is missed for longer than the fencing."""
    topic = offline_topic(stage, unclean=True)
    stage.until_leader(topic, stage.third)
    yield described("unclean", stage, topic)
    new = stage.connect(stage.third)
    yield listed("latest", new.list_offset(topic), at_once())
    yield fetched("what is left", new.fetch(topic, 0), at_once())
