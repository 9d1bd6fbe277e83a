"""The begin and end of rebalances. Kafka: GroupMetadataManager.prepareRebalance, KIP-134, KIP-394.

Where a wait has a length, thirty groups wait in parallel, so that it is judged by its distribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim_integration.clients.groups import Offset, describe_groups
from broker_sim_integration.clients.stopwatch import now_ms
from broker_sim_integration.observations import at_timeout, untimed
from broker_sim_integration.scenarios.helpers.due import after
from broker_sim_integration.scenarios.helpers.group_configs import INITIAL_DELAY_MS, QUICK_GROUPS
from broker_sim_integration.scenarios.helpers.groups import form, groups_on, ready_group
from broker_sim_integration.scenarios.helpers.observe import concluded
from broker_sim_integration.scenarios.helpers.side_by_side import SAMPLES, pause_until
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from broker_sim.protocol import messages
    from broker_sim_integration.clients.group_members import ClassicMember
    from broker_sim_integration.clients.raw_client import Pending, Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.scenarios.helpers.groups import GroupUnderTest

    JoinReply = Reply[messages.JoinGroupResponse]

DEFAULT_INITIAL_DELAY_MS: Final = 3000
SESSION_MS: Final = 1600
SILENT_SESSION_MS: Final = 2800
LONG_SESSION_MS: Final = 20_000
REBALANCE_MS: Final = 1500
ARRIVES_AFTER_MS: Final = 1000
EXTENDED_MS: Final = 4500
STAGGER_MS: Final = 5
PARKED_AFTER_MS: Final = 50
LAST_JOINS: Final = untimed("when the last member has joined")
SHORT_REBALANCES: Final[Mapping[str, Any]] = {
    "rebalance_timeout_ms": REBALANCE_MS,
    "session_timeout_ms": LONG_SESSION_MS,
}
"""Options of members that a rebalance removes before their sessions expire."""


@scenario(topology="30 groups")
def the_first_member_waits_three_seconds_for_others(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups, with the default of group.initial.rebalance.delay.ms."""
    groups = groups_on(cluster, cluster.first, SAMPLES)
    members = [group.with_id() for group in groups]
    parked = [_start_join(cluster, member) for member in members]
    for attempt, (group, member, join) in enumerate(zip(groups, members, parked, strict=True), 1):
        due = at_timeout(DEFAULT_INITIAL_DELAY_MS)
        yield group.seen("alone", member.joined(join), due, attempt=attempt)


@scenario(topology="30 groups")
def a_member_that_arrives_extends_the_initial_delay(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups: each delay of 3 s in which a member joined is followed by another one.

    The second member joins after a second, so both joins complete after six seconds.
    """
    groups = groups_on(cluster, cluster.first, SAMPLES)
    over_ms = 2 * DEFAULT_INITIAL_DELAY_MS
    for attempt, (group, first, second) in enumerate(_two_arrive(cluster, groups), 1):
        yield group.seen("first", first, at_timeout(over_ms), attempt=attempt)
        due = after(second, first.sent_ms + over_ms)
        yield group.seen("second", second, due, attempt=attempt)


@scenario(topology="30 groups")
def the_initial_delay_is_extended_up_to_the_rebalance_timeout(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups with a rebalance timeout of 4.5 s: both joins complete then, not after six seconds."""
    groups = groups_on(cluster, cluster.first, SAMPLES)
    arrived = _two_arrive(cluster, groups, rebalance_timeout_ms=EXTENDED_MS)
    for attempt, (group, first, _) in enumerate(arrived, 1):
        yield group.seen("extended", first, at_timeout(EXTENDED_MS), attempt=attempt)


@scenario(topology="30 groups", configs=QUICK_GROUPS)
def a_short_rebalance_timeout_does_not_shorten_the_initial_delay(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups: the join completes after 300 ms, although the rebalance timeout is 100 ms."""
    groups = groups_on(cluster, cluster.first, SAMPLES)
    members = [group.with_id(rebalance_timeout_ms=100) for group in groups]
    parked = [_start_join(cluster, member) for member in members]
    for attempt, (group, member, join) in enumerate(zip(groups, members, parked, strict=True), 1):
        due = at_timeout(INITIAL_DELAY_MS)
        yield group.seen("alone", member.joined(join), due, attempt=attempt)


def _two_arrive(
    cluster: ClusterUnderTest, groups: list[GroupUnderTest], **options: Any
) -> list[tuple[GroupUnderTest, JoinReply, JoinReply]]:
    """Join two members to each group, the second a second later; return their responses."""
    pairs = [(group.with_id(**options), group.with_id(**options)) for group in groups]
    parked = [_start_join(cluster, first) for first, _ in pairs]
    later = []
    for join, (_, second) in zip(parked, pairs, strict=True):
        pause_until(join.sent_ms + ARRIVES_AFTER_MS)
        later.append(second.start_join())
    return [
        (group, first.joined(join), second.joined(joins_later))
        for group, (first, second), join, joins_later in zip(groups, pairs, parked, later, strict=True)
    ]


@scenario(topology="a group", configs=QUICK_GROUPS)
def a_rejoin_rebalances_when_it_has_to(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The leader's rejoin does; a follower's only with other metadata; none in CompletingRebalance."""
    group = ready_group(cluster)
    ((leader, follower),) = form([group], 2)
    yield group.seen("follower, as before", follower.join())
    follower.protocols = {"range": leader.protocols["range"] + b"other"}
    parked = group.parked_join(follower)
    yield group.seen("leader's heartbeat", leader.heartbeat())
    yield group.seen("leader", leader.join())
    yield group.seen("follower, other metadata", follower.joined(parked), LAST_JOINS)
    yield group.seen("follower while completing", follower.join())
    yield group.seen("leader while completing", leader.join())
    leader.sync({leader.member_id: b"a", follower.member_id: b"b"})
    yield group.seen("follower's sync", follower.sync())
    parked = group.parked_join(leader)
    yield group.seen("follower's heartbeat", follower.heartbeat())
    yield group.seen("follower joins", follower.join())
    yield group.seen("leader, as before", leader.joined(parked), LAST_JOINS)


@scenario(topology="a group", configs=QUICK_GROUPS)
def other_metadata_while_completing_begins_again(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The parked sync of the other member gets REBALANCE_IN_PROGRESS."""
    group = ready_group(cluster)
    ((leader, follower),) = form([group], 2)
    parked = group.parked_join(leader)
    follower.join()
    leader.joined(parked)
    sync = follower.start_sync()
    cluster.wait(PARKED_AFTER_MS)
    leader.protocols = {"range": leader.protocols["range"] + b"other"}
    parked = leader.start_join()
    reply = sync.result()
    yield group.seen("follower's sync", reply, after(reply, parked.sent_ms))
    yield group.seen("follower joins", follower.join())
    yield group.seen("leader joins", leader.joined(parked), LAST_JOINS)


@scenario(topology="30 groups of two", configs=QUICK_GROUPS)
def the_last_join_and_the_leaders_sync_answer_all(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups: a parked join completes with the last join, and a parked sync with the leader's sync."""
    groups = groups_on(cluster, cluster.first, SAMPLES)
    for attempt, (group, (leader, follower)) in enumerate(zip(groups, form(groups, 2), strict=True), 1):
        parked = group.parked_join(leader)
        last = follower.join()
        reply = leader.joined(parked)
        yield group.seen("last", last, attempt=attempt)
        yield group.seen("join", reply, after(reply, last), attempt=attempt)
        waiting = follower.start_sync()
        cluster.wait(STAGGER_MS)
        assigned = leader.sync({leader.member_id: b"a", follower.member_id: b"b"})
        synced = waiting.result()
        yield group.seen("leader's sync", assigned, attempt=attempt)
        yield group.seen("sync", synced, after(synced, assigned), attempt=attempt)


@scenario(topology="30 groups of two", configs=QUICK_GROUPS)
def who_does_not_rejoin_is_removed_after_the_rebalance_timeout(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups: the leader is alone in generation 3, and the other member gets UNKNOWN_MEMBER_ID."""
    groups = groups_on(cluster, cluster.first, SAMPLES)
    pairs = form(groups, 2, **SHORT_REBALANCES)
    parked = [_start_join(cluster, leader) for leader, _ in pairs]
    for attempt, (group, (leader, other)) in enumerate(zip(groups, pairs, strict=True), 1):
        reply = leader.joined(parked[attempt - 1])
        yield group.seen("leader", reply, at_timeout(REBALANCE_MS), attempt=attempt)
        if attempt == 1:
            yield group.seen("removed", other.heartbeat())


@scenario(topology="30 groups of two", configs=QUICK_GROUPS)
def a_silent_member_is_removed_after_its_session(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups: a join that waits for a silent member completes a session after that member's last heartbeat."""
    groups = groups_on(cluster, cluster.first, SAMPLES)
    pairs = form(groups, 2, session_timeout_ms=SILENT_SESSION_MS)
    parked, last = [], []
    for leader, silent in pairs:
        leader.heartbeat()
        last.append(silent.heartbeat())
        parked.append(leader.start_join())
    for attempt, (group, (leader, silent)) in enumerate(zip(groups, pairs, strict=True), 1):
        reply = leader.joined(parked[attempt - 1])
        heard = last[attempt - 1]
        due = after(reply, heard.answered_ms + SILENT_SESSION_MS, since=heard.sent_ms + SILENT_SESSION_MS)
        yield group.seen("leader", reply, due, attempt=attempt)
        if attempt == 1:
            yield group.seen("removed", silent.heartbeat())


@scenario(topology="30 groups of two", configs=QUICK_GROUPS)
def who_does_not_sync_is_removed_after_the_rebalance_timeout(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Thirty groups whose leader never syncs: the follower's parked sync gets REBALANCE_IN_PROGRESS."""
    groups = groups_on(cluster, cluster.first, SAMPLES)
    pairs = form(groups, 2, **SHORT_REBALANCES)
    syncs = []
    for group, (leader, other) in zip(groups, pairs, strict=True):
        join = group.parked_join(leader)
        completed = other.join()
        leader.joined(join)
        syncs.append((completed, other.start_sync()))
    for attempt, (group, (leader, _), (completed, sync)) in enumerate(zip(groups, pairs, syncs, strict=True), 1):
        reply = sync.result()
        over_ms = REBALANCE_MS
        due = after(reply, completed.answered_ms + over_ms, since=completed.sent_ms + over_ms)
        yield group.seen("sync", reply, due, attempt=attempt)
        if attempt == 1:
            yield group.seen("leader", leader.heartbeat())


@scenario(topology="a group", configs=QUICK_GROUPS)
def any_request_keeps_a_session(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Commits extend a session like heartbeats; a parked join or sync extends it as long as it waits."""
    group = ready_group(cluster)
    topic = cluster.topics.create([cluster.first])
    (members,) = form([group], 2, session_timeout_ms=SESSION_MS)
    leader, other = members
    began_ms = now_ms()
    for turn in range(1, 7):
        leader.commit(Offset(topic, 0, turn))
        other.heartbeat()
        pause_until(began_ms + turn * SESSION_MS / 4)
    yield group.seen("kept by commits", leader.heartbeat())
    parked = leader.start_join()
    for _ in range(6):
        cluster.wait(SESSION_MS / 4)
        other.heartbeat()
    other.join()
    yield group.seen("kept by a parked join", leader.joined(parked), LAST_JOINS)


@scenario(topology="a group", configs=QUICK_GROUPS)
def the_only_member_falls_silent(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """After its session timeout the group is Empty, in its next generation."""
    group = ready_group(cluster)
    ((member,),) = form([group], session_timeout_ms=SESSION_MS)
    cluster.wait(SESSION_MS / 4)
    yield group.seen("in time", member.heartbeat())
    cluster.wait(2 * SESSION_MS)
    yield group.seen("too late", member.heartbeat())
    yield group.seen("described", describe_groups(group.tool, group.name))
    new = group.with_id()
    yield group.seen("another one joins", new.join(), at_timeout(INITIAL_DELAY_MS))


@scenario(topology="two groups of two", configs=QUICK_GROUPS)
def leaving_ends_a_rebalance_or_begins_one(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A parked join completes when the last missing member leaves; a stable group rebalances."""
    waiting, stable = groups_on(cluster, cluster.first, 2)
    (leader, other), (left, stays) = form([waiting, stable], 2)
    parked = waiting.parked_join(leader)
    leaving = other.leave()
    reply = leader.joined(parked)
    yield waiting.seen("waited for it", reply, after(reply, leaving))
    yield stable.seen("the leader leaves", left.leave())
    yield stable.seen("the follower's heartbeat", stays.heartbeat())
    yield stable.seen("the follower joins", stays.join())


@scenario(topology="a group of two", configs=QUICK_GROUPS)
def a_connection_that_ends_leaves_its_member(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its parked join still counts, and the member remains until its session expires."""
    group = ready_group(cluster)
    ((leader, other),) = form([group], 2, session_timeout_ms=SESSION_MS)
    gone = group.with_id(session_timeout_ms=SESSION_MS)
    gone.start_join()
    group.wait_for_state("PreparingRebalance")
    gone.client.close()
    yield group.seen("described", describe_groups(group.tool, group.name))
    parked = leader.start_join()
    other.join()
    yield group.seen("all have joined", leader.joined(parked), LAST_JOINS)
    synced = leader.sync({leader.member_id: b"a", other.member_id: b"b"})
    yield group.seen("synced", synced)
    yield concluded("state", state=group.state())


def _start_join(cluster: ClusterUnderTest, member: ClassicMember) -> Pending[messages.JoinGroupResponse]:
    """Send a join shortly after the previous one, so that not all joins are due at the same time."""
    cluster.wait(STAGGER_MS)
    return member.start_join()
