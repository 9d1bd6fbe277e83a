"""Records that members of share groups acquire and acknowledge. Kafka: SharePartition, InFlightState."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.observations import at_once, at_timeout, on_event, untimed
from broker_sim_integration.scenarios.families.share.support.share_configs import SHARE_GROUPS
from broker_sim_integration.scenarios.families.share.support.share_group_under_test import (
    EARLIEST,
    acknowledged,
    acquired,
    share_groups_on,
)
from broker_sim_integration.scenarios.families.share.support.share_member import (
    ACCEPT,
    GAP,
    RECORD_LIMIT,
    REJECT,
    RELEASE,
    RENEW,
    Ack,
    FetchOptions,
    SharePartition,
)
from broker_sim_integration.scenarios.helpers.side_by_side import SAMPLES
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

LIMIT: Final = 3
LOCK_MS: Final = 1000
SHORT_LOCKS: Final = EARLIEST | {"share.record.lock.duration.ms": str(LOCK_MS)}
LONG_MS: Final = 10_000
SHORT_MS: Final = 300
RELEASED_MS: Final = 500
"""Wait in ms after a release: it is persisted only after the response, or the end of the connection."""
STAGGER_MS: Final = 5
STATE_IS_READ: Final = untimed("the state of a share partition is read before it is fetched from")


@scenario(topology="a share group, 1 partition", configs=SHARE_GROUPS)
def a_record_is_delivered_as_often_as_the_limit_says(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each delivery is counted; after share.delivery.count.limit deliveries a released record is archived."""
    (group,) = share_groups_on(cluster, configs=EARLIEST | {"share.delivery.count.limit": str(LIMIT)})
    topic = cluster.topics.create([cluster.first])
    share = SharePartition(topic)
    group.begin(topic)
    group.warm(share)
    member = group.share_member("second")
    member.client.produce(topic, b"a", b"b", b"c", acks=1)
    yield acquired("delivered", cluster, member.fetch(share), at_once())
    for number in range(2, LIMIT + 2):
        release = {share: [Ack(0, 2, (RELEASE,))]}
        released = member.acknowledge(release)
        yield acknowledged(f"released {number}", cluster, released, at_once())
        if number <= LIMIT:
            yield acquired(f"delivery {number}", cluster, member.fetch(), at_once())
    reply = member.fetch(max_wait_ms=SHORT_MS)
    yield acquired("nothing is left", cluster, reply, at_once())
    yield group.seen("offsets", group.describe_offsets({topic.name: [0]}))


@scenario(topology="a share group, 1 partition", configs=SHARE_GROUPS)
def records_are_acknowledged_one_by_one_or_together(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Accepted, released, rejected, left out as a gap; records that are not acquired and bad types get errors."""
    (group,) = share_groups_on(cluster, configs=EARLIEST)
    topic = cluster.topics.create([cluster.first])
    share = SharePartition(topic)
    group.begin(topic)
    group.warm(share)
    member, other = group.share_member("second"), group.share_member("third")
    member.client.produce(topic, *(b"%d" % number for number in range(10)), acks=1)
    yield acquired("all", cluster, member.fetch(share), at_once())
    other.fetch(share)
    steps = (
        ("not acquired", [Ack(8, 12, (ACCEPT,))]),
        ("no types", [Ack(0, 1, ())]),
        ("too few types", [Ack(0, 3, (ACCEPT, ACCEPT))]),
        ("unknown type", [Ack(0, 0, (9,))]),
        ("renewed", [Ack(0, 0, (RENEW,))]),
        ("backwards", [Ack(4, 4, (ACCEPT,)), Ack(2, 2, (ACCEPT,))]),
        ("the first two", [Ack(0, 1, (ACCEPT,))]),
        ("one by one", [Ack(2, 5, (RELEASE, REJECT, GAP, ACCEPT))]),
        ("twice", [Ack(0, 1, (ACCEPT,))]),
        ("two batches", [Ack(6, 6, (RELEASE,)), Ack(7, 8, (ACCEPT,))]),
    )
    for step, acks in steps:
        yield acknowledged(step, cluster, member.acknowledge({share: acks}), at_once())
        yield group.seen(f"{step}: offsets", group.describe_offsets({topic.name: [0]}))
    foreign = other.acknowledge({share: [Ack(9, 9, (ACCEPT,))]})
    yield acknowledged("of another member", cluster, foreign, at_once())
    yield acquired("released ones", cluster, other.fetch(), at_once())
    accepted = other.fetch(acknowledged={share: [Ack(2, 2, (ACCEPT,)), Ack(6, 6, (REJECT,))]}, max_wait_ms=SHORT_MS)
    yield acquired("acknowledged by a fetch", cluster, accepted, at_timeout(SHORT_MS))
    unknown = SharePartition(cluster.topics.unknown())
    refused = member.acknowledge({unknown: [Ack(0, 0, (ACCEPT,))]})
    yield acknowledged("unknown topic", cluster, refused, at_once())


@scenario(topology="a share group, 30 partitions", configs=SHARE_GROUPS)
def a_lock_that_times_out_makes_records_available(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty records: share.record.lock.duration.ms after it was acquired, each is delivered to another member."""
    (group,) = share_groups_on(cluster, configs=SHORT_LOCKS)
    topic = cluster.topics.create([cluster.first], partitions=SAMPLES)
    shares = [SharePartition(topic, partition) for partition in range(SAMPLES)]
    group.begin(topic)
    group.warm(*shares)
    producer = cluster.connect(cluster.first)
    waiting = []
    for share in shares:
        producer.produce(topic, b"locked", partition=share.partition, acks=1)
    for share in shares:
        owner = group.share_member(f"owner-{share.partition}")
        owned = owner.fetch(share)
        assert owned.message.responses, owned.message
        heir = group.share_member(f"heir-{share.partition}")
        waiting.append((owner, owned, heir.start_fetch(share, max_wait_ms=LONG_MS)))
        cluster.wait(STAGGER_MS)
    for attempt, (owner, owned, pending) in enumerate(waiting, 1):
        reply = pending.result()
        due = on_event(owned.answered_ms + LOCK_MS - reply.sent_ms, earliest_ms=owned.sent_ms + LOCK_MS - reply.sent_ms)
        yield acquired("delivered again", cluster, reply, due, attempt=attempt)
        late = owner.acknowledge({shares[attempt - 1]: [Ack(0, 0, (ACCEPT,))]})
        if attempt == 1:
            yield acknowledged("too late", cluster, late, at_once())


@scenario(topology="a share group, 1 partition", configs=SHARE_GROUPS)
def a_renewed_lock_lasts_longer(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Renewed after half of its duration, it ends that much later (KIP-1222); a renewal fetches no records."""
    (group,) = share_groups_on(cluster, configs=SHORT_LOCKS)
    topic = cluster.topics.create([cluster.first])
    share = SharePartition(topic)
    group.begin(topic)
    group.warm(share)
    owner, heir = group.share_member("owner"), group.share_member("heir")
    owner.client.produce(topic, b"renewed", b"not renewed", acks=1)
    owned = owner.fetch(share)
    yield acquired("acquired", cluster, owned, at_once())
    both = {share: [Ack(0, 1, (RENEW,))]}
    wrong = owner.fetch(acknowledged=both, epoch=owner.session_epoch, renews=True)
    yield acquired("renews and fetches", cluster, wrong, at_once())
    cluster.wait(LOCK_MS / 2)
    renewed = owner.acknowledge({share: [Ack(0, 0, (RENEW,))]}, renews=True)
    yield acknowledged("renewed", cluster, renewed, at_once())
    first = heir.fetch(share, max_wait_ms=LONG_MS)
    due = on_event(owned.answered_ms + LOCK_MS - first.sent_ms, earliest_ms=owned.sent_ms + LOCK_MS - first.sent_ms)
    yield acquired("the one that was not renewed", cluster, first, due)
    second = heir.fetch(max_wait_ms=LONG_MS)
    due = on_event(
        renewed.answered_ms + LOCK_MS - second.sent_ms, earliest_ms=renewed.sent_ms + LOCK_MS - second.sent_ms
    )
    yield acquired("the renewed one", cluster, second, due)


@scenario(topology="a share group, 1 partition", configs=SHARE_GROUPS)
def what_a_member_leaves_is_delivered_to_others(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The last request of a session releases the records that it does not acknowledge; so does a lost connection.

    Without any session the leader drops the share partition, and reads its state again later.
    """
    (group,) = share_groups_on(cluster, configs=EARLIEST)
    topic = cluster.topics.create([cluster.first])
    share = SharePartition(topic)
    group.begin(topic)
    group.warm(share)
    second, third, bystander = (group.share_member(name) for name in ("second", "third", "bystander"))
    second.client.produce(topic, b"a", b"b", b"c", acks=1)
    yield acquired("second", cluster, second.fetch(share), at_once())
    ended = second.end_session({share: [Ack(0, 0, (ACCEPT,))]})
    yield acquired("its last", cluster, ended, at_once())
    cluster.wait(RELEASED_MS)
    yield acquired("third", cluster, third.fetch(share), at_once())
    yield acquired("bystander", cluster, bystander.fetch(share), at_once())
    third.client.close()
    cluster.wait(RELEASED_MS)
    yield acquired("second again", cluster, second.fetch(share), at_once())
    for member in (second, bystander):
        member.client.close()
    cluster.wait(RELEASED_MS)
    last = group.share_member("last").fetch(share, max_wait_ms=LONG_MS)
    yield acquired("last", cluster, last, STATE_IS_READ)


@scenario(topology="a share group, 1 partition", configs=SHARE_GROUPS)
def a_share_fetch_takes_as_many_records_as_it_wants(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Complete batches, or with a record limit (KIP-1206) at most max_records; acquired in parts of batch_size."""
    (group,) = share_groups_on(cluster, configs=EARLIEST)
    topic = cluster.topics.create([cluster.first])
    share = SharePartition(topic)
    group.begin(topic)
    group.warm(share)
    member = group.share_member("second")
    for number in range(3):
        member.client.produce(topic, *([b"%d" % number] * 5), acks=1)
    yield acquired("two", cluster, member.fetch(share, max_records=2), at_once())
    limited = member.fetch(max_records=2, acquire_mode=RECORD_LIMIT)
    yield acquired("two, limited", cluster, limited, at_once())
    yield acquired("the rest", cluster, member.fetch(batch_size=2), at_once())
    other = group.share_member("third")
    cases: dict[str, FetchOptions] = {
        "no records": {"max_wait_ms": SHORT_MS, "max_records": 0},
        "no batch": {"max_wait_ms": SHORT_MS, "batch_size": 0},
        "unknown mode": {"max_wait_ms": SHORT_MS, "acquire_mode": 2},
        "no bytes": {"max_wait_ms": SHORT_MS, "max_bytes": 0},
    }
    for step, options in cases.items():
        other.session_epoch = 0
        reply = other.fetch(share, **options)
        due = at_timeout(SHORT_MS) if step == "no batch" else at_once()
        yield acquired(step, cluster, reply, due)
