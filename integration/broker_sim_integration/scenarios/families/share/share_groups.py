"""Members of share groups, heartbeat by heartbeat, and descriptions of their groups. Kafka: KIP-932, ShareGroup."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker_sim_integration.clients.consumer_protocol import subscription
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
from broker_sim_integration.clients.stopwatch import pause_ms
from broker_sim_integration.observations import Observation, on_event
from broker_sim_integration.scenarios.families.share.support.share_configs import MAX_SIZE, SHARE_GROUPS
from broker_sim_integration.scenarios.families.share.support.share_group_under_test import (
    describe_share_groups,
    share_groups_on,
)
from broker_sim_integration.scenarios.helpers.observe import concluded
from broker_sim_integration.scenarios.helpers.side_by_side import SAMPLES, pause_until
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.scenarios.families.share.support.share_group_under_test import ShareGroupUnderTest

PARTITIONS: Final = 4
LONG_ID: Final = "m" * 37
"""A member id one character longer than a UUID."""
SESSION_MS: Final = 2000
SHORT_SESSIONS: Final = {"share.session.timeout.ms": str(SESSION_MS), "share.heartbeat.interval.ms": "500"}
LOOKS_BEFORE_MS: Final = 100
LOOKS_EVERY_MS: Final = 1
STAGGER_MS: Final = 5


def _listed(step: str, group: ShareGroupUnderTest, *types: str) -> Observation:
    """Observe the group in ListGroups with these group types."""
    found = [
        [found.protocol_type, found.group_state, found.group_type]
        for found in list_groups(group.tool, types=list(types)).message.groups
        if found.group_id == group.name
    ]
    return concluded(step, groups=found)


def _counted(seen: Observation) -> Observation:
    """Return a copy with the number of assigned partitions: the assignment itself depends on the topic's random id."""
    fields = {name: len(value) if isinstance(value, list) else value for name, value in seen.fields.items()}
    return replace(seen, fields=fields)


@scenario(topology="a share group, 4 partitions", configs=SHARE_GROUPS)
def members_of_a_share_group_share_partitions(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Partitions are assigned when the share partitions have state; the epoch rises with each change."""
    (group,) = share_groups_on(cluster)
    topic = cluster.topics.create([cluster.first], partitions=PARTITIONS)
    joined = group.share_member("first").heartbeat([topic.name], rack_id="rack")
    yield group.seen("first joins", joined)
    first = group.begin(topic)
    yield group.seen("described", group.described())
    second = group.share_member("second")
    yield _counted(group.seen("second joins", second.heartbeat([topic.name])))
    yield _counted(group.seen("described with two", group.described()))
    yield _counted(group.seen("first is told", first.heartbeat()))
    yield _counted(group.seen("second has", second.heartbeat()))
    yield _counted(group.seen("described again", group.described()))
    yield _listed("listed", group, "share")
    yield _listed("listed among others", group, "consumer", "classic")
    yield group.seen("second leaves", second.leave())
    yield group.seen("second leaves again", second.leave())
    yield group.seen("first has all", first.heartbeat())
    yield group.seen("first leaves", first.leave())
    yield group.seen("empty", group.described())
    yield group.seen("deleted", delete_groups(group.tool, group.name))
    yield group.seen("gone", group.described())


@scenario(topology="a share group, 4 partitions", configs=SHARE_GROUPS)
def other_epochs_of_a_share_member_are_fenced(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID and GROUP_ID_NOT_FOUND, with their messages."""
    group, unknown = share_groups_on(cluster, 2)
    topic = cluster.topics.create([cluster.first], partitions=PARTITIONS)
    member = group.begin(topic)
    for step in (0, -1, 1, -2):
        yield group.seen(f"epoch {step:+}", member.heartbeat(epoch=member.epoch + step))
    yield group.seen("joins again", member.heartbeat([topic.name], epoch=0))
    stranger = group.share_member("stranger")
    yield group.seen("unknown member", stranger.heartbeat(epoch=1))
    yield group.seen("unknown member leaves", stranger.leave())
    nobody = unknown.share_member("nobody")
    yield unknown.seen("unknown group", nobody.heartbeat(epoch=1))
    yield unknown.seen("unknown group is left", nobody.leave())
    yield unknown.seen("unknown group is described", unknown.described())
    elsewhere = group.share_member("first")
    elsewhere.coordinator = cluster.connect(cluster.second)
    yield group.seen("another broker", elsewhere.heartbeat(epoch=member.epoch))


@scenario(topology="a share group", configs=SHARE_GROUPS)
def a_first_share_heartbeat_has_to_be_complete(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_REQUEST that names the missing field, and GROUP_MAX_SIZE_REACHED for one member too many."""
    (group,) = share_groups_on(cluster)
    topic = cluster.topics.create([cluster.first])
    names = [topic.name]
    member = group.share_member("first")
    yield group.seen("no topics", member.heartbeat())
    yield group.seen("empty topics", member.heartbeat([]))
    yield group.seen("blank rack", member.heartbeat(names, rack_id=" "))
    yield group.seen("epoch -2", member.heartbeat(names, epoch=-2))
    for step, member_id in (("long id", LONG_ID), ("no id", "")):
        other = group.share_member("other")
        other.member_id = member_id
        yield group.seen(step, other.heartbeat(names))
    yield group.seen("described", describe_share_groups(group, "", group.name))
    group.begin(topic)
    for number in range(2, MAX_SIZE + 2):
        joins = group.share_member(f"number-{number}")
        yield group.seen(f"member {number} joins", joins.heartbeat(names))
    yield group.seen("one of them, again", group.share_member("number-2").heartbeat(names))


@scenario(topology="a share group and a consumer group", configs=SHARE_GROUPS)
def a_share_group_is_of_a_kind_of_its_own(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Requests for other types of groups get errors, and so do requests for share groups to another type of group."""
    group, consumers = share_groups_on(cluster, 2)
    topic = cluster.topics.create([cluster.first])
    names = [topic.name]
    member = group.begin(topic)
    joins = group.member(protocols={"range": subscription(names)})
    yield group.seen("classic join", joins.join())
    yield group.seen("consumer joins", group.consumer("other", topics=names).join())
    yield group.seen("described as classic", describe_groups(group.tool, group.name))
    yield group.seen("described as consumers", describe_consumer_groups(group.tool, group.name))
    yield group.seen("commit", commit(group.tool, group.name, Offset(topic, 0, 5)))
    yield group.seen("committed", committed(group.tool, group.name, {topic: [0]}))
    yield group.seen("deleted offsets", delete_offsets(group.tool, group.name, {topic.name: [0]}))
    yield group.seen("deleted", delete_groups(group.tool, group.name))
    consumers.consumer("other", topics=names).join()
    stranger = consumers.share_member("stranger")
    yield consumers.seen("share member joins", stranger.heartbeat(names))
    yield consumers.seen("described as shares", consumers.described())
    yield consumers.seen("start offsets", consumers.describe_offsets(None))
    yield consumers.seen("altered", consumers.alter_offsets({topic.name: {0: 5}}))
    yield consumers.seen("deleted share offsets", consumers.delete_offsets(names))
    yield group.seen("still there", member.heartbeat())


@scenario(topology="30 share groups", configs=SHARE_GROUPS)
def a_silent_share_member_is_fenced_after_its_session(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups: each is Empty share.session.timeout.ms after its member's last heartbeat."""
    topic = cluster.topics.create([cluster.first])
    groups = share_groups_on(cluster, SAMPLES, SHORT_SESSIONS)
    waiting = {}
    for number, group in enumerate(groups, 1):
        joined = group.share_member("first").heartbeat([topic.name])
        assert not joined.message.error_code, joined.message
        waiting[group.name] = number, joined
        cluster.wait(STAGGER_MS)
    pause_until(waiting[groups[0].name][1].sent_ms + SESSION_MS - LOOKS_BEFORE_MS)
    seen: dict[int, Observation] = {}
    while waiting:
        looked = describe_share_groups(groups[0], *waiting)
        for described in looked.message.groups:
            number, joined = waiting[described.group_id]
            if described.members:
                continue
            del waiting[described.group_id]
            due_ms = joined.answered_ms + SESSION_MS - joined.sent_ms
            seen[number] = Observation(
                "fenced",
                error_code=described.error_code,
                elapsed_ms=looked.answered_ms - joined.sent_ms,
                answered_ms=looked.answered_ms,
                timing=on_event(due_ms, earliest_ms=float(SESSION_MS)),
                attempt=number,
                fields={"state": described.group_state},
            )
        pause_ms(LOOKS_EVERY_MS)
    yield from (seen[number] for number in sorted(seen))
