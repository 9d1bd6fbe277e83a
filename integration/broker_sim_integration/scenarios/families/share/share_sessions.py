"""Share sessions, epoch by epoch. Kafka: ShareSessionCache, SharePartitionManager.newContext."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.observations import at_once, untimed
from broker_sim_integration.scenarios.families.share.support.share_configs import SHARE_GROUPS
from broker_sim_integration.scenarios.families.share.support.share_group_under_test import (
    EARLIEST,
    acknowledged,
    acquired,
    share_groups_on,
)
from broker_sim_integration.scenarios.families.share.support.share_member import (
    ACCEPT,
    FINAL_EPOCH,
    Ack,
    SharePartition,
)
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

PARTITIONS: Final = 3
UNKNOWN_PARTITION: Final = 99
WAIT_MS: Final = 2000


@scenario(topology="a share group, 3 partitions", configs=SHARE_GROUPS)
def a_share_session_goes_on_epoch_by_epoch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH, and INVALID_REQUEST for a first fetch that acknowledges."""
    (group,) = share_groups_on(cluster, configs=EARLIEST)
    topic = cluster.topics.create([cluster.first])
    share = SharePartition(topic)
    group.begin(topic)
    group.warm(share)
    member = group.share_member("second")
    member.client.produce(topic, b"a", acks=1)
    accept = {share: [Ack(0, 0, (ACCEPT,))]}
    for epoch in (5, FINAL_EPOCH):
        fetch = member.fetch(share, epoch=epoch)
        yield acquired(f"no session, epoch {epoch}", cluster, fetch, at_once())
    for epoch in (0, 1, FINAL_EPOCH):
        reply = member.acknowledge(accept, epoch=epoch)
        yield acknowledged(f"no session, epoch {epoch}, acknowledges", cluster, reply, at_once())
    first = member.fetch(share, acknowledged=accept, epoch=0)
    yield acquired("first one acknowledges", cluster, first, at_once())
    yield acquired("begins", cluster, member.fetch(share), at_once())
    for epoch in (2, 7, -2):
        yield acquired(f"epoch {epoch}", cluster, member.fetch(epoch=epoch), at_once())
        reply = member.acknowledge(accept, epoch=epoch)
        yield acknowledged(f"epoch {epoch}, acknowledges", cluster, reply, at_once())
    yield acquired("goes on", cluster, member.fetch(), at_once())
    reply = member.acknowledge(accept)
    yield acknowledged("acknowledges", cluster, reply, at_once())
    yield acquired("begins again", cluster, member.fetch(share, epoch=0), at_once())
    yield acquired("the old epoch", cluster, member.fetch(), at_once())
    yield acquired("ends", cluster, member.end_session(), at_once())
    yield acquired("ended", cluster, member.fetch(epoch=1), at_once())


@scenario(topology="a share group, 3 partitions", configs=SHARE_GROUPS)
def a_share_session_remembers_its_partitions(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Partitions are added and forgotten; responses have partitions with records, with errors, and new ones."""
    (group,) = share_groups_on(cluster, configs=EARLIEST)
    topic = cluster.topics.create([cluster.first], partitions=PARTITIONS)
    zero, one, two = (SharePartition(topic, partition) for partition in range(PARTITIONS))
    group.begin(topic)
    group.warm(zero, one, two)
    member, producer = group.share_member("second"), cluster.connect(cluster.first)

    def produce() -> None:
        for partition in range(PARTITIONS):
            producer.produce(topic, b"v", partition=partition, acks=1)

    yield acquired("zero and one, empty", cluster, member.fetch(zero, one), at_once())
    yield acquired("nothing new", cluster, member.fetch(), at_once())
    produce()
    yield acquired("records", cluster, member.fetch(), at_once())
    produce()
    yield acquired("one forgotten", cluster, member.fetch(two, forgotten=[one]), at_once())
    produce()
    yield acquired("without one", cluster, member.fetch(), at_once())
    missing = SharePartition(topic, UNKNOWN_PARTITION)
    yield acquired("missing partition", cluster, member.fetch(missing), at_once())
    yield acquired("still missing", cluster, member.fetch(), at_once())
    yield acquired("missing forgotten", cluster, member.fetch(forgotten=[missing]), at_once())
    unknown = SharePartition(cluster.topics.unknown())
    yield acquired("unknown topic", cluster, member.fetch(unknown), at_once())


@scenario(topology="a share group, 1 partition", configs=SHARE_GROUPS)
def a_share_fetch_has_to_name_its_member(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_REQUEST without a member id or with a long one; a broker that is not the leader returns the leader."""
    (group,) = share_groups_on(cluster)
    topic = cluster.topics.create([cluster.first])
    share = SharePartition(topic)
    group.begin(topic)
    group.warm(share)
    for step, member_id in (("no id", ""), ("long id", "m" * 37)):
        member = group.share_member("second")
        member.member_id = member_id
        yield acquired(step, cluster, member.fetch(share, epoch=0), at_once())
        reply = member.acknowledge({share: [Ack(0, 0, (ACCEPT,))]}, epoch=1)
        yield acknowledged(f"{step}, acknowledges", cluster, reply, at_once())
    stranger = group.share_member("third", cluster.second)
    yield acquired("not the leader", cluster, stranger.fetch(share), at_once())
    reply = stranger.acknowledge({share: [Ack(0, 0, (ACCEPT,))]})
    yield acknowledged("not the leader, acknowledges", cluster, reply, at_once())
    other = group.share_member("fourth")
    other.group = cluster.topics.name("no.group")
    fetch = other.fetch(share, max_wait_ms=WAIT_MS)
    yield acquired("unknown group", cluster, fetch, untimed("its state is looked for"))
