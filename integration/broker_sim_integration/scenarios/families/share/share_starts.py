"""Start offsets of share groups and their changes. Kafka: SharePartition.maybeInitialize, ShareCoordinatorShard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.errors import ErrorCode
from broker_sim_integration.clients.admin_requests import move
from broker_sim_integration.clients.broker_client import Append, batch_of
from broker_sim_integration.clients.groups import delete_groups
from broker_sim_integration.observations import at_once, at_timeout, untimed
from broker_sim_integration.scenarios.families.share.support.share_configs import SHARE_GROUPS
from broker_sim_integration.scenarios.families.share.support.share_group_under_test import (
    EARLIEST,
    acknowledged,
    acquired,
    share_groups_on,
)
from broker_sim_integration.scenarios.families.share.support.share_member import ACCEPT, RELEASE, Ack, SharePartition
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import TransactionsUnderTest
from broker_sim_integration.scenarios.helpers.observe import deleted
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

RESETS: Final = ("earliest", "latest", "by_duration:PT1H", "by_duration:P3650D")
NEWER_MS: Final = 4_000_000_000_000
"""A time in the year 2096. The other records are of 2023: older than an hour, and younger than ten years."""
ANY_MS: Final = str(2**63 - 1)
WAIT_MS: Final = 2000
SHORT_MS: Final = 300
FIRST_FETCH: Final = untimed("the first share fetch of a share partition waits until its state is read")


@scenario(topology="4 share groups, 1 partition", configs=SHARE_GROUPS)
def a_share_group_begins_where_its_reset_says(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """share.auto.offset.reset: earliest, latest (the default), by_duration:PT1H, and by_duration with ten years."""
    topic = cluster.topics.create([cluster.first], message_timestamp_after_max_ms=ANY_MS)
    share = SharePartition(topic)
    producer = cluster.connect(cluster.first)
    producer.produce(topic, b"old", b"old too", acks=1)
    newer = Append(topic, 0, batch_of([b"newer"], timestamp_ms=NEWER_MS))
    producer.start_produce(newer, acks=1).result()
    for group, reset in zip(share_groups_on(cluster, len(RESETS)), RESETS, strict=True):
        group.configure({"share.auto.offset.reset": reset})
        group.begin(topic)
        yield group.seen(f"{reset}: offsets", group.describe_offsets(None))
        member = group.share_member("second")
        first = member.fetch(share, max_wait_ms=WAIT_MS)
        yield acquired(f"{reset}: first", cluster, first, FIRST_FETCH)
        yield group.seen(f"{reset}: acquired", group.describe_offsets({topic.name: [0]}))


@scenario(topology="2 share groups, 1 partition", configs=SHARE_GROUPS)
def aborted_records_are_left_out_of_committed_ones(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """share.isolation.level: read_committed stops at an open transaction and skips an aborted one."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic([cluster.first])
    share = SharePartition(topic)
    leader, producer = cluster.connect(cluster.first), transactions.producer()
    levels = ("read_committed", "read_uncommitted")
    groups = dict(zip(levels, share_groups_on(cluster, len(levels), EARLIEST), strict=True))
    for level, group in groups.items():
        group.configure({"share.isolation.level": level})
        group.begin(topic)
        group.warm(share)
    members = {level: group.share_member("second") for level, group in groups.items()}
    leader.produce(topic, b"before", acks=1)
    producer.produce(leader, topic, b"aborted", b"too")
    leader.produce(topic, b"between", acks=1)
    for level, member in members.items():
        yield acquired(f"{level}: open", cluster, member.fetch(share), at_once())
    transactions.ended(producer, committed=False)
    producer.produce(leader, topic, b"committed")
    transactions.ended(producer)
    leader.produce(topic, b"after", acks=1)
    for level, member in members.items():
        reply = member.fetch(max_wait_ms=SHORT_MS)
        yield acquired(f"{level}: ended", cluster, reply, at_once())
        accept = {share: [Ack(0, 0, (ACCEPT,))]}
        yield acknowledged(f"{level}: accepted", cluster, member.acknowledge(accept), at_once())
        offsets = groups[level].describe_offsets({topic.name: [0]})
        yield groups[level].seen(f"{level}: offsets", offsets)


@scenario(topology="a share group, 1 partition", configs=SHARE_GROUPS)
def deleted_records_move_the_start_of_a_share_partition(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """In-flight records that are deleted are archived; the next fetch starts at the log start offset."""
    (group,) = share_groups_on(cluster, configs=EARLIEST)
    topic = cluster.topics.create([cluster.first])
    share = SharePartition(topic)
    group.begin(topic)
    group.warm(share)
    member = group.share_member("second")
    for value in (b"a", b"b", b"c", b"d", b"e"):
        member.client.produce(topic, value, acks=1)
    yield acquired("all", cluster, member.fetch(share), at_once())
    yield deleted("deleted", member.client.start_delete_records(topic, 2).result(), at_once())
    for first, last in ((0, 1), (2, 2)):
        reply = member.acknowledge({share: [Ack(first, last, (RELEASE,))]})
        yield acknowledged(f"released {first} to {last}", cluster, reply, at_once())
    yield acquired("again", cluster, member.fetch(max_wait_ms=SHORT_MS), at_once())
    yield acquired("and again", cluster, member.fetch(), at_once())
    yield group.seen("offsets", group.describe_offsets({topic.name: [0]}))
    member.client.produce(topic, b"f", acks=1)
    yield deleted("all deleted", member.client.start_delete_records(topic, -1).result(), at_once())
    yield acquired("nothing", cluster, member.fetch(max_wait_ms=SHORT_MS), at_once())
    waits = member.fetch(max_wait_ms=SHORT_MS)
    yield acquired("still nothing", cluster, waits, at_timeout(SHORT_MS))
    yield group.seen("offsets at the end", group.describe_offsets({topic.name: [0]}))


@scenario(topology="a share group, 1 partition", configs=SHARE_GROUPS)
def offsets_of_a_share_group_are_altered_while_it_is_empty(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """NON_EMPTY_GROUP while it has members; then the offset moves, with its lag; deleted, the group starts anew."""
    (group,) = share_groups_on(cluster, configs=EARLIEST)
    topic = cluster.topics.create([cluster.first], partitions=2)
    share = SharePartition(topic)
    first = group.begin(topic)
    group.warm(share)
    member = group.share_member("second")
    member.client.produce(topic, *(b"%d" % number for number in range(10)), acks=1)
    yield acquired("from the start", cluster, member.fetch(share), at_once())
    accept = {share: [Ack(0, 3, (ACCEPT,)), Ack(5, 6, (ACCEPT,))]}
    yield acknowledged("accepted", cluster, member.acknowledge(accept), at_once())
    name = topic.name
    for version in (0, 1):
        described = group.describe_offsets({name: [0, 1], "none": [0]}, version)
        yield group.seen(f"offsets v{version}", described)
    yield group.seen("altered with members", group.alter_offsets({name: {0: 2}}))
    yield group.seen("deleted with members", group.delete_offsets([name]))
    member.end_session()
    first.leave()
    yield group.seen("altered", group.alter_offsets({name: {0: 8, 9: 1}, "none": {0: 1}}))
    yield group.seen("offsets altered", group.describe_offsets(None))
    reply = member.fetch(share, max_wait_ms=WAIT_MS)
    yield acquired("from there", cluster, reply, FIRST_FETCH)
    member.end_session()
    yield group.seen("deleted", group.delete_offsets([name, "none"]))
    yield group.seen("offsets deleted", group.describe_offsets(None))
    yield group.seen("deleted again", group.delete_offsets([name]))
    yield group.seen("group deleted", delete_groups(group.tool, group.name))
    yield group.seen("offsets of no group", group.describe_offsets(None))


@scenario(topology="a share group, 1 partition", configs=SHARE_GROUPS)
def a_leader_that_moves_keeps_the_state_of_share_partitions(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The next leader delivers released and in-flight records again; acknowledged records are not delivered."""
    (group,) = share_groups_on(cluster, configs=EARLIEST)
    topic = cluster.topics.create([cluster.first])
    share = SharePartition(topic)
    group.begin(topic)
    group.warm(share)
    member = group.share_member("second")
    member.client.produce(topic, *(b"%d" % number for number in range(6)), acks=1)
    yield acquired("before", cluster, member.fetch(share), at_once())
    acks = {share: [Ack(0, 1, (ACCEPT,)), Ack(3, 3, (RELEASE,))]}
    yield acknowledged("acknowledged", cluster, member.acknowledge(acks), at_once())
    waits = group.share_member("third")
    waits.fetch(share)
    asked = cluster.clients.ask(cluster.first)
    parked = waits.start_fetch(max_wait_ms=WAIT_MS)
    reply = move(asked, (topic.name, 0, [cluster.second]))
    assert not reply.message.error_code, reply.message
    yield acquired("parked", cluster, parked.result(), untimed("the partition moves meanwhile"))
    cluster.wait_until.leader(topic, cluster.second)
    cluster.wait_until(
        lambda: (
            waits.fetch(share, epoch=0).message.responses[0].partitions[0].error_code
            == ErrorCode.NOT_LEADER_OR_FOLLOWER
        ),
        "the old leader knows",
    )
    old = member.acknowledge({share: [Ack(4, 5, (ACCEPT,))]})
    yield acknowledged("at the old leader", cluster, old, at_once())
    heir = group.share_member("fourth", cluster.second)
    after = heir.fetch(share, max_wait_ms=WAIT_MS)
    yield acquired("after", cluster, after, FIRST_FETCH)
    yield group.seen("offsets", group.describe_offsets({topic.name: [0]}))
