"""Groups with members that move between the classic and the consumer protocol. Kafka: GroupMetadataManager, KIP-848."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim_integration.clients.consumer_protocol import subscription
from broker_sim_integration.clients.groups import (
    Offset,
    commit,
    committed,
    describe_consumer_groups,
    describe_groups,
    list_groups,
)
from broker_sim_integration.scenarios.families.groups.support.moving_groups import (
    ALL_HAVE_JOINED,
    TARGET_INTERVAL_MS,
    classic_group,
    seen_classic,
    seen_consumer,
    seen_join,
    seen_sync,
    shared_topic,
    shares,
    subscribed,
)
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.group_configs import QUICK_GROUPS
from broker_sim_integration.scenarios.helpers.groups import groups_on, ready_group
from broker_sim_integration.scenarios.helpers.observe import concluded
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation


@scenario(topology="a classic group of one, 6 partitions", configs=QUICK_GROUPS)
def a_group_moves_to_the_new_protocol_and_back(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The generation continues as the epoch, members keep their partitions and offsets."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    (classic,) = classic_group(group, topic)
    classic.commit(Offset(topic, 0, 42))
    yield seen_classic(group, "before")
    new = group.consumer("new", topics=[topic.name])
    yield group.seen("new joins", new.join())
    yield seen_consumer(group, "mixed")
    yield group.seen("as a classic one", describe_groups(group.tool, group.name))
    yield group.seen("classic heartbeat", classic.heartbeat())
    yield group.seen("classic commits", classic.commit(Offset(topic, 0, 43)))
    yield seen_join(group, "classic joins", classic.join())
    yield from seen_sync(group, "classic syncs", classic.sync())
    yield group.seen("classic heartbeat again", classic.heartbeat())
    yield group.seen("new gets", new.heartbeat(owned=True))
    yield group.seen("new has", new.heartbeat(owned=True))
    yield seen_consumer(group, "both have")
    yield group.seen("new leaves", new.leave())
    yield seen_classic(group, "classic again")
    yield group.seen("no consumer group", describe_consumer_groups(group.tool, group.name))
    yield group.seen("told to join", classic.heartbeat())
    yield seen_join(group, "joins", classic.join())
    yield from seen_sync(group, "assigns", classic.sync(shares(topic, [classic])))
    yield group.seen("offsets", committed(group.tool, group.name, {topic: [0]}))


@scenario(topology="a classic group of one, 6 partitions", configs=QUICK_GROUPS)
def a_cooperative_member_gives_up_what_it_has_to(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It joins with its partitions, its sync keeps some of them, and it rejoins when it has revoked the others."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    (classic,) = classic_group(group, topic, protocols=subscribed(topic, range(6)))
    new = group.consumer("new", topics=[topic.name])
    new.join()
    yield group.seen("told to join", classic.heartbeat())
    yield seen_join(group, "joins with all", classic.join())
    yield from seen_sync(group, "keeps", classic.sync())
    yield seen_consumer(group, "has to give up")
    yield group.seen("told again", classic.heartbeat())
    yield group.seen("new waits", new.heartbeat(owned=True))
    classic.protocols = subscribed(topic, range(3))
    yield seen_join(group, "has given up", classic.join())
    yield from seen_sync(group, "has", classic.sync())
    yield group.seen("nothing new", classic.heartbeat())
    yield group.seen("new gets", new.heartbeat(owned=True))
    yield seen_consumer(group, "stable")


@scenario(topology="a consumer group of one, 6 partitions", configs=QUICK_GROUPS)
def a_classic_member_joins_a_group_of_the_new_protocol(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It gets a member id, then an epoch; it rejoins when the other member has revoked partitions."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    new = group.consumer("new", topics=[topic.name])
    new.join()
    cluster.wait(TARGET_INTERVAL_MS)
    classic = group.member(protocols=subscribed(topic))
    yield seen_join(group, "without an id", classic.join())
    yield seen_join(group, "joins", classic.join())
    yield from seen_sync(group, "syncs", classic.sync())
    yield group.seen("waits", classic.heartbeat())
    yield group.seen("new is told", new.heartbeat(owned=True))
    yield group.seen("new has given up", new.heartbeat(owned=True))
    yield group.seen("told to join", classic.heartbeat())
    yield seen_join(group, "joins again", classic.join())
    yield from seen_sync(group, "gets", classic.sync())
    yield seen_consumer(group, "stable")
    old = group.member(protocols=subscribed(topic))
    cluster.wait(TARGET_INTERVAL_MS)
    yield seen_join(group, "version 3 needs no id", old.join(version=3))
    yield group.seen("it leaves", old.leave())
    listed = [
        [found.protocol_type, found.group_type]
        for found in list_groups(group.tool).message.groups
        if found.group_id == group.name
    ]
    yield concluded("listed", groups=listed)


@scenario(topology="two classic groups of two, 6 partitions", configs=QUICK_GROUPS)
def who_waits_in_a_rebalance_is_told_to_join_the_moved_group(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A parked join and a parked sync get REBALANCE_IN_PROGRESS with the member's id."""
    joining, syncing = groups_on(cluster, cluster.first, 2)
    topic = shared_topic(cluster)
    for group in (joining, syncing):
        leader, follower = classic_group(group, topic, 2)
        parked = group.parked_join(leader)
        waiting: Any = parked
        if group is syncing:
            follower.join()
            leader.joined(parked)
            waiting = follower.start_sync()
        cluster.wait(TARGET_INTERVAL_MS / 10)
        joined = group.consumer("new", topics=[topic.name]).join()
        reply = waiting.result()
        name = "join" if group is joining else "sync"
        yield group.seen(f"{name}: new joins", joined)
        yield group.seen(f"{name}: ends", reply, after(reply, joined))
        yield seen_consumer(group, f"{name}: mixed")
        yield group.seen(f"{name}: leader's heartbeat", leader.heartbeat())
        yield seen_join(group, f"{name}: leader joins", leader.join())


@scenario(topology="a classic group of two static members, 6 partitions", configs=QUICK_GROUPS)
def static_members_change_their_protocol_one_by_one(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each successor gets the partitions of its instance at once; the last one completes the migration."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    first, second = classic_group(group, topic, 2, static=True)
    upgraded = group.consumer("new", topics=[topic.name], instance_id=first.instance_id)
    yield group.seen("the first upgrades", upgraded.join())
    yield group.seen("its former self", first.heartbeat())
    yield group.seen("the other", second.heartbeat())
    yield seen_consumer(group, "mixed")
    cluster.wait(TARGET_INTERVAL_MS)
    last = group.consumer("last", topics=[topic.name], instance_id=second.instance_id)
    yield group.seen("the second upgrades", last.join())
    yield seen_consumer(group, "upgraded")
    back = group.member(protocols=subscribed(topic), instance_id=second.instance_id)
    yield seen_join(group, "the second goes back", back.join())
    yield from seen_sync(group, "it syncs", back.sync())
    yield group.seen("fenced", last.heartbeat(owned=True))
    yield group.seen("the first goes on", upgraded.heartbeat(owned=True))
    leader = group.member(protocols=subscribed(topic), instance_id=first.instance_id)
    yield seen_join(group, "the first goes back", leader.join())
    yield seen_classic(group, "classic again")
    yield group.seen("its heartbeat", leader.heartbeat())
    yield group.seen("the other's", back.heartbeat())
    yield from seen_sync(group, "its sync", leader.sync())
    yield group.seen("commits", leader.commit(Offset(topic, 0, 1)))


@scenario(topology="a mixed group of two static members", configs=QUICK_GROUPS)
def the_last_static_member_goes_back_with_another_subscription(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The classic group then has stale assignments, so it starts with a rebalance."""
    group, topic, other = ready_group(cluster), shared_topic(cluster), shared_topic(cluster)
    first, second = classic_group(group, topic, 2, static=True)
    group.consumer("new", topics=[topic.name], instance_id=first.instance_id).join()
    second.join()
    second.sync()
    back = group.member(protocols={"range": subscription([topic.name, other.name])}, instance_id=first.instance_id)
    yield seen_join(group, "goes back", back.join())
    yield seen_classic(group, "classic again")
    yield group.seen("the other's heartbeat", second.heartbeat())
    pending = second.start_join()
    yield seen_join(group, "joins", back.join())
    yield seen_join(group, "the other joins", second.joined(pending), timing=ALL_HAVE_JOINED)


@scenario(topology="a mixed group of two", configs=QUICK_GROUPS)
def a_tool_commits_only_for_an_empty_group(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_MEMBER_ID while a group has members of either protocol; each member commits in its own epoch."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    (classic,) = classic_group(group, topic)
    new = group.consumer("new", topics=[topic.name])
    new.join()
    yield group.seen("tool", commit(group.tool, group.name, Offset(topic, 0, 1)))
    generation = classic.generation
    for step in (-1, 0, 1):
        classic.generation = generation + step
        for version in (8, 9):
            reply = classic.commit(Offset(topic, 0, 1), version=version)
            yield group.seen(f"classic {step:+} v{version}", reply)
    yield group.seen("new", new.commit(Offset(topic, 1, 1)))
    classic.generation = generation
    classic.leave()
    new.leave()
    yield group.seen("tool again", commit(group.tool, group.name, Offset(topic, 0, 2)))
