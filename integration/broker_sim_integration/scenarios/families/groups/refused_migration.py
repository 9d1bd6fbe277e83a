"""Groups that keep their protocol: by policy, by size, or because of unreadable member data. Kafka: KIP-848."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.clients.consumer_protocol import assignment
from broker_sim_integration.clients.groups import describe_consumer_groups
from broker_sim_integration.scenarios.families.groups.support.moving_groups import (
    ALL_HAVE_JOINED,
    TARGET_INTERVAL_MS,
    classic_group,
    seen_classic,
    seen_consumer,
    seen_join,
    seen_sync,
    shared_topic,
    subscribed,
)
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.group_configs import LIMITED_GROUPS, NO_MIGRATION, QUICK_GROUPS
from broker_sim_integration.scenarios.helpers.groups import groups_on, ready_group
from broker_sim_integration.scenarios.helpers.observe import concluded
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

UPGRADES_ONLY: Final = QUICK_GROUPS | {"group.consumer.migration.policy": "upgrade"}
DOWNGRADES_ONLY: Final = QUICK_GROUPS | {"group.consumer.migration.policy": "downgrade"}


@scenario(topology="a classic group of one", configs=QUICK_GROUPS)
def a_group_before_its_first_generation_does_not_move(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_SERVER_ERROR, although the parked join completes: its member has to rejoin."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    classic = group.with_id(protocols=subscribed(topic))
    parked = group.parked_join(classic)
    joined = group.consumer("new", topics=[topic.name]).join()
    yield group.seen("new joins", joined)
    reply = classic.joined(parked)
    yield group.seen("parked join", reply, after(reply, joined))
    yield concluded("still classic", state=group.state())


@scenario(topology="3 classic groups", configs=QUICK_GROUPS)
def what_cannot_be_read_keeps_a_group_classic(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """GROUP_ID_NOT_FOUND for malformed subscriptions and assignments, and for user data of an assignor."""
    topic = shared_topic(cluster)
    wrong: dict[str, tuple[dict[str, bytes], bytes]] = {
        "subscription": ({"range": b"any"}, assignment({topic.name: [0]})),
        "assignment": (subscribed(topic), b"any"),
        "user data": (subscribed(topic), assignment({topic.name: [0]})[:-4] + b"\0\0\0\1x"),
    }
    for name, group in zip(wrong, groups_on(cluster, cluster.first, len(wrong)), strict=True):
        protocols, assigned = wrong[name]
        classic = group.with_id(protocols=protocols)
        classic.join()
        classic.sync({classic.member_id: assigned})
        yield group.seen(name, group.consumer("new", topics=[topic.name]).join())
        yield group.seen(f"{name}: goes on", classic.heartbeat())


@scenario(topology="a classic group of one", configs=UPGRADES_ONLY)
def where_only_upgrades_are_allowed_a_group_stays_upgraded(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The last consumer member leaves, and the classic member remains in a consumer group."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    (classic,) = classic_group(group, topic)
    new = group.consumer("new", topics=[topic.name])
    yield group.seen("new joins", new.join())
    classic.join()
    yield group.seen("new leaves", new.leave())
    yield seen_consumer(group, "still of the new protocol")
    yield group.seen("classic heartbeat", classic.heartbeat())
    cluster.wait(TARGET_INTERVAL_MS)
    yield seen_join(group, "classic joins", classic.join())
    yield from seen_sync(group, "classic syncs", classic.sync())
    yield group.seen("classic leaves", classic.leave())
    yield seen_consumer(group, "empty")


@scenario(topology="a classic group, a consumer group", configs=DOWNGRADES_ONLY)
def where_only_downgrades_are_allowed_a_classic_group_stays(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A classic group rejects a consumer member; a consumer group accepts classic members, and becomes classic."""
    classic_one, consumer_one = groups_on(cluster, cluster.first, 2)
    topic = shared_topic(cluster)
    (classic,) = classic_group(classic_one, topic)
    yield classic_one.seen("refused", classic_one.consumer("new", topics=[topic.name]).join())
    yield classic_one.seen("goes on", classic.heartbeat())
    new = consumer_one.consumer("new", topics=[topic.name])
    new.join()
    cluster.wait(TARGET_INTERVAL_MS)
    moved = consumer_one.with_id(protocols=subscribed(topic))
    yield seen_join(consumer_one, "classic joins", moved.join())
    yield consumer_one.seen("new leaves", new.leave())
    yield seen_classic(consumer_one, "classic")
    yield consumer_one.seen("told to join", moved.heartbeat())


@scenario(topology="a consumer group", configs=NO_MIGRATION)
def where_migration_is_disabled_a_consumer_group_stays(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INCONSISTENT_GROUP_PROTOCOL for classic members, as long as the group has members."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    new = group.consumer("new", topics=[topic.name])
    new.join()
    classic = group.member(protocols=subscribed(topic))
    yield seen_join(group, "refused", classic.join())
    yield group.seen("goes on", new.heartbeat())
    new.leave()
    yield seen_join(group, "into the empty group", classic.join())
    group.wait_for_state("Empty")
    yield group.seen("no consumer group", describe_consumer_groups(group.tool, group.name))


@scenario(topology="a classic group of at most two", configs=LIMITED_GROUPS)
def a_full_group_does_not_move_for_a_third_member(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """GROUP_MAX_SIZE_REACHED: the group remains classic, although a parked join completes."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    leader, follower = classic_group(group, topic, 2)
    parked = group.parked_join(leader)
    joined = group.consumer("new", topics=[topic.name]).join()
    yield group.seen("new joins", joined)
    reply = leader.joined(parked)
    yield group.seen("parked join", reply, after(reply, joined))
    yield group.seen("no consumer group", describe_consumer_groups(group.tool, group.name))
    pending = follower.start_join()
    yield seen_join(group, "leader joins", leader.join())
    yield seen_join(group, "follower joins", follower.joined(pending), timing=ALL_HAVE_JOINED)
