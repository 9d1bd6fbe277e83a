"""Elections by ElectLeaders requests. Kafka: ElectLeaders, DelayedElectLeader, KIP-460."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients import admin
from broker_sim_integration.observations import at_once
from broker_sim_integration.scenarios.helpers.broker_configs import QUICK_FENCING
from broker_sim_integration.scenarios.helpers.displaced_leader import topic_with_displaced_leader
from broker_sim_integration.scenarios.helpers.mechanisms import at_new_leader
from broker_sim_integration.scenarios.helpers.observe import described, elected, fetched, listed, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

PREFERRED, UNCLEAN = 0, 1


def offline_topic(cluster: ClusterUnderTest, *, unclean: bool = False) -> Topic:
    """Return a topic of two replicas whose only in-sync replica, on `second`, has just been killed.

    `third` is alive and lacks the last record.
    """
    enabled = str(unclean).lower()
    replicas = [cluster.second, cluster.third]
    topic = cluster.topics.create(replicas, unclean_leader_election_enable=enabled)
    leader = cluster.connect(cluster.second)
    leader.produce(topic, b"both have it")
    cluster.faults.pause(cluster.third)
    cluster.wait_until.isr(topic, cluster.second)
    leader.produce(topic, b"only the dead one has it")
    cluster.faults.kill(cluster.second)
    cluster.faults.resume(cluster.third)
    cluster.wait_until.brokers(cluster.first, cluster.third)
    return topic


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def the_preferred_leader_takes_over_when_asked(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """NONE; the first replica leads in the next epoch; a second request gets ELECTION_NOT_NEEDED."""
    topic = topic_with_displaced_leader(cluster)
    yield described("displaced", cluster, topic)
    reply = admin.elect_leader(cluster.clients.ask(cluster.first), topic)
    yield elected("asked", reply, at_once())
    cluster.wait_until.leader(topic, cluster.second)
    yield described("moved", cluster, topic)
    new = cluster.connect(cluster.second)
    yield produced("at the new leader", new.produce(topic, b"a"), at_new_leader())
    reply = admin.elect_leader(cluster.clients.ask(cluster.first), topic)
    yield elected("asked again", reply, at_once())


@scenario()
def an_election_that_is_not_needed_says_so(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """ELECTION_NOT_NEEDED for preferred and unclean elections; unknown partitions get an error."""
    topic, unknown = cluster.topics.create(), cluster.topics.unknown()
    connection = cluster.connect(cluster.second)
    for kind in (PREFERRED, UNCLEAN):
        reply = admin.elect_leader(connection, topic, election_type=kind)
        yield elected(f"type {kind}", reply, at_once())
        reply = admin.elect_leader(connection, unknown, election_type=kind)
        yield elected(f"type {kind}, unknown topic", reply, at_once())
        reply = admin.elect_leader(connection, topic, partition=9, election_type=kind)
        yield elected(f"type {kind}, unknown partition", reply, at_once())
    yield described("afterwards", cluster, topic)


@scenario(configs=QUICK_FENCING, needs={Fault.PAUSE})
def a_fenced_preferred_leader_is_not_available(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """PREFERRED_LEADER_NOT_AVAILABLE at once while it is paused."""
    topic = cluster.topics.create([cluster.second, cluster.first, cluster.third])
    cluster.faults.pause(cluster.second)
    cluster.wait_until.leader(topic, cluster.first)
    reply = admin.elect_leader(cluster.clients.ask(cluster.first), topic)
    yield elected("asked", reply, at_once())
    yield described("the same leader", cluster, topic)


@scenario(topology="1 partition x 2 replicas", configs=QUICK_FENCING, needs={Fault.PAUSE, Fault.KILL})
def a_partition_without_an_in_sync_replica_waits_for_it(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """No leader, LEADER_NOT_AVAILABLE; when the killed broker is started again, no record is lost."""
    topic = offline_topic(cluster)
    cluster.wait_until.leader(topic, -1)
    yield described("offline", cluster, topic)
    lagging = cluster.connect(cluster.third)
    yield produced("produce to the lagging one", lagging.produce(topic, b"never"), at_once())
    yield listed("its latest", lagging.list_offset(topic), at_once())
    reply = admin.elect_leader(cluster.clients.ask(cluster.first), topic)
    yield elected("preferred", reply, at_once())
    cluster.faults.start(cluster.second)
    cluster.wait_until.leader(topic, cluster.second)
    cluster.wait_until.isr(topic, cluster.second, cluster.third)
    cluster.wait_until.serving(cluster.second)
    yield described("online", cluster, topic)
    yield fetched("all", cluster.connect(cluster.second).fetch(topic, 0), at_once())


@scenario(topology="1 partition x 2 replicas", configs=QUICK_FENCING, needs={Fault.PAUSE, Fault.KILL})
def an_unclean_election_when_asked_loses_what_the_dead_leader_had(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The lagging replica leads; the killed one is started again and truncates its log."""
    topic = offline_topic(cluster)
    cluster.wait_until.leader(topic, -1)
    reply = admin.elect_leader(cluster.clients.ask(cluster.first), topic, election_type=UNCLEAN)
    yield elected("asked", reply, at_once())
    cluster.wait_until.leader(topic, cluster.third)
    yield described("unclean", cluster, topic)
    new = cluster.connect(cluster.third)
    yield listed("latest", new.list_offset(topic), at_once())
    yield produced("goes on", new.produce(topic, b"instead"), at_once())
    cluster.faults.start(cluster.second)
    cluster.wait_until.isr(topic, cluster.second, cluster.third)
    yield described("both", cluster, topic)
    yield fetched("all that is left", new.fetch(topic, 0), at_once())


@scenario(topology="1 partition x 2 replicas", configs=QUICK_FENCING, needs={Fault.PAUSE, Fault.KILL})
def with_unclean_elections_enabled_the_lagging_replica_leads_by_itself(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """unclean.leader.election.enable=true: it leads as soon as the killed leader is fenced."""
    topic = offline_topic(cluster, unclean=True)
    cluster.wait_until.leader(topic, cluster.third)
    yield described("unclean", cluster, topic)
    new = cluster.connect(cluster.third)
    yield listed("latest", new.list_offset(topic), at_once())
    yield fetched("what is left", new.fetch(topic, 0), at_once())
