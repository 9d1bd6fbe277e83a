"""Members of the classic protocol in groups of the consumer protocol. Kafka: GroupMetadataManager.

Their requests, and such a group after the loss of its coordinator.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients.consumer_protocol import subscription
from broker_sim_integration.clients.groups import describe_consumer_groups, describe_groups, leave
from broker_sim_integration.observations import untimed
from broker_sim_integration.scenarios.families.groups.support.moving_groups import (
    TARGET_INTERVAL_MS,
    classic_group,
    seen_classic,
    seen_consumer,
    seen_join,
    seen_sync,
    shared_topic,
    subscribed,
)
from broker_sim_integration.scenarios.helpers.coordinators import next_coordinator
from broker_sim_integration.scenarios.helpers.group_configs import GROUP_FAILOVER, LIMITED_GROUPS, QUICK_GROUPS
from broker_sim_integration.scenarios.helpers.groups import ready_group
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.scenarios.helpers.groups import GroupUnderTest

LONG_SESSION_MS: Final = 30_000
REPLICATED: Final = untimed("what a new leader has loaded counts when its followers have fetched")


@scenario(topology="a mixed group of two", configs=QUICK_GROUPS)
def a_classic_member_is_checked_as_in_a_classic_group(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION and INCONSISTENT_GROUP_PROTOCOL, for every API."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    (classic,) = classic_group(group, topic)
    new = group.consumer("new", topics=[topic.name])
    new.join()
    classic.join()
    stranger = group.member(member_id="stranger", generation=classic.generation)
    yield group.seen("a stranger's heartbeat", stranger.heartbeat())
    yield group.seen("a stranger's sync", stranger.sync())
    yield group.seen("a stranger leaves", stranger.leave())
    impostor = group.member(member_id=new.member_id, generation=new.epoch)
    yield group.seen("a new member's classic heartbeat", impostor.heartbeat())
    yield group.seen("a new member's sync", impostor.sync())
    generation = classic.generation
    for step in (-1, 1):
        classic.generation = generation + step
        yield group.seen(f"heartbeat {step:+}", classic.heartbeat())
        yield group.seen(f"sync {step:+}", classic.sync())
    classic.generation = generation
    classic.protocol_name = "roundrobin"
    yield group.seen("sync of another protocol", classic.sync())
    classic.protocol_name, classic.protocol_type = "range", "connect"
    yield group.seen("sync of another type", classic.sync())
    yield seen_join(group, "join of another type", classic.join())
    classic.protocol_type = "consumer"
    classic.protocols = {"roundrobin": subscription([topic.name])}
    yield seen_join(group, "join with another protocol", classic.join())
    other = group.member(protocols={"sticky": subscription([topic.name])})
    yield seen_join(group, "another one with another protocol", other.join())
    classic.protocols = {"range": b"any"}
    yield seen_join(group, "join with what is no subscription", classic.join())
    for version in (0, 3):
        yield group.seen(f"heartbeat v{version}", classic.heartbeat(version=version))
        yield from seen_sync(group, f"sync v{version}", classic.sync(version=version))


@scenario(topology="a mixed group of two static members", configs=QUICK_GROUPS)
def a_static_classic_member_is_fenced_by_its_successor(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """FENCED_INSTANCE_ID for the old member id, UNKNOWN_MEMBER_ID for an unknown instance."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    (classic,) = classic_group(group, topic, static=True)
    new = group.consumer("new", topics=[topic.name])
    new.join()
    successor = group.member(protocols=subscribed(topic), instance_id=classic.instance_id)
    yield seen_join(group, "successor joins", successor.join())
    yield from seen_sync(group, "successor syncs", successor.sync())
    yield group.seen("old heartbeat", classic.heartbeat())
    yield group.seen("old sync", classic.sync())
    yield seen_join(group, "old joins", classic.join())
    yield group.seen("old leaves", classic.leave())
    classic.instance_id = "unknown"
    yield group.seen("unknown heartbeat", classic.heartbeat())
    yield seen_join(group, "unknown joins with an id", classic.join())
    yield seen_consumer(group, "described")


@scenario(topology="a mixed group of three", configs=QUICK_GROUPS)
def members_of_both_protocols_leave_in_one_request(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each entry of the request succeeds or fails alone; without consumer members the group is classic again."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    first, second = classic_group(group, topic, 2, static=True)
    new = group.consumer("new", topics=[topic.name])
    new.join()
    batch = leave(
        group.tool,
        group.name,
        ("", first.instance_id),
        (new.member_id, None),
        ("stranger", None),
        ("stranger", second.instance_id),
        ("", "unknown"),
    )
    yield group.seen("batch", batch)
    yield seen_classic(group, "classic again")
    yield group.seen("gone", first.heartbeat())
    yield group.seen("told to join", second.heartbeat())
    yield seen_join(group, "joins", second.join())


@scenario(topology="a consumer group of at most two", configs=LIMITED_GROUPS)
def a_full_consumer_group_refuses_classic_members(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """GROUP_MAX_SIZE_REACHED for a third member without an id; existing members may rejoin."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    group.consumer("new", topics=[topic.name]).join()
    second = group.with_id(protocols=subscribed(topic))
    cluster.wait(TARGET_INTERVAL_MS)
    yield seen_join(group, "second", second.join())
    yield seen_join(group, "third", group.member(protocols=subscribed(topic)).join())
    yield seen_join(group, "second again", second.join())


@scenario(topology="a mixed group of two", configs=QUICK_GROUPS)
def a_changed_subscription_of_a_classic_member_is_followed(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its topics are those of its last JoinGroup; the consumer member then has the other topic alone."""
    group, topic, other = ready_group(cluster), shared_topic(cluster), shared_topic(cluster)
    (classic,) = classic_group(group, topic)
    new = group.consumer("new", topics=[topic.name, other.name])
    new.join()
    classic.join()
    classic.sync()
    cluster.wait(TARGET_INTERVAL_MS)
    classic.protocols = {"range": subscription([])}
    yield seen_join(group, "wants nothing", classic.join())
    yield from seen_sync(group, "has nothing", classic.sync())
    yield group.seen("new has all", new.heartbeat(owned=True))
    yield seen_consumer(group, "described")


def has_members(count: int, group: GroupUnderTest, client: BrokerClient) -> bool:
    """Whether a broker describes the consumer group with `count` members."""
    described = describe_consumer_groups(client, group.name).message.groups[0]
    return described.error_code == ErrorCode.NONE and len(described.members) == count


def is_stable(group: GroupUnderTest, client: BrokerClient) -> bool:
    """Whether a broker describes the group as a Stable classic group."""
    return describe_groups(client, group.name).message.groups[0].group_state == "Stable"


@scenario(topology="a mixed group of two", configs=GROUP_FAILOVER, needs={Fault.KILL})
def a_mixed_group_moves_to_the_next_coordinator(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The log has members of both protocols with their epochs and partitions; the group continues."""
    group, topic = ready_group(cluster, cluster.second), shared_topic(cluster)
    (classic,) = classic_group(group, topic, session_timeout_ms=LONG_SESSION_MS)
    new = group.consumer("new", topics=[topic.name], instance_id="static")
    new.join()
    yield seen_consumer(group, "before")
    cluster.faults.kill(cluster.second)
    client = next_coordinator(cluster, group, partial(has_members, 2, group))
    group.tool = classic.client = new.client = client
    yield group.seen("new heartbeat", new.heartbeat(), REPLICATED)
    yield seen_consumer(group, "after")
    yield group.seen("classic heartbeat", classic.heartbeat())
    yield seen_join(group, "classic joins", classic.join(), timing=REPLICATED)
    yield from seen_sync(group, "classic syncs", classic.sync())
    yield group.seen("new gets", new.heartbeat(owned=True), REPLICATED)
    yield group.seen("new leaves", new.leave(), REPLICATED)
    yield seen_classic(group, "classic again")
    yield group.seen("told to join", classic.heartbeat())
    cluster.wait_until.brokers(cluster.first, cluster.third)


@scenario(topology="a classic group of one", configs=GROUP_FAILOVER, needs={Fault.KILL})
def a_group_that_went_back_is_classic_for_the_next_coordinator(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The next coordinator loads a classic group of the same generation: the consumer group's records are deleted."""
    group, topic = ready_group(cluster, cluster.second), shared_topic(cluster)
    first, second = classic_group(group, topic, 2, static=True, session_timeout_ms=LONG_SESSION_MS)
    group.consumer("new", topics=[topic.name], instance_id=first.instance_id).join()
    back = group.member(protocols=subscribed(topic), instance_id=first.instance_id, session_timeout_ms=LONG_SESSION_MS)
    yield seen_join(group, "goes back", back.join())
    yield seen_classic(group, "before")
    cluster.faults.kill(cluster.second)
    group.tool = next_coordinator(cluster, group, partial(is_stable, group))
    back.client = second.client = group.tool
    yield seen_classic(group, "after")
    yield group.seen("heartbeat", back.heartbeat(), REPLICATED)
    yield group.seen("the other's", second.heartbeat())
    yield from seen_sync(group, "sync", second.sync())
