"""Members of streams groups, heartbeat by heartbeat, and descriptions of the groups. Kafka: KIP-1071, StreamsGroup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.protocol import messages
from broker_sim_integration.clients.consumer_protocol import subscription
from broker_sim_integration.clients.groups import (
    Offset,
    commit,
    committed,
    delete_groups,
    delete_offsets,
    describe_consumer_groups,
    describe_groups,
    start_commit,
)
from broker_sim_integration.scenarios.families.streams.support.streams_configs import MAX_SIZE, STREAMS_GROUPS
from broker_sim_integration.scenarios.families.streams.support.streams_group_under_test import (
    describe_streams_groups,
    streams_groups_on,
)
from broker_sim_integration.scenarios.families.streams.support.topologies import (
    TaskIds,
    internal,
    subtopology,
    topology,
)
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

PARTITIONS: Final = 4
Request = messages.StreamsGroupHeartbeatRequest


@scenario(topology="a streams group, 4 partitions", configs=STREAMS_GROUPS)
def tasks_of_a_streams_group_move_between_members(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A member revokes tasks before they are assigned to another one; the epochs rise with each change."""
    (group,) = streams_groups_on(cluster)
    topic = cluster.topics.create([cluster.first], partitions=PARTITIONS)
    first = group.begin(topic)
    yield group.seen("described", group.described())
    second = group.streams_member("second", subtopology("0", topic.name))
    yield group.seen("second joins", second.join(rack_id="rack"))
    had = list(first.active)
    yield group.seen("first is to give up", first.heartbeat())
    yield group.seen("described meanwhile", group.described())
    yield group.seen("second waits", second.heartbeat())
    yield group.seen("first has all yet", first.heartbeat(active_tasks=had))
    yield group.seen("first says nothing", first.heartbeat(active_tasks=None, standby_tasks=None, warmup_tasks=None))
    yield group.seen("first has given up", first.heartbeat())
    yield group.seen("second gets", second.heartbeat())
    yield group.seen("described again", group.described())
    yield group.listed("listed", types=["streams"])
    yield group.listed("listed by its state", states=["Stable"])
    yield group.listed("listed among others", types=["consumer", "classic", "share"])
    yield group.seen("second leaves", second.leave())
    yield group.seen("second leaves again", second.leave())
    yield group.seen("first has all", first.heartbeat())
    yield group.seen("not empty", delete_groups(group.tool, group.name))
    yield group.seen("first leaves", first.leave())
    yield group.seen("empty", group.described())
    yield group.seen("deleted", delete_groups(group.tool, group.name))
    yield group.seen("gone", group.described())


@scenario(topology="a streams group, 2 partitions", configs=STREAMS_GROUPS)
def other_epochs_of_a_streams_member_are_fenced(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID and GROUP_ID_NOT_FOUND, with their messages."""
    group, unknown = streams_groups_on(cluster, 2)
    topic = cluster.topics.create([cluster.first], partitions=2)
    member = group.begin(topic)
    for step in (0, 1, -1):
        yield group.seen(f"epoch {step:+}", member.heartbeat(member_epoch=member.epoch + step))
    second = group.streams_member("second", subtopology("0", topic.name))
    second.join()
    member.heartbeat()
    given_up = member.heartbeat()
    yield group.seen("gives up", given_up)
    before = member.epoch - 1
    yield group.seen("epoch before", member.heartbeat(member_epoch=before))
    more = [TaskIds("0", [0, 1])]
    yield group.seen("with more", member.heartbeat(member_epoch=before, active_tasks=more))
    yield group.seen("a task too many", member.heartbeat(active_tasks=[TaskIds("0", [7])]))
    yield group.seen("another subtopology", member.heartbeat(active_tasks=[TaskIds("9", [0])]))
    stranger = group.streams_member("stranger")
    yield group.seen("unknown member", stranger.heartbeat(member_epoch=1))
    yield group.seen("unknown member leaves", stranger.leave())
    nobody = unknown.streams_member("nobody")
    yield unknown.seen("unknown group", nobody.heartbeat(member_epoch=1))
    yield unknown.seen("unknown group is left", nobody.leave())
    yield unknown.seen("unknown group is described", unknown.described())
    member.coordinator = cluster.connect(cluster.second)
    yield group.seen("another broker", member.heartbeat())


@scenario(topology="a streams group", configs=STREAMS_GROUPS)
def a_first_streams_heartbeat_has_to_be_complete(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_REQUEST and STREAMS_INVALID_TOPOLOGY with the reason, and GROUP_MAX_SIZE_REACHED."""
    (group,) = streams_groups_on(cluster)
    topic = cluster.topics.create([cluster.first])
    reads = subtopology("0", topic.name)
    member = group.streams_member("first", reads)
    for field, value in (
        ("instance_id", "static"),
        ("task_offsets", []),
        ("warmup_tasks", [TaskIds("0", [0])]),
        ("rack_id", " "),
        ("member_id", ""),
        ("rebalance_timeout_ms", -1),
        ("active_tasks", None),
        ("standby_tasks", [TaskIds("0", [0])]),
        ("topology", None),
        ("member_epoch", -2),
        ("member_epoch", -3),
        ("member_epoch", 1),
    ):
        step = f"{field}={value}" if field == "member_epoch" else field
        yield group.seen(step, member.join(**{field: value}))
    of_its_own = subtopology("0", "__consumer_offsets")
    fixed = subtopology("0", topic.name, keeps=[internal("changelog", 2)])
    for step, told in (
        ("Kafka's own topic", topology(of_its_own)),
        ("no name of a topic", topology(subtopology("0", "a b"))),
        ("a changelog with partitions", topology(fixed)),
        ("nothing to read", topology(subtopology("0"))),
        ("a negative epoch", topology(reads, epoch=-1)),
        ("a subtopology twice", topology(reads, reads)),
    ):
        yield group.seen(step, member.join(topology=told))
    yield group.seen("described", describe_streams_groups(group, "", group.name))
    group.assign(member)
    for number in range(2, MAX_SIZE + 2):
        joins = group.streams_member(f"number-{number}", reads)
        yield group.seen(f"member {number} joins", joins.join())
    yield group.seen("one of them, again", group.streams_member("number-2", reads).join())


@scenario(topology="streams groups", configs=STREAMS_GROUPS)
def a_streams_application_can_be_asked_to_end(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """SHUTDOWN_APPLICATION until the group is empty; STALE_TOPOLOGY for a member with an older topology."""
    (group,) = streams_groups_on(cluster)
    topic = cluster.topics.create([cluster.first], partitions=2)
    reads = subtopology("0", topic.name)
    first = group.streams_member("first", reads, epoch=3)
    group.assign(first)
    behind = group.streams_member("behind", reads, epoch=2)
    yield group.seen("an older topology", behind.join())
    ahead = group.streams_member("ahead", reads, epoch=4)
    yield group.seen("a newer topology", ahead.join())
    other = group.streams_member("other", subtopology("1", topic.name), epoch=3)
    yield group.seen("another topology", other.join())
    yield group.seen("asks all to end", behind.heartbeat(shutdown_application=True))
    yield group.seen("asks as well", first.heartbeat(shutdown_application=True))
    yield group.seen("leaves", behind.leave())
    yield group.seen("is told", first.heartbeat())
    yield group.seen("the last one leaves", first.leave())
    yield group.seen("joins again", first.join())


@scenario(topology="a streams group, 2 partitions", configs=STREAMS_GROUPS)
def endpoints_of_a_streams_group_are_told(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The endpoints of members with their partitions, in an epoch that rises with each change."""
    (group,) = streams_groups_on(cluster)
    topic = cluster.topics.create([cluster.first], partitions=2)
    reads = subtopology("0", topic.name)
    tags = [Request.KeyValue("zone", "a"), Request.KeyValue("cluster", "b")]
    first = group.streams_member("first", reads, user_endpoint=Request.Endpoint("first", 1))
    yield group.seen("joins", first.join(client_tags=tags))
    group.assign(first)
    second = group.streams_member("second", reads, user_endpoint=Request.Endpoint("second", 2))
    yield group.seen("second joins", second.join())
    yield group.seen("first is to give up", first.heartbeat())
    yield group.seen("first has given up", first.heartbeat())
    yield group.seen("second gets", second.heartbeat())
    yield group.seen("first knows", first.heartbeat(endpoint_information_epoch=4))
    yield group.seen("first knows less", first.heartbeat(endpoint_information_epoch=1))
    yield group.seen("other tags", first.heartbeat(client_tags=[]))
    yield group.seen("described", group.described())


@scenario(topology="a streams group, 2 partitions", configs=STREAMS_GROUPS)
def streams_members_commit_in_the_epochs_of_their_tasks(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Also in an older epoch, for tasks that they have had since (KIP-1251); others get STALE_MEMBER_EPOCH."""
    (group,) = streams_groups_on(cluster)
    topic, other = (cluster.topics.create([cluster.first], partitions=2) for _ in range(2))
    member = group.begin(topic)
    epoch = member.epoch
    second = group.streams_member("second", subtopology("0", topic.name))
    second.join()
    member.heartbeat()
    member.heartbeat()
    second.heartbeat()
    for step, asked, member_id, number in (
        ("its epoch", topic, member.member_id, member.epoch),
        ("an older epoch", topic, member.member_id, epoch),
        ("before its task", topic, member.member_id, epoch - 1),
        ("a newer epoch", topic, member.member_id, member.epoch + 1),
        ("another topic", other, member.member_id, epoch),
        ("no task of its own", topic, second.member_id, epoch),
        ("a stranger", topic, "stranger", epoch),
        ("nobody", topic, "", -1),
    ):
        told = start_commit(
            group.tool, group.name, Offset(asked, 0, 5), member_id=member_id, generation=number, version=9
        )
        yield group.seen(step, told.result())
    for step, fetcher, number in (
        ("fetched", member.member_id, member.epoch),
        ("fetched in an older epoch", member.member_id, epoch),
        ("fetched by a stranger", "stranger", epoch),
        ("fetched by a tool", None, -1),
    ):
        found = committed(group.tool, group.name, {topic: [0]}, member_id=fetcher, member_epoch=number)
        yield group.seen(step, found)
    named = {topic.name: [0]}
    yield group.seen("deleted while it is read", delete_offsets(group.tool, group.name, named))
    for each in (member, second):
        each.leave()
    yield group.seen("deleted", delete_offsets(group.tool, group.name, named))


@scenario(topology="a streams group and a consumer group", configs=STREAMS_GROUPS)
def a_streams_group_is_of_a_kind_of_its_own(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Requests of other types get errors; an empty classic group is replaced, and so is an empty streams group."""
    group, consumers, simple = streams_groups_on(cluster, 3)
    topic = cluster.topics.create([cluster.first])
    names = [topic.name]
    member = group.begin(topic)
    joins = group.member(protocols={"range": subscription(names)})
    yield group.seen("classic join", joins.join())
    yield group.seen("consumer joins", group.consumer("other", topics=names).join())
    yield group.seen("described as classic", describe_groups(group.tool, group.name))
    yield group.seen("described as consumers", describe_consumer_groups(group.tool, group.name))
    member.leave()
    yield group.seen("consumer joins the empty group", group.consumer("o", topics=names).join())
    yield group.seen("classic joins the empty group", joins.join())
    yield group.seen("joins the empty classic group", member.join())
    consumers.consumer("other", topics=names).join()
    stranger = consumers.streams_member("stranger", subtopology("0", topic.name))
    yield consumers.seen("streams member joins", stranger.join())
    yield consumers.seen("described as streams", consumers.described())
    commit(simple.tool, simple.name, Offset(topic, 0, 5))
    simple.begin(topic)
    yield simple.seen("a simple group's offsets stay", committed(simple.tool, simple.name))
    yield simple.listed("it is a streams group now")
