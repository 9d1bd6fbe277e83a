"""Members that subscribe to a regular expression, which the coordinator resolves. Kafka: KIP-848, RE2.

A heartbeat never waits for the resolution: a later one returns the matched topics.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from broker_sim_integration.clients.group_members import LEAVES_STATIC
from broker_sim_integration.clients.groups import Offset, delete_offsets, describe_consumer_groups
from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.observations import untimed
from broker_sim_integration.scenarios.helpers.group_configs import QUICK_GROUPS
from broker_sim_integration.scenarios.helpers.groups import groups_on, ready_group
from broker_sim_integration.scenarios.helpers.observe import concluded
from broker_sim_integration.scenarios.helpers.side_by_side import pause_until
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.group_members import ConsumerMember
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.scenarios.helpers.groups import GroupUnderTest

TARGET_INTERVAL_MS: Final = 1100
"""Minimum time between two assignments (`group.consumer.assignment.interval.ms`), with some slack."""
LONG_SESSIONS: Final = QUICK_GROUPS | {"group.consumer.session.timeout.ms": "45000"}
REFRESH_MS: Final = 10_000
"""Minimum time between two resolutions of an expression."""
INVALID: Final = ("[", "(", ")", "*", "a**", "[z-a]", "a{2,1}", "\\", "(?<n", "(?z)")
RESOLVED: Final = untimed("when the expression was resolved")


def any_of(*topics: Topic) -> str:
    """Return an expression that matches names that begin with the name of one of the topics."""
    return "|".join(f"{re.escape(topic.name)}.*" for topic in topics)


def two_topics(cluster: ClusterUnderTest) -> list[Topic]:
    """Return a topic with two partitions and one with three."""
    return [cluster.topics.create([cluster.first], partitions=count) for count in (2, 3)]


def beat_until_told(cluster: ClusterUnderTest, member: ConsumerMember) -> None:
    """Send heartbeats until the member's epoch changes."""
    epoch = member.epoch

    def told() -> bool:
        member.heartbeat(owned=True)
        return member.epoch != epoch

    cluster.wait_until(told, f"{member.member_id} is in another epoch")


def has(step: str, member: ConsumerMember, *topics: Topic) -> Observation:
    """Observe the member's partitions of these topics, and its epoch."""
    owned = [sorted(member.owned.get(topic.topic_id, ())) for topic in topics]
    return concluded(step, owned=owned, epoch=member.epoch)


def seen(group: GroupUnderTest, step: str) -> Observation:
    """Observe the group in ConsumerGroupDescribe."""
    return group.seen(step, describe_consumer_groups(group.tool, group.name))


@scenario(topology="a group, 2 topics", configs=QUICK_GROUPS)
def an_expression_is_resolved_after_the_heartbeat(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The first response has no partitions; a later epoch has those of all matching topics."""
    group, (first, second) = ready_group(cluster), two_topics(cluster)
    member = group.consumer("first", regex=any_of(first, second))
    yield group.seen("joins", member.join())
    beat_until_told(cluster, member)
    yield has("has", member, first, second)
    yield seen(group, "described")
    yield group.seen("commits", member.commit(Offset(first, 0, 1)))
    deleted = delete_offsets(group.tool, group.name, {first.name: [0]})
    yield group.seen("offsets of a topic that matches", deleted)
    cluster.wait(TARGET_INTERVAL_MS)
    member.regex = f"{re.escape(first.name)}"
    yield group.seen("another expression", member.full_heartbeat(), RESOLVED)
    yield group.seen("leaves", member.leave())
    yield seen(group, "empty")


@scenario(topology="a group for each expression", configs=QUICK_GROUPS)
def an_expression_that_cannot_be_read_is_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_REGULAR_EXPRESSION with the reason; no group is created."""
    group, there = groups_on(cluster, cluster.first, 2)
    for regex in INVALID:
        yield group.seen(regex, group.consumer("first", regex=regex).join())
    yield seen(group, "not made")
    (topic, _) = two_topics(cluster)
    member = there.consumer("member", topics=[topic.name])
    member.join()
    epoch = member.epoch
    member.regex = "["
    yield there.seen("a member's", member.full_heartbeat())
    member.regex, member.epoch = None, epoch
    yield there.seen("it goes on", member.heartbeat())
    empty = group.consumer("empty", regex="")
    yield group.seen("an empty one", empty.join())


@scenario(topology="a group of two, 3 topics", configs=LONG_SESSIONS)
def a_topic_that_comes_later_is_matched_at_the_next_refresh(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The next refresh is ten seconds after the previous one, also for a new expression of the group."""
    group, (first, second) = ready_group(cluster), two_topics(cluster)
    member = group.consumer("first", regex=re.escape(first.name.removesuffix("1")) + ".*")
    resolved_ms = now_ms()
    member.join()
    beat_until_told(cluster, member)
    yield has("at first", member, first, second)
    later = cluster.topics.create([cluster.first], partitions=1)
    yield group.seen("too early", member.heartbeat())
    other = group.consumer("other", regex=f"{re.escape(first.name)}.*")
    yield group.seen("another expression", other.join())
    yield group.seen("too early for it", other.heartbeat())
    pause_until(resolved_ms + REFRESH_MS + TARGET_INTERVAL_MS)

    def has_got_it() -> bool:
        other.heartbeat(owned=True)
        member.heartbeat(owned=True)
        return later.topic_id in member.owned

    cluster.wait_until(has_got_it, "the new topic was matched")
    yield concluded("matched", partitions=member.owned[later.topic_id])


@scenario(topology="a group of two, 2 topics", configs=QUICK_GROUPS)
def names_and_expressions_are_one_subscription(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A member gets topics of both; without its expression it keeps the topics that it names."""
    group, (first, second) = ready_group(cluster), two_topics(cluster)
    member = group.consumer("first", topics=[first.name], regex=re.escape(second.name))
    member.join()
    yield has("named", member, first, second)
    cluster.wait(TARGET_INTERVAL_MS)
    beat_until_told(cluster, member)
    yield has("both", member, first, second)
    cluster.wait(TARGET_INTERVAL_MS)
    member.regex = ""
    yield group.seen("without the expression", member.full_heartbeat())
    yield group.seen("has given up", member.heartbeat(owned=True))
    yield has("kept", member, first, second)
    yield seen(group, "described")


@scenario(topology="a group of two, 2 topics", configs=QUICK_GROUPS)
def an_expression_that_is_known_is_assigned_at_once(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A second member with the same expression waits only for the first member's revocation."""
    group, (first, _) = ready_group(cluster), two_topics(cluster)
    regex = re.escape(first.name)
    member = group.consumer("first", regex=regex, instance_id="static")
    member.join()
    beat_until_told(cluster, member)
    cluster.wait(TARGET_INTERVAL_MS)
    second = group.consumer("second", regex=regex)
    yield group.seen("second joins", second.join())
    yield group.seen("first is told", member.heartbeat(owned=True))
    yield group.seen("first has given up", member.heartbeat(owned=True))
    yield group.seen("second gets", second.heartbeat(owned=True))
    yield seen(group, "described")
    yield group.seen("first leaves for a while", member.leave(LEAVES_STATIC))
    successor = group.consumer("successor", regex=regex, instance_id="static")
    yield group.seen("its successor", successor.join())
    nothing = group.consumer("nothing", regex="matches-no-topic")
    cluster.wait(TARGET_INTERVAL_MS)
    yield group.seen("one that matches nothing", nothing.join())
    yield group.seen("still nothing", nothing.heartbeat())
