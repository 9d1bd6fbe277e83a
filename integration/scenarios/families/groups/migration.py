"""Groups with members that move between the protocols. Kafka: GroupMetadataManager, KIP-848.

Members of the classic protocol are consumers here: their subscriptions and assignments name topics, so
these are observed as partitions, without the names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol import messages
from broker_sim.protocol.codec import decode
from integration.clients.consumer_protocol import assignment, subscription
from integration.clients.groups import (
    Offset,
    commit,
    committed,
    describe_consumer_groups,
    describe_groups,
    list_groups,
)
from integration.observations import untimed
from integration.scenarios.helpers.due import after
from integration.scenarios.helpers.group_configs import LIMITED_GROUPS, NO_MIGRATION, QUICK_GROUPS
from integration.scenarios.helpers.groups import groups_on, ready_group
from integration.scenarios.helpers.observe import concluded
from integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from integration.clients.group_members import ClassicMember
    from integration.clients.raw_client import Reply
    from integration.clients.topics import Topic
    from integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from integration.observations import Observation
    from integration.scenarios.helpers.groups import GroupUnderTest

PARTITIONS: Final = 6
TARGET_INTERVAL_MS: Final = 1100
"""Targets are computed a second apart at least (`group.consumer.assignment.interval.ms`)."""
UPGRADES_ONLY: Final = QUICK_GROUPS | {"group.consumer.migration.policy": "upgrade"}
DOWNGRADES_ONLY: Final = QUICK_GROUPS | {"group.consumer.migration.policy": "downgrade"}
ALL_HAVE_JOINED: Final = untimed("when all members have joined")


def shared_topic(cluster: ClusterUnderTest) -> Topic:
    """Return a topic of six partitions."""
    return cluster.topics.create([cluster.first], partitions=PARTITIONS)


def subscribed(
    topic: Topic, owned: Sequence[int] = (), user_data: bytes | None = None
) -> dict[str, bytes]:
    """Return the protocols of a consumer that owns these partitions."""
    return {"range": subscription([topic.name], owned={topic.name: owned}, user_data=user_data)}


def partitions_in(assigned: bytes) -> list[int]:
    """Return the partitions of the only topic in an assignment; none of an empty one."""
    if not assigned:
        return []
    version = int.from_bytes(assigned[:2], "big")
    decoded = decode(messages.ConsumerProtocolAssignment, version, assigned, 2)
    return sorted(number for of in decoded.assigned_partitions for number in of.partitions)


def seen_sync(
    group: GroupUnderTest, step: str, reply: Reply[messages.SyncGroupResponse]
) -> Iterator[Observation]:
    """Observe a SyncGroup, and what it assigns."""
    partitions = partitions_in(bytes(reply.message.assignment))
    version = bytes(reply.message.assignment[:2])
    reply.message.assignment = version
    yield group.seen(step, reply)
    yield concluded(f"{step}: assigned", partitions=partitions)


def seen_classic(group: GroupUnderTest, step: str) -> Observation:
    """Observe how DescribeGroups shows a group of consumers."""
    reply = describe_groups(group.tool, group.name)
    for member in reply.message.groups[0].members:
        # The topic of the subscription has a name of its own in each run.
        member.member_metadata = bytes(member.member_metadata[:2])
        member.member_assignment = b"%r" % partitions_in(bytes(member.member_assignment))
    return group.seen(step, reply)


def seen_consumer(group: GroupUnderTest, step: str) -> Observation:
    """Observe how ConsumerGroupDescribe shows a group."""
    return group.seen(step, describe_consumer_groups(group.tool, group.name))


def seen_join(
    group: GroupUnderTest, step: str, reply: Reply[messages.JoinGroupResponse], **options: Any
) -> Observation:
    """Observe a JoinGroup; of what members say only the version is seen."""
    for member in reply.message.members:
        member.metadata = bytes(member.metadata[:2])
    return group.seen(step, reply, **options)


def classic_group(
    group: GroupUnderTest, topic: Topic, members: int = 1, *, static: bool = False, **options: Any
) -> list[ClassicMember]:
    """Let a group get members by the classic protocol, which share the partitions evenly.

    They come one by one, so that the first is the leader. `static` ones have the instances
    `instance 1`, `instance 2` and so on.
    """
    options.setdefault("protocols", subscribed(topic))
    there: list[ClassicMember] = []
    for number in range(1, members + 1):
        if static:
            options["instance_id"] = f"instance {number}"
        member = group.with_id(**options)
        joins = [(member, member.start_join())]
        if there:
            group.wait_for_state("PreparingRebalance")
            joins += [(known, known.start_join()) for known in there]
        for joining, pending in joins:
            joining.joined(pending)
        there.append(member)
        there[0].sync(shares(topic, there))
        for known in there[1:]:
            known.sync()
    return there


def shares(topic: Topic, members: Sequence[ClassicMember]) -> Mapping[str, bytes]:
    """Return an assignment for each member: neighbouring partitions, as many for each."""
    each = PARTITIONS // len(members)
    return {
        member.member_id: assignment({topic.name: range(at * each, (at + 1) * each)})
        for at, member in enumerate(members)
    }


@scenario(topology="a classic group of one, 6 partitions", configs=QUICK_GROUPS)
def a_group_moves_to_the_new_protocol_and_back(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """The generation goes on as the epoch, members keep what they have, and nothing is lost."""
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
def a_cooperative_member_gives_up_what_it_has_to(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """It joins with what it owns, syncs to keep the rest, and joins again when it has given up."""
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
def a_classic_member_joins_a_group_of_the_new_protocol(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """It is given an id, then an epoch; it joins again when the other has given partitions up."""
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
def who_waits_in_a_rebalance_is_told_to_join_the_moved_group(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """A parked join and a parked sync end with REBALANCE_IN_PROGRESS, and with the member's id."""
    joining, syncing = groups_on(cluster, cluster.first, 2)
    topic = shared_topic(cluster)
    for group in (joining, syncing):
        leader, follower = classic_group(group, topic, 2)
        parked = leader.start_join()
        group.wait_for_state("PreparingRebalance")
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


@scenario(topology="a classic group of one", configs=QUICK_GROUPS)
def a_group_before_its_first_generation_does_not_move(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """UNKNOWN_SERVER_ERROR; the join that waits is told to come again all the same."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    classic = group.with_id(protocols=subscribed(topic))
    parked = classic.start_join()
    group.wait_for_state("PreparingRebalance")
    joined = group.consumer("new", topics=[topic.name]).join()
    yield group.seen("new joins", joined)
    reply = classic.joined(parked)
    yield group.seen("parked join", reply, after(reply, joined))
    yield concluded("still classic", state=group.state())


@scenario(topology="3 classic groups", configs=QUICK_GROUPS)
def what_cannot_be_read_keeps_a_group_classic(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """GROUP_ID_NOT_FOUND for malformed subscriptions and assignments, and for an assignor's own data."""
    topic = shared_topic(cluster)
    wrong: dict[str, tuple[dict[str, bytes], bytes]] = {
        "subscription": ({"range": b"any"}, assignment({topic.name: [0]})),
        "assignment": (subscribed(topic), b"any"),
        "user data": (
            subscribed(topic),
            assignment({topic.name: [0]})[:-4] + b"\0\0\0\1x",
        ),
    }
    for name, group in zip(wrong, groups_on(cluster, cluster.first, len(wrong)), strict=True):
        protocols, assigned = wrong[name]
        classic = group.with_id(protocols=protocols)
        classic.join()
        classic.sync({classic.member_id: assigned})
        yield group.seen(name, group.consumer("new", topics=[topic.name]).join())
        yield group.seen(f"{name}: goes on", classic.heartbeat())


@scenario(topology="a classic group of two static members, 6 partitions", configs=QUICK_GROUPS)
def static_members_change_their_protocol_one_by_one(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """The successor has the partitions of the instance at once, and the group moves with the last."""
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
def the_last_static_member_goes_back_with_another_subscription(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """The classic group has stale assignments then, so it begins with a rebalance."""
    group, topic, other = ready_group(cluster), shared_topic(cluster), shared_topic(cluster)
    first, second = classic_group(group, topic, 2, static=True)
    group.consumer("new", topics=[topic.name], instance_id=first.instance_id).join()
    second.join()
    second.sync()
    back = group.member(
        protocols={"range": subscription([topic.name, other.name])}, instance_id=first.instance_id
    )
    yield seen_join(group, "goes back", back.join())
    yield seen_classic(group, "classic again")
    yield group.seen("the other's heartbeat", second.heartbeat())
    pending = second.start_join()
    yield seen_join(group, "joins", back.join())
    yield seen_join(group, "the other joins", second.joined(pending), timing=ALL_HAVE_JOINED)


@scenario(topology="a classic group of one", configs=UPGRADES_ONLY)
def where_only_upgrades_are_allowed_a_group_stays_upgraded(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """The last member of the new protocol goes, and the classic one stays in a consumer group."""
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
def where_only_downgrades_are_allowed_a_classic_group_stays(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """A new member is refused; a consumer group takes classic ones, and becomes classic."""
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
def where_migration_is_disabled_a_consumer_group_stays(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """INCONSISTENT_GROUP_PROTOCOL for classic members, until the group is empty."""
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
def a_full_group_does_not_move_for_a_third_member(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """GROUP_MAX_SIZE_REACHED, and the group is as it was; the join that waited was told all the same."""
    group, topic = ready_group(cluster), shared_topic(cluster)
    leader, follower = classic_group(group, topic, 2)
    parked = leader.start_join()
    group.wait_for_state("PreparingRebalance")
    joined = group.consumer("new", topics=[topic.name]).join()
    yield group.seen("new joins", joined)
    reply = leader.joined(parked)
    yield group.seen("parked join", reply, after(reply, joined))
    yield group.seen("no consumer group", describe_consumer_groups(group.tool, group.name))
    pending = follower.start_join()
    yield seen_join(group, "leader joins", leader.join())
    yield seen_join(group, "follower joins", follower.joined(pending), timing=ALL_HAVE_JOINED)


@scenario(topology="a mixed group of two", configs=QUICK_GROUPS)
def a_tool_commits_only_for_an_empty_group(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_MEMBER_ID while a group has members of either protocol; each commits in its epoch."""
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
