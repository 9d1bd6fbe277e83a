"""The topics of streams groups: missing, created and mismatched ones. Kafka: InternalTopicManager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.scenarios.families.streams.support.streams_configs import STREAMS_GROUPS
from broker_sim_integration.scenarios.families.streams.support.streams_group_under_test import streams_groups_on
from broker_sim_integration.scenarios.families.streams.support.topologies import internal, subtopology
from broker_sim_integration.scenarios.helpers.publication import Publication
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

MISSING_INTERNAL_TOPICS: Final = 3
TOO_MANY_REPLICAS: Final = 7


@scenario(topology="a streams group, 2 subtopologies", configs=STREAMS_GROUPS)
def internal_topics_of_a_streams_group_are_created(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The broker creates them with partition counts that follow from the source topics; standby tasks follow."""
    (group,) = streams_groups_on(cluster)
    topic = cluster.topics.create([cluster.first], partitions=3)
    repartition, changelog = (cluster.topics.name(name) for name in ("repartition", "changelog"))
    parts = (
        subtopology("0", topic.name, sinks=[repartition]),
        subtopology(
            "1",
            reads=[internal(repartition, configs={"segment.bytes": "1048576"})],
            keeps=[internal(changelog, configs={"cleanup.policy": "compact"})],
        ),
    )
    first, second = (group.streams_member(name, *parts) for name in ("first", "second"))
    yield group.seen("joins", first.join())
    yield group.seen("described", group.described())
    group.assign(first)
    yield group.seen("created", group.described())
    yield group.seen("second joins", second.join())
    for number in range(3):
        first.heartbeat()
        yield group.seen(f"second, heartbeat {number + 1}", second.heartbeat())
    yield group.seen("described with two", group.described())


@scenario(topology="streams groups", configs=STREAMS_GROUPS)
def topics_that_do_not_fit_stop_a_streams_group(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """MISSING_SOURCE_TOPICS and INCORRECTLY_PARTITIONED_TOPICS; the group stays NotReady until they are corrected."""
    missing, uneven, wrong = streams_groups_on(cluster, 3)
    three, two = (cluster.topics.create([cluster.first], partitions=number) for number in (3, 2))
    unknown = cluster.topics.unknown()
    member = missing.streams_member("first", subtopology("0", unknown.name))
    yield missing.seen("missing", member.join())
    yield missing.seen("described", missing.described())
    yield missing.listed("listed by the name of its state", states=["NotReady"])
    yield missing.listed("listed by the filter of its state", states=["not_ready"])
    together = subtopology("0", three.name, two.name, copartitioned=[0, 1])
    yield uneven.seen("uneven", uneven.streams_member("first", together).join())
    keeps = subtopology("0", three.name, keeps=[internal(two.name)])
    yield wrong.seen("wrong number", wrong.streams_member("first", keeps).join())
    yield wrong.seen("described with the wrong number", wrong.described())


@scenario(topology="a streams group", configs=STREAMS_GROUPS)
def a_deleted_topic_stops_a_streams_group(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its tasks are revoked with the next heartbeat."""
    (group,) = streams_groups_on(cluster)
    topic = cluster.topics.create([cluster.first], partitions=2)
    member = group.begin(topic)
    yield group.seen("described", group.described())
    cluster.topics.delete(topic)
    Publication(cluster).wait()
    yield group.seen("deleted", member.heartbeat())
    yield group.seen("nothing is left", member.heartbeat())
    yield group.seen("described without", group.described())


@scenario(topology="a streams group", configs=STREAMS_GROUPS)
def a_member_is_told_why_an_internal_topic_is_missing(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The heartbeat after the failed creation returns the reason; for two intervals the creation is not retried."""
    (group,) = streams_groups_on(cluster)
    topic = cluster.topics.create([cluster.first])
    changelog = internal(cluster.topics.name("changelog"), replicas=TOO_MANY_REPLICAS)
    member = group.streams_member("first", subtopology("0", topic.name, keeps=[changelog]))
    yield group.seen("joins", member.join())

    def is_told() -> bool:
        statuses = member.heartbeat().message.status or ()
        return any("failed" in status.status_detail for status in statuses)

    cluster.wait_until(is_told, "the failure is told")
    yield group.seen("told", member.heartbeat())
