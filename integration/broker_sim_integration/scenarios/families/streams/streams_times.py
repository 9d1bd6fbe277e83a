"""Timeouts of streams groups: the initial delay, sessions, and the revocation of tasks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from broker_sim_integration.clients.stopwatch import pause_ms
from broker_sim_integration.observations import Observation, on_event
from broker_sim_integration.scenarios.families.streams.support.streams_configs import (
    INITIAL_DELAY_MS,
    SESSION_MS,
    STREAMS_GROUPS,
)
from broker_sim_integration.scenarios.families.streams.support.streams_group_under_test import (
    describe_streams_groups,
    streams_groups_on,
)
from broker_sim_integration.scenarios.families.streams.support.topologies import subtopology
from broker_sim_integration.scenarios.helpers.side_by_side import SAMPLES, pause_until
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker_sim.protocol import messages
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.scenarios.families.streams.support.streams_group_under_test import (
        StreamsGroupUnderTest,
        StreamsMember,
    )

    Described = messages.StreamsGroupDescribeResponse.DescribedGroup
    Began = Reply[messages.StreamsGroupHeartbeatResponse]

LOOKS_BEFORE_MS: Final = 100
LOOKS_EVERY_MS: Final = 1
STAGGER_MS: Final = 5
REVOCATION_MS: Final = 1000


def _when_over(
    step: str,
    groups: list[StreamsGroupUnderTest],
    began: list[Began],
    wait_ms: int,
    is_over: Callable[[Described], bool],
) -> Iterator[Observation]:
    """Describe all groups until each is over, and observe when that happened after its heartbeat."""
    waiting = {group.name: (number, told) for number, (group, told) in enumerate(zip(groups, began, strict=True), 1)}
    pause_until(began[0].sent_ms + wait_ms - LOOKS_BEFORE_MS)
    seen: dict[int, Observation] = {}
    while waiting:
        looked = describe_streams_groups(groups[0], *waiting)
        for described in looked.message.groups:
            if not is_over(described):
                continue
            number, told = waiting.pop(described.group_id)
            seen[number] = Observation(
                step,
                error_code=described.error_code,
                elapsed_ms=looked.answered_ms - told.sent_ms,
                answered_ms=looked.answered_ms,
                timing=on_event(told.elapsed_ms + wait_ms, earliest_ms=float(wait_ms)),
                attempt=number,
                fields={"state": described.group_state, "members": len(described.members)},
            )
        pause_ms(LOOKS_EVERY_MS)
    yield from (seen[number] for number in sorted(seen))


@scenario(topology="30 streams groups", configs=STREAMS_GROUPS)
def a_new_streams_group_waits_for_members(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups: tasks are assigned group.streams.initial.rebalance.delay.ms after the first heartbeat.

    A second heartbeat is needed in that time, because it checks the topics.
    """
    topic = cluster.topics.create([cluster.first])
    groups = streams_groups_on(cluster, SAMPLES)
    began = []
    for group in groups:
        member = group.streams_member("first", subtopology("0", topic.name))
        began.append(member.join())
        if group is groups[0]:
            yield group.seen("delayed", began[0])
        member.heartbeat()
        cluster.wait(STAGGER_MS)
    yield from _when_over(
        "assigned", groups, began, INITIAL_DELAY_MS, lambda group: group.assignment_epoch == group.group_epoch
    )


@scenario(topology="30 streams groups", configs=STREAMS_GROUPS)
def a_silent_streams_member_is_fenced_after_its_session(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups: each is Empty after its member's session timeout."""
    topic = cluster.topics.create([cluster.first])
    groups = streams_groups_on(cluster, SAMPLES)
    began = []
    for group in groups:
        began.append(group.streams_member("first", subtopology("0", topic.name)).join())
        cluster.wait(STAGGER_MS)
    yield from _when_over("fenced", groups, began, SESSION_MS, lambda group: not group.members)


def _has_tasks(member: StreamsMember) -> bool:
    return not member.heartbeat().message.error_code and bool(member.active)


@scenario(topology="30 streams groups, 2 members each", configs=STREAMS_GROUPS)
def a_streams_member_that_gives_nothing_up_is_fenced(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups: the member is gone its rebalance timeout after the heartbeat that revoked a task."""
    topic = cluster.topics.create([cluster.first], partitions=2)
    groups = streams_groups_on(cluster, SAMPLES)
    reads = subtopology("0", topic.name)
    members = [group.streams_member("first", reads, rebalance_timeout_ms=REVOCATION_MS) for group in groups]
    for member in members:
        member.join()
        member.heartbeat()
    cluster.wait(INITIAL_DELAY_MS)
    for group, member in zip(groups, members, strict=True):
        cluster.wait_until(partial(_has_tasks, member), "the member has tasks")
        joined = group.streams_member("second", reads).join()
        assert not joined.message.error_code, joined.message
    began = []
    for member in members:
        began.append(member.heartbeat())
        cluster.wait(STAGGER_MS)
    yield from _when_over("fenced", groups, began, REVOCATION_MS, lambda group: len(group.members) == 1)
