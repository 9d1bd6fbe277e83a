"""Groups whose coordinator moves to another broker. Kafka: GroupCoordinatorService.onElection."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.clients import admin
from broker_sim_integration.clients.admin_requests import move
from broker_sim_integration.clients.group_members import ClassicMember
from broker_sim_integration.clients.groups import Offset, commit, committed, describe_groups
from broker_sim_integration.clients.topics import Topic
from broker_sim_integration.observations import untimed
from broker_sim_integration.scenarios.helpers.coordinators import next_coordinator, successor_of
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.group_configs import GROUP_FAILOVER, QUICK_GROUPS
from broker_sim_integration.scenarios.helpers.groups import OFFSETS_TOPIC, form, groups_on, partition_of, ready_group
from broker_sim_integration.scenarios.helpers.mechanisms import fencing
from broker_sim_integration.scenarios.helpers.observe import answer_or_end, concluded
from broker_sim_integration.scenarios.helpers.side_by_side import SAMPLES
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.scenarios.helpers.groups import GroupUnderTest

SESSION_MS: Final = 2000
LONG_SESSION_MS: Final = 30_000
REPLICATED: Final = untimed("what a new leader has loaded counts when its followers have fetched")


def has_members(count: int, group: GroupUnderTest, client: BrokerClient) -> bool:
    """Whether a broker describes the group with `count` members."""
    described = describe_groups(client, group.name).message.groups[0]
    there = described.error_code == ErrorCode.NONE and described.group_state != "Dead"
    return there and len(described.members) == count


def _has_offset(client: BrokerClient, group: GroupUnderTest) -> bool:
    """Whether a broker returns the group's only committed offset."""
    topics = committed(client, group.name).message.groups[0].topics
    return len(topics) == 1


@scenario(topology="a group of two", configs=GROUP_FAILOVER, needs={Fault.KILL})
def a_killed_coordinator_loses_neither_members_nor_offsets(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The next coordinator loads the members, the generation and all committed offsets from its log."""
    group = ready_group(cluster, cluster.second)
    topic = cluster.topics.create([cluster.first])
    (members,) = form([group], 2, session_timeout_ms=LONG_SESSION_MS)
    leader, other = members
    leader.commit(Offset(topic, 0, 42, "kept"))
    yield group.seen("before", describe_groups(group.tool, group.name))
    parked = leader.start_join()
    killed = cluster.faults.kill(cluster.second)
    ended = answer_or_end("parked join", parked, after(parked, killed))
    yield ended
    yield fencing("moved", killed, successor_of(cluster, group).named_ms)
    new = next_coordinator(cluster, group, partial(has_members, 2, group))
    for member in members:
        member.client = new
        yield group.seen("heartbeat", member.heartbeat(), REPLICATED)
        yield group.seen("sync", member.sync())
    yield group.seen("after", describe_groups(new, group.name))
    cluster.wait_until(partial(_has_offset, new, group), "the offset is visible")
    yield group.seen("offsets", committed(new, group.name, {topic: [0]}))
    yield group.seen("commit", other.commit(Offset(topic, 0, 43)), REPLICATED)
    stranger = ClassicMember(new, group.name, "nobody", leader.generation)
    yield group.seen("stranger", stranger.heartbeat())


@scenario(topology="a group", configs=GROUP_FAILOVER, needs={Fault.PAUSE})
def a_coordinator_that_was_replaced_says_so(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """NOT_COORDINATOR after it is resumed, also for requests that were parked before or sent during the pause."""
    group = ready_group(cluster, cluster.second)
    (members,) = form([group], 2, session_timeout_ms=LONG_SESSION_MS)
    leader, other = members
    parked = group.parked_join(leader)
    cluster.faults.pause(cluster.second)
    new = next_coordinator(cluster, group, partial(has_members, 2, group))
    yield group.seen("described by the next", describe_groups(new, group.name))
    cluster.faults.resume(cluster.second)
    cluster.wait_until.brokers(*cluster.brokers)
    reason = untimed("when the old coordinator has read of its successor")
    yield group.seen("parked join", parked.result(), reason)
    yield group.seen("heartbeat", other.heartbeat())
    yield group.seen("described by the old", describe_groups(group.tool, group.name))
    other.client = new
    yield group.seen("heartbeat to the next", other.heartbeat(), REPLICATED)


@scenario(topology="a group", configs=GROUP_FAILOVER, needs={Fault.STOP})
def a_coordinator_that_stops_hands_its_groups_over(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A controlled shutdown: a parked join gets NOT_COORDINATOR before the broker ends."""
    group = ready_group(cluster, cluster.second)
    topic = cluster.topics.create([cluster.first])
    (members,) = form([group], 2, session_timeout_ms=LONG_SESSION_MS)
    leader, other = members
    leader.commit(Offset(topic, 0, 7))
    parked = group.parked_join(leader)
    cluster.faults.stop(cluster.second)
    reason = untimed("when the partition moves during the shutdown")
    yield group.seen("parked join", parked.result(), reason)
    new = next_coordinator(cluster, group, partial(has_members, 2, group))
    leader.client = other.client = new
    for member in members:
        yield group.seen("heartbeat", member.heartbeat(), REPLICATED)
    yield group.seen("described", describe_groups(new, group.name))
    cluster.wait_until(partial(_has_offset, new, group), "the offset is visible")
    yield group.seen("offsets", committed(new, group.name, {topic: [0]}))


@scenario(topology="a group of two", configs=GROUP_FAILOVER, needs={Fault.KILL})
def sessions_begin_anew_at_the_next_coordinator(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A member without a heartbeat for longer than its session is still a member after the failover."""
    group = ready_group(cluster, cluster.second)
    (members,) = form([group], 2, session_timeout_ms=SESSION_MS)
    leader, silent = members
    cluster.faults.kill(cluster.second)
    new = next_coordinator(cluster, group, partial(has_members, 2, group))
    leader.client = new
    yield group.seen("heartbeat", leader.heartbeat(), REPLICATED)
    yield group.seen("described", describe_groups(new, group.name))
    parked = leader.start_join()
    reply = leader.joined(parked)
    yield group.seen("without the silent one", reply, untimed("a session after the loading"))
    yield concluded("silent", is_member=silent.member_id in _members(reply.message.members))


def _members(members: object) -> list[str]:
    return [member.member_id for member in members]  # type: ignore[attr-defined]  # a response's


@scenario(topology="a group that joins", configs=GROUP_FAILOVER, needs={Fault.KILL})
def a_group_that_never_was_stable_is_forgotten(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The log has only groups that were synced: members that had joined are unknown, committed offsets survive."""
    group = ready_group(cluster, cluster.second)
    topic = cluster.topics.create([cluster.first])
    commit(group.tool, group.name, Offset(topic, 0, 3))
    member = group.with_id()
    member.join()
    cluster.faults.kill(cluster.second)
    new = next_coordinator(cluster, group, partial(has_members, 0, group))
    member.client = new
    yield group.seen("heartbeat", member.heartbeat(), REPLICATED)
    yield group.seen("described", describe_groups(new, group.name))
    yield group.seen("sync", member.sync({member.member_id: b"late"}))
    cluster.wait_until(partial(_has_offset, new, group), "the offset is visible")
    yield group.seen("offsets", committed(new, group.name, {topic: [0]}))
    again = ClassicMember(new, group.name)
    yield concluded("joins again", error_code=again.join().message.error_code)


@scenario(topology="a static member", configs=GROUP_FAILOVER, needs={Fault.KILL})
def a_static_member_is_known_to_the_next_coordinator(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """It rejoins without its member id, and the old id is fenced."""
    group = ready_group(cluster, cluster.second)
    ((member,),) = form([group], static=True, session_timeout_ms=LONG_SESSION_MS)
    old = member.member_id
    cluster.faults.kill(cluster.second)
    new = next_coordinator(cluster, group, partial(has_members, 1, group))
    member.client, member.member_id = new, ""
    yield group.seen("comes back", member.join(), REPLICATED)
    fenced = ClassicMember(new, group.name, old, member.generation, member.instance_id)
    yield group.seen("old id", fenced.heartbeat())
    yield group.seen("sync", member.sync())


@scenario(topology="30 groups of two, one partition of offsets moves", configs=QUICK_GROUPS)
def a_coordinator_that_moves_answers_what_is_parked(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty joins wait when other leaders are elected: each gets NOT_COORDINATOR at once.

    The next coordinator knows the members and their generation as soon as it has loaded them.
    """
    groups = groups_on(cluster, cluster.first, SAMPLES)
    count = len(cluster.metadata.describe_all(OFFSETS_TOPIC))
    partitions = sorted({partition_of(group.name, count) for group in groups})
    topic = Topic(OFFSETS_TOPIC, bytes(16), ((cluster.first,),) * count)
    order = (cluster.second, cluster.first, cluster.third)
    asked = cluster.clients.ask(cluster.first)
    move(asked, *((OFFSETS_TOPIC, partition, order) for partition in partitions))

    def reordered() -> bool:
        found = cluster.metadata.describe_all(OFFSETS_TOPIC)
        return all(found[partition].replicas == order for partition in partitions)

    cluster.wait_until(reordered, "the offsets topic has other preferred leaders")
    pairs = form(groups, 2, session_timeout_ms=LONG_SESSION_MS)
    parked = [leader.start_join() for leader, _ in pairs]
    for group in groups:
        group.wait_for_state("PreparingRebalance")
    elections = {partition: admin.elect_leader(asked, topic, partition=partition) for partition in partitions}
    for attempt, (group, pending) in enumerate(zip(groups, parked, strict=True), 1):
        reply = pending.result()
        due = after(reply, elections[partition_of(group.name, count)])
        yield group.seen("parked join", reply, due, attempt=attempt)
    group, (leader, _) = groups[0], pairs[0]
    new = next_coordinator(cluster, group, partial(has_members, 2, group))
    yield group.seen("described by the next", describe_groups(new, group.name))
    leader.client = new
    yield group.seen("heartbeat to the next", leader.heartbeat(), REPLICATED)
    back = (cluster.first, cluster.second, cluster.third)
    move(asked, *((OFFSETS_TOPIC, partition, back) for partition in partitions))
    for partition in partitions:
        admin.elect_leader(asked, topic, partition=partition)
