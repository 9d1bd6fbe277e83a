"""Groups of the consumer protocol (KIP-848), heartbeat by heartbeat. Kafka: ConsumerGroup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.clients.consumer_protocol import subscription
from broker_sim_integration.clients.group_members import LEAVES_STATIC
from broker_sim_integration.clients.groups import (
    Offset,
    commit,
    committed,
    delete_groups,
    delete_offsets,
    describe_consumer_groups,
    describe_groups,
    list_groups,
)
from broker_sim_integration.scenarios.helpers.group_configs import (
    CONSUMER_SESSION_MS,
    LIMITED_GROUPS,
    NO_MIGRATION,
    QUICK_GROUPS,
)
from broker_sim_integration.scenarios.helpers.groups import form, groups_on, ready_group
from broker_sim_integration.scenarios.helpers.observe import concluded
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

PARTITIONS: Final = 4
REBALANCE_MS: Final = 20_000
ASSIGNED_WITHIN_MS: Final = 1100
"""Minimum time between two assignments (`group.consumer.assignment.interval.ms`), with some slack."""


def topic_of(cluster: ClusterUnderTest, partitions: int = PARTITIONS) -> Topic:
    """Return a new topic for members to share."""
    return cluster.topics.create([cluster.first], partitions=partitions)


@scenario(topology="a group, 4 partitions", configs=QUICK_GROUPS)
def the_first_member_has_all_partitions_at_once(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The first response assigns them. The group is Stable; DescribeGroups returns an error for it."""
    group, topic = ready_group(cluster), topic_of(cluster)
    member = group.consumer("first", topics=[topic.name])
    yield group.seen("joins", member.join())
    yield group.seen("heartbeat", member.heartbeat())
    yield group.seen("heartbeat with partitions", member.heartbeat(owned=True))
    yield group.seen("everything again", member.full_heartbeat())
    yield group.seen("described", describe_consumer_groups(group.tool, group.name))
    yield group.seen("as a classic one", describe_groups(group.tool, group.name))
    listed = [
        [found.protocol_type, found.group_state, found.group_type]
        for found in list_groups(group.tool, types=["consumer"]).message.groups
        if found.group_id == group.name
    ]
    yield concluded("listed", groups=listed)


@scenario(topology="a group, 4 partitions", configs=QUICK_GROUPS)
def a_second_member_gets_what_the_first_gives_up(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Epoch by epoch: the first member revokes two partitions, and only then they are assigned to the second."""
    group, topic = ready_group(cluster), topic_of(cluster)
    first = group.consumer("first", topics=[topic.name], rebalance_timeout_ms=REBALANCE_MS)
    second = group.consumer("second", topics=[topic.name], rebalance_timeout_ms=REBALANCE_MS)
    first.join()
    cluster.wait(ASSIGNED_WITHIN_MS / 2)
    first.heartbeat()
    cluster.wait(ASSIGNED_WITHIN_MS / 2)
    yield group.seen("second joins", second.join())
    yield group.seen("second waits", second.heartbeat())
    yield group.seen("first keeps", first.heartbeat())
    yield group.seen("first has not given up", first.heartbeat())
    yield group.seen("reconciling", describe_consumer_groups(group.tool, group.name))
    yield group.seen("second still waits", second.heartbeat())
    yield group.seen("first has given up", first.heartbeat(owned=True))
    yield group.seen("second gets", second.heartbeat())
    yield group.seen("second has", second.heartbeat(owned=True))
    yield group.seen("stable", describe_consumer_groups(group.tool, group.name))


@scenario(topology="a group, 4 partitions", configs=QUICK_GROUPS)
def other_epochs_are_fenced(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID and GROUP_ID_NOT_FOUND, with their messages."""
    group, unknown = groups_on(cluster, cluster.first, 2)
    topic = topic_of(cluster)
    member = group.consumer("first", topics=[topic.name])
    member.join()
    epoch = member.epoch
    for step in (1, -1, 7):
        member.epoch = epoch + step
        yield group.seen(f"epoch {step:+}", member.heartbeat())
    member.epoch = epoch
    yield group.seen("as it was", member.heartbeat())
    yield group.seen("unknown member", group.consumer("nobody", epoch=1).heartbeat())
    yield unknown.seen("unknown group", unknown.consumer("nobody", epoch=1).heartbeat())
    yield unknown.seen("unknown leaves", unknown.consumer("nobody").leave())
    yield unknown.seen("described", describe_consumer_groups(unknown.tool, unknown.name))
    other = cluster.connect(cluster.second)
    yield group.seen("another broker describes", describe_consumer_groups(other, group.name))
    member.client = other
    yield group.seen("another broker", member.heartbeat())


@scenario(topology="a group", configs=QUICK_GROUPS)
def a_first_heartbeat_has_to_be_complete(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_REQUEST that names the missing field; UNSUPPORTED_ASSIGNOR; INVALID_REGULAR_EXPRESSION."""
    group, topic = ready_group(cluster), topic_of(cluster)
    names = [topic.name]
    cases: dict[str, dict[str, Any]] = {
        "no topics": {},
        "no rebalance timeout": {"topics": names, "rebalance_timeout_ms": -1},
        "empty rack": {"topics": names, "rack_id": ""},
        "empty instance": {"topics": names, "instance_id": ""},
        "unknown assignor": {"topics": names, "assignor": "unknown"},
        "empty assignor": {"topics": names, "assignor": ""},
        "invalid regex": {"regex": "["},
    }
    for case, options in cases.items():
        yield group.seen(case, group.consumer("member", **options).join())
    yield group.seen("no id", group.consumer("", topics=names).join())
    owner = group.consumer("member", topics=names, owned={topic.topic_id: [0]})
    yield group.seen("owns already", owner.full_heartbeat())
    odd = group.consumer("member", topics=names, epoch=-3)
    yield group.seen("epoch -3", odd.full_heartbeat())
    yield group.seen("leaves without an instance", odd.leave(LEAVES_STATIC))
    yield group.seen("described", describe_consumer_groups(group.tool, ""))


@scenario(topology="a group, 4 partitions", configs=QUICK_GROUPS)
def members_commit_in_their_epoch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """STALE_MEMBER_EPOCH and UNKNOWN_MEMBER_ID; versions before 9 are UNSUPPORTED_VERSION."""
    group, topic = ready_group(cluster), topic_of(cluster)
    member = group.consumer("first", topics=[topic.name])
    member.join()
    epoch, offset = member.epoch, Offset(topic, 0, 1)
    for step in (0, 1):
        member.epoch = epoch + step
        for version in (8, 9, 10):
            yield group.seen(f"epoch {step:+} v{version}", member.commit(offset, version=version))
        reply = committed(group.tool, group.name, {topic: [0]}, member_id=member.member_id, member_epoch=member.epoch)
        yield group.seen(f"epoch {step:+} fetch", reply)
    yield group.seen("nobody", commit(group.tool, group.name, offset))
    asked = {topic: [0]}
    unknown = committed(group.tool, group.name, asked, member_id="nobody", member_epoch=epoch)
    yield group.seen("unknown fetches", unknown)
    yield group.seen("deleted offsets", delete_offsets(group.tool, group.name, {topic.name: [0]}))
    yield group.seen("deleted", delete_groups(group.tool, group.name))


@scenario(topology="a group, 4 partitions", configs=QUICK_GROUPS)
def members_of_the_new_protocol_leave(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The response has the epoch of the request; the group is Empty when its last member has left."""
    group, topic = ready_group(cluster), topic_of(cluster)
    member = group.consumer("first", topics=[topic.name])
    member.join()
    yield group.seen("leaves", member.leave())
    yield group.seen("again", member.leave())
    yield group.seen("heartbeat", member.heartbeat())
    yield group.seen("empty", describe_consumer_groups(group.tool, group.name))
    yield group.seen("deleted", delete_groups(group.tool, group.name))


@scenario(topology="a group, 4 partitions", configs=QUICK_GROUPS)
def a_static_member_of_the_new_protocol_comes_back(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNRELEASED_INSTANCE_ID while the first member is active; its successor after epoch -2 gets its partitions."""
    group, topic = ready_group(cluster), topic_of(cluster)
    options: dict[str, Any] = {"topics": [topic.name], "instance_id": "static"}
    first = group.consumer("first", **options)
    yield group.seen("joins", first.join())
    yield group.seen("another one", group.consumer("second", **options).join())
    yield group.seen("leaves for a while", first.leave(LEAVES_STATIC))
    yield group.seen("described", describe_consumer_groups(group.tool, group.name))
    yield group.seen("heartbeat", first.heartbeat())
    successor = group.consumer("third", **options)
    yield group.seen("successor", successor.join())
    yield group.seen("successor's heartbeat", successor.heartbeat())


@scenario(topology="a group, 4 partitions", configs=QUICK_GROUPS)
def a_silent_member_of_the_new_protocol_is_removed(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """After group.consumer.session.timeout.ms the member is unknown, and the group is Empty."""
    group, topic = ready_group(cluster), topic_of(cluster)
    member = group.consumer("first", topics=[topic.name])
    member.join()
    cluster.wait(CONSUMER_SESSION_MS / 4)
    yield group.seen("in time", member.heartbeat())
    cluster.wait(1.5 * CONSUMER_SESSION_MS)
    yield group.seen("too late", member.heartbeat())
    yield group.seen("described", describe_consumer_groups(group.tool, group.name))


@scenario(topology="two groups, 2 topics", configs=QUICK_GROUPS)
def an_assignor_is_chosen(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Uniform by default; range gives the first partitions of each topic to the first member."""
    uniform, ranged = groups_on(cluster, cluster.first, 2)
    topics = [topic_of(cluster, 3).name, topic_of(cluster, 3).name]
    for name, group, assignor in (("uniform", uniform, None), ("range", ranged, "range")):
        first = group.consumer("first", topics=topics, assignor=assignor)
        yield group.seen(f"{name}: alone", first.join())
        cluster.wait(ASSIGNED_WITHIN_MS / 2)
        first.heartbeat()
        cluster.wait(ASSIGNED_WITHIN_MS / 2)
        second = group.consumer("second", topics=topics, assignor=assignor)
        second.join()
        first.heartbeat()
        described = describe_consumer_groups(group.tool, group.name).message.groups[0]
        targets = {
            group.named(member.member_id): sorted(
                # Uniform takes the topics in the order of their random ids.
                [[] if assignor is None else [of.topic_name], len(of.partitions)]
                for of in member.target_assignment.topic_partitions
            )
            for member in described.members
        }
        counts = {who: sum(number for _, number in given) for who, given in targets.items()}  # type: ignore[misc]  # the second one is a number
        yield concluded(
            f"{name}: two", assignor=described.assignor_name, counts=counts, targets=targets if assignor else None
        )


@scenario(topology="a group of at most two", configs=LIMITED_GROUPS)
def a_full_group_of_the_new_protocol_refuses_members(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """GROUP_MAX_SIZE_REACHED for the third member."""
    group, topic = ready_group(cluster), topic_of(cluster)
    for name in ("first", "second"):
        group.consumer(name, topics=[topic.name]).join()
    yield group.seen("third", group.consumer("third", topics=[topic.name]).join())


@scenario(topology="a classic group of consumers", configs=NO_MIGRATION)
def a_group_with_members_keeps_its_protocol_where_migration_is_disabled(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """A joining member of the consumer protocol is rejected, and the classic member continues as before."""
    group, topic = ready_group(cluster), topic_of(cluster)
    ((classic,),) = form([group], protocols={"range": subscription([topic.name])})
    new = group.consumer("new", topics=[topic.name], rebalance_timeout_ms=REBALANCE_MS)
    yield group.seen("new joins", new.join())
    yield group.seen("described", describe_consumer_groups(group.tool, group.name))
    yield group.seen("classic heartbeat", classic.heartbeat())
    yield group.seen("classic joins", classic.join())
    yield group.seen("described as classic", describe_groups(group.tool, group.name))


@scenario(topology="2 classic groups", configs=QUICK_GROUPS)
def only_groups_of_consumers_move_to_the_new_protocol(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """GROUP_ID_NOT_FOUND for a classic group of another protocol type; other types cannot join a consumer group."""
    connect, consumer = groups_on(cluster, cluster.first, 2)
    topic = topic_of(cluster)
    form([connect], protocol_type="connect", protocols={"any": b"any"})
    new = connect.consumer("new", topics=[topic.name])
    yield connect.seen("into another type", new.join())
    consumer.consumer("first", topics=[topic.name]).join()
    stranger = consumer.member(protocol_type="connect", protocols={"any": b"any"})
    yield consumer.seen("another type", stranger.join())
