"""Tests of rebalances: sessions, syncs, heartbeats, leaves and failovers."""

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.classic.classic_group import ClassicGroup, ClassicGroupState
from broker_sim.group.offsets import OffsetCommit
from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import HashTable

INITIAL_DELAY_MS = 3_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000


def completing(bench, count=2, **options):
    """Return the members of a group in CompletingRebalance, the leader first."""
    members = [bench.member(**options).enter() for _ in range(count)]
    bench.advance(2 * INITIAL_DELAY_MS)
    assert bench.state == "CompletingRebalance"
    return sorted(members, key=lambda member: not member.is_leader)


def parked(bench):
    """Return the operations in the purgatory Rebalance."""
    operations = [each for _, watched in bench.rebalance.watch_lists() for each in watched]
    return [each for each in operations if not each.completed]


def test_completed_rebalances_are_counted(bench):
    leader, follower = completing(bench)
    counters = bench.service.counters
    assert counters.classic_group_rebalances == 0
    leader.sync({member.member_id: b"" for member in (leader, follower)})
    assert bench.state == "Stable"
    assert counters.classic_group_rebalances == 1


def test_rebalance_on_demand_makes_members_rejoin(bench):
    leader, follower = bench.stable(2)
    results = []
    bench.service.rebalance("group", results.append, results.append)
    assert (results, bench.state) == ([ErrorCode.NONE], "PreparingRebalance")
    assert leader.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    leader.join()
    follower.join()
    assert leader.joined.generation_id == 2


class TestSessions:
    """Members whose session expires are removed."""

    def test_session_expires_at_its_timeout(self, bench):
        leader, follower = bench.stable(2)
        bench.advance(SESSION_MS - 1)
        leader.beat()
        assert len(bench.group.members) == 2
        bench.advance(1)
        assert list(bench.group.members) == [leader.member_id]
        assert bench.state == "PreparingRebalance"
        assert follower.beat() is ErrorCode.UNKNOWN_MEMBER_ID

    def test_heartbeats_extend_the_session(self, bench):
        (member,) = bench.stable()
        for _ in range(10):
            bench.advance(SESSION_MS - 1)
            assert member.beat() is ErrorCode.NONE
        assert bench.heartbeat.num_delayed() == 1

    def test_member_has_one_operation_in_all_phases(self, bench):
        (member,) = bench.stable()
        assert member.answers == 2  # an id, and the first generation
        assert bench.heartbeat.statistics().total_watched == 1
        assert [each.delay_ms for each in bench.heartbeat.parked()] == [SESSION_MS]

    def test_heartbeats_postpone_one_operation(self, bench):
        (member,) = bench.stable()
        bench.advance(1)
        parked = bench.heartbeat.statistics().total_watched
        for _ in range(3):
            bench.advance(SESSION_MS - 1)
            member.beat()
        assert bench.heartbeat.statistics().total_watched == parked

    def test_session_restarted_during_expiration_continues(self, bench):
        leader, silent, other = bench.stable(3)
        for member in (silent, leader, other):
            member.beat()
        leader.join()
        other.join()
        bench.advance(SESSION_MS)  # all three end now; without the silent one all have joined
        assert list(bench.group.members) == [leader.member_id, other.member_id]
        assert bench.state == "CompletingRebalance"
        bench.advance(SESSION_MS - 1)
        assert len(bench.group.members) == 2
        bench.advance(1)
        assert len(bench.group.members) == 0

    def test_commit_extends_the_session(self, bench):
        (member,) = bench.stable()
        bench.advance(SESSION_MS - 1)
        commit = OffsetCommit("group", member.member_id, None, 1, 9, [])
        bench.service.offset_commit(commit, print, pytest.fail)
        bench.advance(SESSION_MS - 1)
        assert bench.state == "Stable"
        bench.advance(1)
        assert bench.state == "Empty"

    def test_transactional_commit_does_not_extend_the_session(self, bench):
        (member,) = bench.stable()
        bench.advance(SESSION_MS - 1)
        commit = OffsetCommit("group", member.member_id, None, 1, 9, [])
        bench.group.validate_offset_commit(commit, is_transactional=True)
        bench.advance(1)
        assert bench.state == "Empty"

    def test_session_does_not_expire_during_parked_join(self, bench):
        leader, follower = bench.stable(2)
        leader.join()
        for _ in range(5):
            bench.advance(SESSION_MS - 1)
            assert follower.beat() is ErrorCode.REBALANCE_IN_PROGRESS
        assert leader.joined is None
        follower.join()
        assert leader.joined.generation_id == 2

    def test_session_restarts_when_the_join_is_answered(self, bench):
        leader, follower = bench.stable(2)
        leader.join()
        bench.advance(SESSION_MS - 1)
        follower.join()
        bench.advance(SESSION_MS - 1)
        assert len(bench.group.members) == 2
        bench.advance(1)
        assert len(bench.group.members) == 0

    def test_session_does_not_expire_during_parked_sync(self, bench):
        leader, follower = completing(bench)
        follower.sync()
        bench.advance(SESSION_MS - 1)
        leader.beat()
        bench.advance(SESSION_MS - 1)
        leader.sync()
        assert follower.synced.error_code == 0
        bench.advance(SESSION_MS - 1)
        assert len(bench.group.members) == 2

    def test_expiration_of_last_missing_member_ends_join_phase(self, bench):
        leader, _ = bench.stable(2)
        leader.join()
        bench.advance(SESSION_MS - 1)
        assert leader.joined is None
        bench.advance(1)
        assert leader.joined.generation_id == 2

    def test_expiration_of_pending_member_ends_join_phase(self, bench):
        (member,) = bench.stable()
        bench.member().join()
        member.join()
        bench.advance(SESSION_MS - 1)
        assert member.joined is None
        bench.advance(1)
        assert member.joined.generation_id == 2

    def test_one_operation_for_each_member(self, bench):
        members = bench.stable(3)
        pending = bench.member().join()
        keys = {str(key) for key, _ in bench.heartbeat.watch_lists()}
        assert keys == {f"group-{member.member_id}" for member in [*members, pending]}
        assert bench.heartbeat.num_delayed() == 4


class TestSyncs:
    """The leader sends the assignments."""

    def test_followers_wait_for_the_leader(self, bench):
        leader, follower = completing(bench)
        follower.sync()
        assert follower.synced is None
        leader.sync({leader.member_id: b"one", follower.member_id: b"two"})
        assert leader.synced.assignment == b"one"
        assert follower.synced.assignment == b"two"
        assert follower.synced.protocol_type == "consumer"
        assert follower.synced.protocol_name == "range"
        assert bench.state == "Stable"

    def test_syncs_are_answered_after_assignments_are_committed(self, bench):
        leader, follower = completing(bench)
        follower.sync()
        bench.log.is_held = True
        leader.sync({leader.member_id: b"one"})
        assert leader.synced is follower.synced is None
        assert bench.state == "CompletingRebalance"
        bench.log.release()
        assert (leader.synced.assignment, follower.synced.assignment) == (b"one", b"")

    def test_record_has_the_generation(self, bench):
        leader, follower = completing(bench)
        leader.sync({leader.member_id: b"one", follower.member_id: b"two"})
        value = bench.log.records[-1].value
        assert (value.generation, value.protocol_type, value.protocol) == (1, "consumer", "range")
        assert value.leader == leader.member_id
        assert {
            (each.member_id, each.assignment, each.subscription, each.session_timeout) for each in value.members
        } == {(leader.member_id, b"one", b"me", SESSION_MS), (follower.member_id, b"two", b"me", SESSION_MS)}
        assert value.members[0].client_host == "/127.0.0.1"

    @pytest.mark.parametrize("at_once", [True, False])
    def test_failed_write_of_assignments_begins_a_rebalance(self, bench, at_once):
        leader, follower = completing(bench)
        follower.sync()
        if at_once:
            bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
            leader.sync()
        else:
            bench.log.is_held = True
            leader.sync()
            bench.log.release(ErrorCode.REQUEST_TIMED_OUT)
        for member in (leader, follower):
            assert member.synced.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert member.synced.assignment == b""
            assert member.synced.protocol_name is None
        assert bench.state == "PreparingRebalance"

    def test_assignments_of_an_older_generation_are_ignored(self, bench):
        leader, follower = completing(bench)
        bench.log.is_held = True
        leader.sync({leader.member_id: b"old"})
        follower.protocols = [("range", b"changed")]
        follower.join()
        assert leader.synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        leader.join()
        bench.log.release()
        assert bench.state == "CompletingRebalance"
        assert bench.group.generation_id == 2

    def test_sync_of_stable_group_returns_the_assignment(self, bench):
        leader, _ = bench.stable(2)
        assert leader.sync().synced.assignment == leader.member_id.encode()

    def test_member_without_sync_is_removed_after_rebalance_timeout(self, bench):
        leader, follower = completing(bench, session_timeout_ms=300_000)
        leader.sync()
        bench.advance(REBALANCE_MS - 1)
        assert bench.state == "Stable"
        bench.advance(1)
        assert bench.state == "PreparingRebalance"
        assert list(bench.group.members) == [leader.member_id]
        assert follower.beat() is ErrorCode.UNKNOWN_MEMBER_ID

    def test_members_without_sync_are_removed_in_join_order(self, bench, monkeypatch):
        """The order must not be that of a set, which differs between processes."""
        leader, *others = completing(bench, 13, session_timeout_ms=300_000)
        leader.sync()
        remove, removed = ClassicGroup.remove, []
        monkeypatch.setattr(ClassicGroup, "remove", lambda group, who: removed.append(who) or remove(group, who))
        bench.advance(REBALANCE_MS)
        assert removed == [member.member_id for member in others]

    def test_no_member_is_removed_if_all_have_synced(self, bench):
        bench.stable(2, session_timeout_ms=300_000)
        assert bench.rebalance.num_delayed() == 0
        bench.advance(REBALANCE_MS)
        assert len(bench.group.members) == 2

    def test_next_rebalance_ends_the_wait_for_syncs(self, bench):
        leader, follower = completing(bench)
        assert {each.api for each in parked(bench)} == {"SyncGroup"}
        follower.protocols = [("range", b"changed")]
        follower.join()
        assert {each.api for each in parked(bench)} == {"JoinGroup"}
        assert leader.beat() is ErrorCode.REBALANCE_IN_PROGRESS

    def test_leader_without_sync_is_removed_and_others_rejoin(self, bench):
        leader, follower = completing(bench, session_timeout_ms=300_000)
        follower.sync()
        bench.advance(REBALANCE_MS)
        assert follower.synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert bench.group.leader_id == follower.member_id
        assert leader.beat() is ErrorCode.UNKNOWN_MEMBER_ID

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"member_id": "stranger"}, "UNKNOWN_MEMBER_ID"),
            ({"group_id": "other"}, "UNKNOWN_MEMBER_ID"),
            ({"generation_id": 0}, "ILLEGAL_GENERATION"),
            ({"generation_id": 2}, "ILLEGAL_GENERATION"),
            ({"protocol_type": "connect"}, "INCONSISTENT_GROUP_PROTOCOL"),
            ({"protocol_name": "sticky"}, "INCONSISTENT_GROUP_PROTOCOL"),
            ({"group_instance_id": "one"}, "UNKNOWN_MEMBER_ID"),
        ],
    )
    def test_invalid_syncs_are_rejected(self, bench, changes, error):
        (member,) = bench.stable()
        with pytest.raises(ApiError) as raised:
            member.sync(**changes)
        assert raised.value.error_code.name == error

    def test_sync_during_join_phase_is_rejected(self, bench):
        leader, follower = bench.stable(2)
        leader.join()
        with pytest.raises(ApiError) as raised:
            follower.sync()
        assert raised.value.error_code is ErrorCode.REBALANCE_IN_PROGRESS

    def test_member_of_an_empty_group_is_unknown(self, bench):
        member = bench.member().join()
        with pytest.raises(ApiError) as raised:
            member.sync()
        assert raised.value.error_code is ErrorCode.UNKNOWN_MEMBER_ID


class TestHeartbeats:
    """Responses to heartbeats."""

    def test_states(self, bench):
        leader, follower = completing(bench)
        assert leader.beat() is ErrorCode.NONE
        bench.assign([leader, follower])
        assert leader.beat() is ErrorCode.NONE
        leader.join()
        assert follower.beat() is ErrorCode.REBALANCE_IN_PROGRESS

    @pytest.mark.parametrize(
        ("changes", "error"),
        [
            ({"member_id": "stranger"}, "UNKNOWN_MEMBER_ID"),
            ({"group_id": "other"}, "UNKNOWN_MEMBER_ID"),
            ({"generation_id": 0}, "ILLEGAL_GENERATION"),
            ({"generation_id": 2}, "ILLEGAL_GENERATION"),
        ],
    )
    def test_invalid_heartbeats_are_rejected(self, bench, changes, error):
        (member,) = bench.stable()
        assert member.beat(**changes).name == error

    def test_pending_member_is_unknown(self, bench):
        assert bench.member().join().beat() is ErrorCode.UNKNOWN_MEMBER_ID


class TestLeaving:
    """LeaveGroup"""

    def test_group_is_empty_after_the_last_leave(self, bench):
        (member,) = bench.stable()
        assert member.leave() is ErrorCode.NONE
        assert bench.state == "Empty"
        value = bench.log.records[-1].value
        assert (value.generation, value.protocol, value.members) == (2, None, [])
        assert value.protocol_type == "consumer"
        assert bench.heartbeat.num_delayed() == bench.rebalance.num_delayed() == 0

    def test_remaining_members_rebalance(self, bench):
        leader, follower = bench.stable(2)
        leader.leave()
        assert follower.beat() is ErrorCode.REBALANCE_IN_PROGRESS
        follower.join()
        assert follower.joined.generation_id == 2
        assert follower.is_leader

    def test_leave_of_last_missing_member_ends_join_phase(self, bench):
        leader, follower = bench.stable(2)
        leader.join()
        follower.leave()
        assert leader.joined.generation_id == 2

    def test_leaves_fail_independently(self, bench):
        leader, follower = bench.stable(2)
        assert bench.leave(("stranger", None), (follower.member_id, None), ("", "one")) == [
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
        ]
        assert list(bench.group.members) == [leader.member_id]

    def test_unknown_group_has_no_members(self, bench):
        assert bench.leave(("stranger", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]

    def test_pending_member_leaves(self, bench):
        member = bench.member().join()
        assert member.leave() is ErrorCode.NONE
        assert bench.heartbeat.num_delayed() == 0
        assert not bench.group.pending_join_members

    def test_administrator_removes_a_static_member_by_its_instance_id(self, bench):
        _, follower = bench.stable_static("one", "two")
        instance_id = follower.options["group_instance_id"]
        assert bench.leave(("", instance_id)) == [ErrorCode.NONE]
        assert len(bench.group.members) == 1

    def test_fenced_static_member_cannot_leave(self, bench):
        (member,) = bench.stable_static("one")
        bench.member(group_instance_id="one").join()
        assert member.leave() is ErrorCode.FENCED_INSTANCE_ID


class TestFailover:
    """Another coordinator loads the group from the log."""

    def test_members_continue_after_failover(self, bench):
        leader, follower = bench.stable(2)
        bench.fail_over()
        assert bench.state == "Stable"
        assert leader.beat() is follower.beat() is ErrorCode.NONE
        assert follower.sync().synced.assignment == follower.member_id.encode()
        assert bench.group.is_leader(leader.member_id)

    def test_sessions_start_when_the_group_is_loaded(self, bench):
        bench.stable(2)
        bench.fail_over()
        assert bench.heartbeat.num_delayed() == 2
        bench.advance(SESSION_MS - 1)
        assert len(bench.group.members) == 2
        bench.advance(1)
        assert bench.state == "Empty"

    def test_parked_joins_get_not_coordinator(self, bench):
        leader, follower = bench.stable(2)
        leader.join()
        bench.fail_over()
        assert leader.error is ErrorCode.NOT_COORDINATOR
        assert leader.joined.member_id == leader.member_id
        # The new coordinator has the generation before.
        assert follower.beat() is ErrorCode.NONE
        assert bench.rebalance.num_delayed() == 0

    def test_parked_syncs_get_not_coordinator(self, bench):
        leader, follower = completing(bench)
        follower.sync()
        bench.fail_over()
        assert follower.synced.error_code == ErrorCode.NOT_COORDINATOR
        assert leader.beat() is ErrorCode.UNKNOWN_MEMBER_ID

    def test_static_members_and_timestamps_are_restored(self, bench):
        (member,) = bench.stable_static("one")
        before = bench.group.state_timestamp_ms
        bench.advance(5_000)
        bench.fail_over()
        assert bench.group.static_members == {"one": member.member_id}
        assert bench.group.members[member.member_id].rebalance_timeout_ms == REBALANCE_MS
        # The record was written before the group was stable.
        assert bench.group.state_timestamp_ms <= before

    def test_empty_group_is_restored_empty(self, bench):
        (member,) = bench.stable()
        member.leave()
        bench.fail_over()
        assert bench.group.state is ClassicGroupState.EMPTY
        assert bench.group.generation_id == 2

    def test_tombstone_removes_the_group(self, bench):
        (member,) = bench.stable()
        member.leave()
        pending = bench.member().join()
        bench.write(bench.group.tombstones())
        assert not bench.shard.groups
        assert bench.heartbeat.num_delayed() == 0
        assert pending.join().error is ErrorCode.UNKNOWN_MEMBER_ID


def test_join_cost_does_not_depend_on_group_size(bench):
    # No join may look at all other members: 2 000 of them in one group.
    seen = []
    bench.member().enter()
    members = bench.group.members

    class Counting(HashTable):
        def values(self):
            seen.append(len(self))
            return super().values()

        def in_order(self):
            seen.append(len(self))
            return super().in_order()

        __iter__ = None

    bench.group.members = Counting(string_hash)
    for member_id, member in members.items():
        bench.group.members.put(member_id, member)
    for _ in range(2_000):
        bench.member().enter()
    assert seen == []


def test_preparing_group_is_described_without_protocol(bench):
    leader, follower = bench.stable(2)
    described = bench.group.describe()
    assert (described.group_state, described.protocol_data) == ("Stable", "range")
    assert described.members[0].member_metadata == b"me"
    assert described.members[0].client_host == "/127.0.0.1"
    leader.join()
    described = bench.group.describe()
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert {member.member_metadata for member in described.members} == {b""}
    assert follower.member_id.encode() in {member.member_assignment for member in described.members}
