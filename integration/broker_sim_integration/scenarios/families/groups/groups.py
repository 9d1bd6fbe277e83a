"""Members of classic groups and the responses that they get. Kafka: GroupMetadataManager, ClassicGroup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.clients.consumer_protocol import subscription
from broker_sim_integration.clients.group_members import ClassicMember
from broker_sim_integration.clients.groups import (
    Offset,
    commit,
    committed,
    delete_groups,
    delete_offsets,
    describe_groups,
    find_coordinator,
    find_coordinators,
    leave,
    list_groups,
)
from broker_sim_integration.observations import at_timeout, untimed
from broker_sim_integration.scenarios.helpers.group_configs import INITIAL_DELAY_MS, LIMITED_GROUPS, QUICK_GROUPS
from broker_sim_integration.scenarios.helpers.groups import form, groups_on, named, ready_group
from broker_sim_integration.scenarios.helpers.observe import concluded, seen_in
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

JOIN_VERSIONS: Final = range(10)
LATEST_SYNC, LATEST_HEARTBEAT, LATEST_LEAVE = 5, 4, 5
FIRST_WITH_ID_REQUIRED: Final = 4
STATES: Final = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "no state")
SHORT_SESSION_MS: Final = 500
PENDING_MS: Final = 400
UNKNOWN_ID: Final = "nobody"


@scenario(topology="a group", configs=QUICK_GROUPS)
def a_member_without_an_id_is_given_one(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """MEMBER_ID_REQUIRED with an id that begins with the client id; the member joins with that id."""
    group = ready_group(cluster)
    member = group.member()
    reply = member.join()
    given = named(reply.message.member_id)
    yield seen_in("id", reply, error_code=reply.message.error_code, member_id=given)
    yield group.seen("joined", member.join(), at_timeout(INITIAL_DELAY_MS))
    yield group.seen("synced", member.sync({member.member_id: b"assigned"}))
    yield group.seen("heartbeat", member.heartbeat())


@scenario(topology="10 groups", configs=QUICK_GROUPS)
def every_version_of_membership_is_served(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """JoinGroup 0 to 9, with SyncGroup, Heartbeat and LeaveGroup; versions before 4 join without a member id."""
    groups = groups_on(cluster, cluster.first, len(JOIN_VERSIONS))
    for version, group in zip(JOIN_VERSIONS, groups, strict=True):
        member = group.member()
        if version >= FIRST_WITH_ID_REQUIRED:
            yield group.seen(f"v{version} id", member.join(version))
        yield group.seen(f"v{version} join", member.join(version), at_timeout(INITIAL_DELAY_MS))
        assignments = {member.member_id: b"assigned"}
        sync = member.sync(assignments, version=min(version, LATEST_SYNC))
        yield group.seen(f"v{version} sync", sync)
        heartbeat = member.heartbeat(min(version, LATEST_HEARTBEAT))
        yield group.seen(f"v{version} heartbeat", heartbeat)
        yield group.seen(f"v{version} leave", member.leave(min(version, LATEST_LEAVE)))
        described = describe_groups(group.tool, group.name, version=min(version, 6))
        yield group.seen(f"v{version} described", described)


@scenario(topology="a group", configs=QUICK_GROUPS)
def only_the_leader_is_told_the_members(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Generation 3 of a group with three members: each gets its own assignment, only the leader the list of members."""
    group = ready_group(cluster)
    (members,) = form([group], 2)
    third = group.with_id(text=b"third")
    pending = [third.start_join()]
    group.wait_for_state("PreparingRebalance")
    pending += [member.start_join() for member in members]
    members = [third, *members]
    for number, (member, answer) in enumerate(zip(members, pending, strict=True)):
        timing = untimed("when the last of them has joined")
        yield group.seen(f"join {number}", member.joined(answer), timing)
    leader = members[1]
    assignments = {member.member_id: b"%d" % index for index, member in enumerate(members)}
    yield group.seen("leader's sync", leader.sync(assignments))
    for number, member in enumerate(members):
        yield group.seen(f"sync {number}", member.sync())
    yield group.seen("described", describe_groups(group.tool, group.name, authorized=True))


@scenario(topology="a group", configs=QUICK_GROUPS)
def a_member_without_a_common_protocol_is_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INCONSISTENT_GROUP_PROTOCOL for another name, another type, or no protocol, also in a new group."""
    group, new = groups_on(cluster, cluster.first, 2)
    form([group])
    yield group.seen("another name", group.member(protocols={"other": b""}).join())
    yield group.seen("another type", group.member(protocol_type="connect").join())
    yield new.seen("no protocols", new.member(protocols={}).join())
    yield new.seen("no type", new.member(protocol_type="").join())
    yield group.seen("stays as it was", describe_groups(group.tool, group.name))


@scenario(topology="a group", configs=QUICK_GROUPS)
def the_protocol_with_most_votes_is_chosen(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each member votes for the first of its protocols that all members support."""
    group = ready_group(cluster)
    members: list[ClassicMember] = []
    for order in (("c", "a", "b"), ("b", "a"), ("a", "b")):
        protocols = {name: subscription(["any"]) for name in order}
        joining = group.with_id(protocols=protocols)
        pending = [(joining, joining.start_join())]
        if members:
            group.wait_for_state("PreparingRebalance")
        pending += [(member, member.start_join()) for member in members]
        members.append(joining)
        for member, answer in pending:
            member.joined(answer)
        leader = members[0]
        described = describe_groups(group.tool, group.name)
        yield concluded(f"{len(members)} members", generation=leader.generation, protocol=leader.protocol_name)
        yield group.seen(f"{len(members)} members: completing", described)
        for member in members[::-1]:
            synced = member.start_sync()
        yield group.seen(f"{len(members)} members: leader's sync", synced.result())


@scenario(topology="a group", configs=QUICK_GROUPS)
def sessions_have_bounds(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_SESSION_TIMEOUT below group.min and above group.max.session.timeout.ms."""
    group = ready_group(cluster)
    for session_ms in (-1, 0, 99, 100, 1_800_000, 1_800_001):
        member = group.member(session_timeout_ms=session_ms)
        yield group.seen(f"{session_ms} ms", member.join())


@scenario(topology="two groups", configs=QUICK_GROUPS)
def who_is_unknown_is_refused(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """UNKNOWN_MEMBER_ID whether the group exists or not; DescribeGroups returns the state Dead for an unknown group."""
    group, unknown = groups_on(cluster, cluster.first, 2)
    form([group])
    topic = cluster.topics.create([cluster.first])
    for name, one in (("a group", group), ("no group", unknown)):
        stranger = one.member(member_id=UNKNOWN_ID, generation=1, protocol_name="range")
        yield one.seen(f"{name}: join", stranger.join())
        yield one.seen(f"{name}: sync", stranger.sync())
        yield one.seen(f"{name}: heartbeat", stranger.heartbeat())
        for version in (2, 5):
            yield one.seen(f"{name}: leave v{version}", stranger.leave(version))
        for version in (8, 9, 10):
            reply = stranger.commit(Offset(topic, 0, 1), version=version)
            yield one.seen(f"{name}: commit v{version}", reply)
        nameless = one.member(generation=1, protocol_name="range")
        yield one.seen(f"{name}: heartbeat without an id", nameless.heartbeat())
    for version in (0, 5, 6):
        described = describe_groups(unknown.tool, unknown.name, version=version)
        yield unknown.seen(f"described v{version}", described)
    yield unknown.seen("deleted", delete_groups(unknown.tool, unknown.name))
    yield unknown.seen("offsets", committed(unknown.tool, unknown.name, {topic: [0]}))
    deleted = delete_offsets(unknown.tool, unknown.name, {topic.name: [0]})
    yield unknown.seen("offsets deleted", deleted)


@scenario(topology="a group without a name", configs=QUICK_GROUPS)
def a_group_without_a_name_is_invalid(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_GROUP_ID; SyncGroup checks the protocol before the group id."""
    group = ready_group(cluster)
    nameless = ClassicMember(group.tool, "", protocols={"range": b""})
    yield group.seen("join", nameless.join())
    yield group.seen("sync without a protocol", nameless.sync())
    nameless.protocol_name = "range"
    yield group.seen("sync", nameless.sync())
    yield group.seen("heartbeat", nameless.heartbeat())
    yield group.seen("leave", nameless.leave())
    yield group.seen("offsets deleted", delete_offsets(group.tool, "", {"any": [0]}))


@scenario(topology="a group", configs=QUICK_GROUPS)
def another_broker_is_not_the_coordinator(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """NOT_COORDINATOR from every API, and the broker's ListGroups does not contain the group."""
    group = ready_group(cluster)
    (members,) = form([group])
    topic = cluster.topics.create([cluster.first])
    other = cluster.connect(cluster.second)
    known = members[0]
    stray = ClassicMember(other, group.name, known.member_id, known.generation)
    stray.protocol_name = known.protocol_name
    yield group.seen("join", stray.join())
    yield group.seen("sync", stray.sync())
    yield group.seen("heartbeat", stray.heartbeat())
    yield group.seen("leave", stray.leave())
    yield group.seen("commit", stray.commit(Offset(topic, 0, 1)))
    yield group.seen("offsets", committed(other, group.name, {topic: [0]}))
    yield group.seen("offsets v5", committed(other, group.name, {topic: [0]}, version=5))
    yield group.seen("offsets deleted", delete_offsets(other, group.name, {topic.name: [0]}))
    yield group.seen("described", describe_groups(other, group.name))
    yield group.seen("deleted", delete_groups(other, group.name))
    listed = [found.group_id for found in list_groups(other).message.groups]
    yield concluded("listed", ours=group.name in listed)


@scenario(topology="a group", configs=QUICK_GROUPS)
def heartbeats_and_syncs_tell_the_state(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """NONE, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID by state."""
    group = ready_group(cluster)
    member = group.with_id()
    asking = group.member(member_id=member.member_id)
    pending = member.start_join()

    def asked(state: str, generation: int) -> Iterator[Observation]:
        asking.member_id, asking.protocol_name = member.member_id, "range"
        for step in (-1, 0, 1):
            asking.generation = generation + step
            yield group.seen(f"{state}: heartbeat {step:+}", asking.heartbeat())
        asking.generation = generation - 1
        yield group.seen(f"{state}: old sync", asking.sync())
        asking.protocol_name = "other"
        asking.generation = generation
        yield group.seen(f"{state}: sync of another protocol", asking.sync())

    group.wait_for_state("PreparingRebalance")
    yield from asked("joining", 0)
    member.joined(pending)
    yield from asked("completing", 1)
    member.sync({member.member_id: b"assigned"})
    yield from asked("stable", 1)
    asking.protocol_name = "range"
    yield group.seen("stable: sync again", asking.sync())
    other = group.with_id()
    parked = group.parked_join(other)
    yield from asked("preparing", 1)
    member.leave()
    other.joined(parked)
    yield from asked("gone", 2)


@scenario(topology="a group", configs=QUICK_GROUPS)
def members_leave_one_by_one_and_together(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each member of a batch has its own code; when all have left the group is Empty."""
    group = ready_group(cluster)
    (members,) = form([group], 3)
    first, second, third = members
    batch = leave(group.tool, group.name, (first.member_id, None), (UNKNOWN_ID, None), ("", "static"), ("", None))
    yield group.seen("batch", batch)
    yield group.seen("one who stayed", second.heartbeat())
    yield group.seen("one who left", first.heartbeat())
    yield group.seen("old version", second.leave(0))
    yield group.seen("pending", group.with_id().leave())
    yield group.seen("the last", third.leave())
    yield group.seen("once more", third.leave())
    yield group.seen("described", describe_groups(group.tool, group.name))


@scenario(topology="a group of at most two", configs=LIMITED_GROUPS)
def a_full_group_refuses_members(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """GROUP_MAX_SIZE_REACHED for the third member, whether it joins without or with a member id."""
    group = ready_group(cluster)
    (members,) = form([group], 2)
    yield group.seen("third", group.member().join())
    yield group.seen("third, old version", group.member().join(3))
    members[1].leave()
    yield group.seen("third, when one has left", group.member().join())
    yield group.seen("described", describe_groups(group.tool, group.name))


@scenario(topology="a group", configs=QUICK_GROUPS)
def an_id_that_is_not_used_is_forgotten(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A member that got an id and did not join is unknown after its session timeout."""
    group = ready_group(cluster)
    member = group.with_id(session_timeout_ms=PENDING_MS)
    cluster.wait(2 * PENDING_MS)
    yield group.seen("too late", member.join())


@scenario(topology="a group", configs=QUICK_GROUPS)
def groups_are_described_in_every_state(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Only Stable groups show metadata and assignments, in each served version."""
    group = ready_group(cluster)
    (members,) = form([group])
    for version in range(7):
        described = describe_groups(group.tool, group.name, version=version)
        yield group.seen(f"stable v{version}", described)
    other = group.with_id(text=b"other")
    parked = group.parked_join(other)
    yield group.seen("preparing", describe_groups(group.tool, group.name))
    members[0].join()
    other.joined(parked)
    yield group.seen("completing", describe_groups(group.tool, group.name))
    members[0].leave()
    other.leave()
    yield group.seen("empty", describe_groups(group.tool, group.name))
    delete_groups(group.tool, group.name)
    yield group.seen("dead", describe_groups(group.tool, group.name))
    yield group.seen("twice", describe_groups(group.tool, group.name, group.name))


@scenario(topology="three groups", configs=QUICK_GROUPS)
def groups_are_listed_by_state_and_type(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Filters ignore case; an unknown state or type matches no group."""
    stable, empty, simple = groups_on(cluster, cluster.first, 3)
    (_, (left,)) = form([stable, empty])
    left.leave()
    topic = cluster.topics.create([cluster.first])
    commit(simple.tool, simple.name, Offset(topic, 0, 1))
    ours = {stable.name: "stable", empty.name: "empty", simple.name: "simple"}

    def listed(step: str, **asked: object) -> Observation:
        reply = list_groups(stable.tool, **asked)  # type: ignore[arg-type]  # by name
        found = sorted(
            [ours[one.group_id], one.protocol_type, one.group_state, one.group_type]
            for one in reply.message.groups
            if one.group_id in ours
        )
        return seen_in(step, reply, error_code=reply.message.error_code, groups=found)

    for version in range(6):
        yield listed(f"v{version}", version=version)
    for states in (["Stable"], ["stable", "EMPTY"], ["Nonsense"], ["Dead"]):
        yield listed(f"states {states}", states=states)
    for types in (["classic"], ["Classic"], ["consumer"], ["nonsense"]):
        yield listed(f"types {types}", types=types)
    yield listed("both", states=["Empty"], types=["classic"])


@scenario(topology="a group", configs=QUICK_GROUPS)
def coordinators_are_found_in_every_version(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """With one key or many; the empty key has a coordinator, too; an unknown key type is INVALID_REQUEST."""
    group = ready_group(cluster)
    for version in range(4):
        reply = find_coordinator(group.tool, group.name, version=version)
        yield group.seen(f"v{version}", reply)
    for version in range(4, 7):
        found = find_coordinators(group.tool, group.name, group.name, version=version)
        yield group.seen(f"v{version}", found)
    yield group.seen("none", find_coordinators(group.tool))
    empty = find_coordinators(group.tool, "").message.coordinators[0]
    yield concluded("no name", error_code=empty.error_code, given=empty.node_id >= 0)
    yield group.seen("unknown type", find_coordinators(group.tool, "any", key_type=9))


@scenario(topology="two groups", configs=QUICK_GROUPS)
def only_empty_groups_are_deleted(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND; a deleted group has no offsets."""
    empty, used = groups_on(cluster, cluster.first, 2)
    form([used])
    topic = cluster.topics.create([cluster.first])
    commit(empty.tool, empty.name, Offset(topic, 0, 1))
    for version in range(3):
        yield used.seen(f"used v{version}", delete_groups(used.tool, used.name, version=version))
    both = delete_groups(empty.tool, empty.name, used.name)
    codes = {result.group_id: result.error_code for result in both.message.results}
    yield seen_in("both", both, empty=codes[empty.name], used=codes[used.name])
    yield empty.seen("again", delete_groups(empty.tool, empty.name))
    yield empty.seen("offsets", committed(empty.tool, empty.name))
