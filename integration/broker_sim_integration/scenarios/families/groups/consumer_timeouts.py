"""Fencing of members of consumer groups after their timeouts. Kafka: GroupMetadataManager, KIP-848.

No request waits for a fencing, so each scenario describes thirty groups again and again until the member
is gone from all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim_integration.clients.groups import describe_consumer_groups
from broker_sim_integration.clients.stopwatch import pause_ms
from broker_sim_integration.observations import Observation, on_event
from broker_sim_integration.scenarios.families.groups.support.moving_groups import (
    TARGET_INTERVAL_MS,
    shared_topic,
    subscribed,
)
from broker_sim_integration.scenarios.helpers.group_configs import CONSUMER_SESSION_MS, QUICK_GROUPS
from broker_sim_integration.scenarios.helpers.groups import groups_on
from broker_sim_integration.scenarios.helpers.side_by_side import SAMPLES, pause_until
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from broker_sim_integration.clients.group_members import ClassicMember, ConsumerMember
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.scenarios.helpers.groups import GroupUnderTest

REBALANCE_MS: Final = 1500
CLASSIC_SESSION_MS: Final = 1600
LONG_SESSIONS: Final = QUICK_GROUPS | {"group.consumer.session.timeout.ms": "45000"}
"""A session of 45 s, so that no member of the consumer protocol is fenced while thirty groups are formed."""
STAGGER_MS: Final = 5
OF_MEMBERS: Final = frozenset({ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS})
LOOKS_BEFORE_MS: Final = 100
LOOKS_EVERY_MS: Final = 1


class Begun(NamedTuple):
    """A member whose timeout started with a request, and the response."""

    group: GroupUnderTest
    member: ClassicMember | ConsumerMember
    reply: Reply[Any]


def fenced(cluster: ClusterUnderTest, begun: Sequence[Begun], timeout_ms: int) -> Iterator[Observation]:
    """Observe the fencing of each member, which is due `timeout_ms` after its request in `begun`."""
    client = cluster.connect(cluster.first)
    assert all(one.reply.message.error_code in OF_MEMBERS for one in begun), begun
    waiting = {one.group.name: (number, one) for number, one in enumerate(begun, 1)}
    pause_until(begun[0].reply.sent_ms + timeout_ms - LOOKS_BEFORE_MS)
    seen: list[tuple[int, Observation]] = []
    while waiting:
        looked = describe_consumer_groups(client, *waiting)
        for described in looked.message.groups:
            number, (_, member, reply) = waiting[described.group_id]
            members = [known.member_id for known in described.members]
            if member.member_id in members:
                continue
            del waiting[described.group_id]
            due_ms = reply.answered_ms + timeout_ms - reply.sent_ms
            observed = Observation(
                "fenced",
                error_code=described.error_code,
                elapsed_ms=looked.answered_ms - reply.sent_ms,
                answered_ms=looked.answered_ms,
                timing=on_event(due_ms, earliest_ms=float(timeout_ms)),
                attempt=number,
                fields={"state": described.group_state, "members": len(members)},
            )
            seen.append((number, observed))
        pause_ms(LOOKS_EVERY_MS)
    for _, observed in sorted(seen, key=lambda found: found[0]):
        yield observed


def formed(cluster: ClusterUnderTest, topic: Topic, **options: int) -> list[tuple[GroupUnderTest, ConsumerMember]]:
    """Return thirty groups with one member each; a next assignment may be computed at once."""
    found = []
    for group in groups_on(cluster, cluster.first, SAMPLES):
        first = group.consumer("first", topics=[topic.name], **options)
        first.join()
        found.append((group, first))
    cluster.wait(TARGET_INTERVAL_MS)
    return found


def classic_member(cluster: ClusterUnderTest, group: GroupUnderTest, topic: Topic, **options: int) -> ClassicMember:
    """Return a new member of the classic protocol that has got its member id."""
    cluster.wait(STAGGER_MS)
    return group.with_id(protocols=subscribed(topic), rebalance_timeout_ms=REBALANCE_MS, **options)


@scenario(topology="30 groups", configs=QUICK_GROUPS)
def a_silent_member_is_fenced_after_the_session_of_its_group(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups: each is Empty group.consumer.session.timeout.ms after its member's last heartbeat."""
    topic = shared_topic(cluster)
    begun: list[Begun] = []
    for group in groups_on(cluster, cluster.first, SAMPLES):
        cluster.wait(STAGGER_MS)
        only = group.consumer("only", topics=[topic.name])
        only.join()
        begun.append(Begun(group, only, only.heartbeat()))
    yield from fenced(cluster, begun, CONSUMER_SESSION_MS)


@scenario(topology="30 groups of two", configs=LONG_SESSIONS)
def who_does_not_give_partitions_up_is_fenced_after_its_rebalance_timeout(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """Thirty groups: the timeout starts with the heartbeat whose response revokes partitions; the other gets them."""
    topic = shared_topic(cluster)
    begun: list[Begun] = []
    seconds = []
    for group, first in formed(cluster, topic, rebalance_timeout_ms=REBALANCE_MS):
        cluster.wait(STAGGER_MS)
        second = group.consumer("second", topics=[topic.name])
        second.join()
        begun.append(Begun(group, first, first.heartbeat(owned=True)))
        seconds.append((group, second))
    yield from fenced(cluster, begun, REBALANCE_MS)
    group, second = seconds[0]
    cluster.wait(TARGET_INTERVAL_MS)
    yield group.seen("the other one", second.heartbeat(owned=True))
    yield group.seen("the fenced one", begun[0].member.heartbeat())


@scenario(topology="30 mixed groups of two", configs=LONG_SESSIONS)
def a_silent_classic_member_is_fenced_after_its_own_session(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups: the session timeout of its JoinGroup counts, not that of the group."""
    topic = shared_topic(cluster)
    begun: list[Begun] = []
    for group, first in formed(cluster, topic):
        classic = classic_member(cluster, group, topic, session_timeout_ms=CLASSIC_SESSION_MS)
        classic.join()
        classic.sync()
        first.heartbeat(owned=True)
        begun.append(Begun(group, classic, classic.heartbeat()))
    yield from fenced(cluster, begun, CLASSIC_SESSION_MS)


@scenario(topology="30 mixed groups of two", configs=LONG_SESSIONS)
def a_classic_member_that_does_not_sync_is_fenced_after_its_rebalance_timeout(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """Thirty groups: the timeout starts with its JoinGroup, and heartbeats do not extend it."""
    topic = shared_topic(cluster)
    begun: list[Begun] = []
    for group, first in formed(cluster, topic):
        classic = classic_member(cluster, group, topic)
        begun.append(Begun(group, classic, classic.join()))
        classic.heartbeat()
        first.heartbeat(owned=True)
    yield from fenced(cluster, begun, REBALANCE_MS)


@scenario(topology="30 mixed groups of two", configs=LONG_SESSIONS)
def a_classic_member_that_does_not_rejoin_is_fenced_after_its_rebalance_timeout(
    cluster: ClusterUnderTest,
) -> Iterator[Observation]:
    """Thirty groups: the timeout starts with the first heartbeat that returns REBALANCE_IN_PROGRESS."""
    topic = shared_topic(cluster)
    pairs = []
    for group, first in formed(cluster, topic):
        classic = classic_member(cluster, group, topic)
        classic.join()
        classic.sync()
        # The first heartbeat revokes the partitions that the other member gets; the second owns only the rest.
        first.heartbeat(owned=True)
        first.heartbeat(owned=True)
        pairs.append((group, first, classic))
    begun: list[Begun] = []
    for group, first, classic in pairs:
        cluster.wait(STAGGER_MS)
        told = classic.heartbeat()
        assert told.message.error_code == ErrorCode.REBALANCE_IN_PROGRESS, told.message
        begun.append(Begun(group, classic, told))
        classic.heartbeat()
        first.heartbeat(owned=True)
    yield from fenced(cluster, begun, REBALANCE_MS)
