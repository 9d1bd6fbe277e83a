"""Static members, which come back without a rebalance. Kafka: KIP-345, KIP-814, GroupMetadataManager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.clients.consumer_protocol import subscription
from broker_sim_integration.clients.groups import Offset, describe_groups, leave
from broker_sim_integration.observations import untimed
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.group_configs import QUICK_GROUPS
from broker_sim_integration.scenarios.helpers.groups import form, ready_group
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

SESSION_MS: Final = 1000
LAST_JOINS: Final = untimed("when the last member has joined")


@scenario(topology="a group of two static members", configs=QUICK_GROUPS)
def a_static_member_comes_back_without_a_rebalance(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It gets a new member id and the same assignment; the generation stays the same."""
    group = ready_group(cluster)
    ((leader, follower),) = form([group], 2, static=True)
    follower.member_id = ""
    yield group.seen("follower comes back", follower.join())
    yield group.seen("its sync", follower.sync())
    yield group.seen("leader's heartbeat", leader.heartbeat())
    leader.member_id = ""
    yield group.seen("leader comes back", leader.join())
    yield group.seen("leader's sync", leader.sync())
    yield group.seen("described", describe_groups(group.tool, group.name))
    leader.member_id = ""
    yield group.seen("leader, old version", leader.join(5))


@scenario(topology="a group of a static member", configs=QUICK_GROUPS)
def the_old_id_of_a_static_member_is_fenced(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """FENCED_INSTANCE_ID for every request with the predecessor's member id."""
    group = ready_group(cluster)
    topic = cluster.topics.create([cluster.first])
    ((member,),) = form([group], static=True)
    old = group.member(
        member_id=member.member_id, instance_id=member.instance_id, generation=member.generation, protocol_name="range"
    )
    member.member_id = ""
    member.join()
    member.sync({member.member_id: b"again"})
    yield group.seen("heartbeat", old.heartbeat())
    yield group.seen("sync", old.sync())
    yield group.seen("commit", old.commit(Offset(topic, 0, 1)))
    yield group.seen("join", old.join())
    yield group.seen("leave", old.leave())
    stranger = group.member(member_id="nobody", instance_id="unknown", generation=1, protocol_name="range")
    yield group.seen("unknown instance: heartbeat", stranger.heartbeat())
    yield group.seen("unknown instance: join", stranger.join())
    yield group.seen("unknown instance: leave", stranger.leave())
    yield group.seen("the new one", member.heartbeat())


@scenario(topology="a group of two static members", configs=QUICK_GROUPS)
def a_static_member_rebalances_only_for_another_protocol(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Other metadata is stored without a rebalance; if it changes the chosen protocol, all members rejoin."""
    group = ready_group(cluster)
    protocols = {"range": subscription(["any"]), "other": subscription(["any"])}
    ((leader, follower),) = form([group], 2, static=True, protocols=protocols)
    follower.member_id = ""
    follower.protocols = protocols | {"range": subscription(["any"], user_data=b"changed")}
    yield group.seen("other metadata", follower.join())
    yield group.seen("leader's heartbeat", leader.heartbeat())
    yield group.seen("described", describe_groups(group.tool, group.name))
    follower.member_id = ""
    follower.protocols = {"other": subscription(["any"])}
    parked = group.parked_join(follower)
    yield group.seen("leader's heartbeat then", leader.heartbeat())
    yield group.seen("leader joins", leader.join())
    yield group.seen("follower joins", follower.joined(parked), LAST_JOINS)


@scenario(topology="a group of two static members", configs=QUICK_GROUPS)
def a_parked_static_member_is_fenced_by_its_successor(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The parked join gets FENCED_INSTANCE_ID when another member joins with the same instance id."""
    group = ready_group(cluster)
    ((leader, follower),) = form([group], 2, static=True)
    parked = group.parked_join(leader)
    successor = group.member(instance_id=leader.instance_id, protocols=leader.protocols)
    later = successor.start_join()
    reply = parked.result()
    yield group.seen("fenced", reply, after(reply, later.sent_ms))
    yield group.seen("follower joins", follower.join())
    yield group.seen("successor joins", successor.joined(later), LAST_JOINS)


@scenario(topology="a group of three static members", configs=QUICK_GROUPS)
def static_members_are_removed_by_their_instance(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A tool needs no member id; a wrong member id is fenced, and unknown instances get an error."""
    group = ready_group(cluster)
    (members,) = form([group], 3, static=True)
    first, second, third = members
    batch = leave(
        group.tool, group.name, ("", first.instance_id), (first.member_id, second.instance_id), ("", "unknown")
    )
    yield group.seen("batch", batch)
    yield group.seen("removed", first.heartbeat())
    yield group.seen("fenced, but stays", second.heartbeat())
    yield group.seen("third", third.heartbeat())
    yield group.seen("described", describe_groups(group.tool, group.name))


@scenario(topology="a group of a static member", configs=QUICK_GROUPS)
def a_silent_static_member_is_removed_as_any_other(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """After its session timeout its member id is unknown, and it joins as a new member."""
    group = ready_group(cluster)
    ((member,),) = form([group], static=True, session_timeout_ms=SESSION_MS)
    cluster.wait(2 * SESSION_MS)
    yield group.seen("heartbeat", member.heartbeat())
    yield group.seen("described", describe_groups(group.tool, group.name))
    member.member_id = ""
    yield group.seen("comes back", member.join(), untimed("the initial delay"))
