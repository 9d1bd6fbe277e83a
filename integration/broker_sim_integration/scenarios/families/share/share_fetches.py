"""Share fetches that wait for records. Kafka: DelayedShareFetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.clients.broker_client import batch_of
from broker_sim_integration.observations import at_once, at_timeout
from broker_sim_integration.scenarios.families.share.support.share_configs import FEW_SESSIONS, MAX_SIZE, SHARE_GROUPS
from broker_sim_integration.scenarios.families.share.support.share_group_under_test import (
    EARLIEST,
    acquired,
    share_groups_on,
)
from broker_sim_integration.scenarios.families.share.support.share_member import (
    RELEASE,
    Ack,
    ShareMember,
    SharePartition,
)
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.side_by_side import SAMPLES, lanes_of, side_by_side, turns_of
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.protocol import messages
    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Pending
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.scenarios.helpers.side_by_side import Turn

WAITS_MS: Final = (20, 100, 500, 1500)
WITHIN_MS: Final = 3500
LONG_MS: Final = 10_000
SHORT_MS: Final = 500
PARKED_AFTER_MS: Final = 20
VALUE: Final = b"v" * 32
BATCH_BYTES: Final = len(batch_of([VALUE]))


@scenario(topology="a share group, a partition for each connection", configs=SHARE_GROUPS)
def share_fetches_wait_as_long_as_they_ask(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty share fetches of empty partitions for each max_wait_ms: 20, 100, 500, 1500."""
    turns = turns_of(WAITS_MS, WITHIN_MS)
    (group,) = share_groups_on(cluster)
    topic = cluster.topics.create([cluster.first], partitions=lanes_of(turns))
    shares = [SharePartition(topic, lane) for lane in range(lanes_of(turns))]
    group.begin(topic)
    group.warm(*shares)
    members: dict[int, ShareMember] = {}

    def fetch(client: BrokerClient, turn: Turn) -> Pending[messages.ShareFetchResponse]:
        lane = turn.lane
        if lane not in members:
            members[lane] = ShareMember(group.name, f"lane-{lane}", client, client)
        asked = [shares[lane]] if turn.round == 1 else []
        return members[lane].start_fetch(*asked, max_wait_ms=turn.wait_ms)

    for _, turn, reply in side_by_side(cluster, turns, {"fetch": fetch}):
        step = f"max wait {turn.wait_ms}"
        yield acquired(step, cluster, reply, at_timeout(turn.wait_ms), attempt=turn.attempt)


@scenario(topology="a share group, 1 partition", configs=SHARE_GROUPS)
def a_record_wakes_a_share_fetch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty parked share fetches, one after the other, each woken by a produce with acks=1."""
    (group,) = share_groups_on(cluster)
    topic = cluster.topics.create([cluster.first])
    share = SharePartition(topic)
    group.begin(topic)
    group.warm(share)
    member, producer = group.share_member("second"), cluster.connect(cluster.first)
    for attempt in range(1, SAMPLES + 1):
        asked = [share] if attempt == 1 else []
        parked = member.start_fetch(*asked, max_wait_ms=LONG_MS)
        cluster.wait(PARKED_AFTER_MS)
        reply = producer.produce(topic, VALUE, acks=1)
        fetch = parked.result()
        yield acquired("woken", cluster, fetch, after(fetch, reply), attempt=attempt)


@scenario(topology="a share group, 1 partition x 3 replicas", configs=SHARE_GROUPS)
def a_share_fetch_waits_for_what_all_in_sync_replicas_have(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty share fetches, each woken when the followers have the record, with the response to acks=all."""
    (group,) = share_groups_on(cluster)
    topic = cluster.topics.create()
    share = SharePartition(topic)
    group.begin(topic)
    group.warm(share)
    member, producer = group.share_member("second"), cluster.connect(cluster.first)
    producer.produce(topic, b"the first one may take longer")
    member.fetch(share, max_wait_ms=LONG_MS)
    for attempt in range(1, SAMPLES + 1):
        parked = member.start_fetch(max_wait_ms=LONG_MS)
        cluster.wait(PARKED_AFTER_MS)
        reply = producer.produce(topic, VALUE)
        fetch = parked.result()
        yield acquired("woken", cluster, fetch, after(fetch, reply), attempt=attempt)


@scenario(topology="a share group, 2 partitions", configs=SHARE_GROUPS)
def min_bytes_of_a_share_fetch_are_counted_over_partitions(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """One batch in each of two partitions is enough together; fewer bytes are returned at max_wait_ms."""
    (group,) = share_groups_on(cluster)
    topic = cluster.topics.create([cluster.first], partitions=2)
    shares = [SharePartition(topic, partition) for partition in range(2)]
    group.begin(topic)
    group.warm(*shares)
    member, producer = group.share_member("second"), cluster.connect(cluster.first)
    parked = member.start_fetch(*shares, max_wait_ms=LONG_MS, min_bytes=2 * BATCH_BYTES)
    for share in shares:
        cluster.wait(SHORT_MS / 2)
        reply = producer.produce(topic, VALUE, partition=share.partition, acks=1)
    fetch = parked.result()
    yield acquired("woken by the second", cluster, fetch, after(fetch, reply))
    producer.produce(topic, VALUE, acks=1)
    few = member.fetch(max_wait_ms=SHORT_MS, min_bytes=2 * BATCH_BYTES)
    yield acquired("too few", cluster, few, at_timeout(SHORT_MS))
    none = member.fetch(max_wait_ms=SHORT_MS, min_bytes=0)
    yield acquired("no bytes asked for", cluster, none, at_once())
    yield acquired("no wait", cluster, member.fetch(), at_once())


@scenario(topology="a share group, 1 partition", configs=SHARE_GROUPS)
def released_records_do_not_wake_a_share_fetch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Records released by an acknowledgement or the end of a session: a parked share fetch gets them at max_wait_ms."""
    (group,) = share_groups_on(cluster, configs=EARLIEST)
    topic = cluster.topics.create([cluster.first])
    share = SharePartition(topic)
    group.begin(topic)
    group.warm(share)
    owner, heir = group.share_member("owner"), group.share_member("heir")
    owner.client.produce(topic, b"released", acks=1)
    yield acquired("owner", cluster, owner.fetch(share), at_once())
    parked = heir.start_fetch(share, max_wait_ms=2 * SHORT_MS)
    cluster.wait(SHORT_MS)
    owner.acknowledge({share: [Ack(0, 0, (RELEASE,))]})
    yield acquired("heir", cluster, parked.result(), at_timeout(2 * SHORT_MS))
    parked = owner.start_fetch(max_wait_ms=2 * SHORT_MS)
    cluster.wait(SHORT_MS)
    heir.end_session()
    yield acquired("owner again", cluster, parked.result(), at_timeout(2 * SHORT_MS))


@scenario(topology="a share group, 1 partition", configs=FEW_SESSIONS)
def a_share_fetch_without_room_for_its_session_waits(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """SHARE_SESSION_LIMIT_REACHED after max_wait_ms; there is room again when a session has ended."""
    (group,) = share_groups_on(cluster)
    topic = cluster.topics.create([cluster.first])
    share = SharePartition(topic)
    group.begin(topic)
    group.warm(share)
    members = [group.share_member(f"number-{number}") for number in range(MAX_SIZE + 1)]
    for number, member in enumerate(members[:-1]):
        yield acquired(f"session {number}", cluster, member.fetch(share), at_once())
    *_, one, late = members
    for wait_ms in (0, SHORT_MS, 2 * SHORT_MS):
        refused = late.fetch(share, epoch=0, max_wait_ms=wait_ms)
        yield acquired(f"refused after {wait_ms}", cluster, refused, at_timeout(wait_ms))
    one.end_session()
    yield acquired("room", cluster, late.fetch(share, epoch=0), at_once())
