"""Tests of the end of join phases: all members have joined, or the timeout expires."""

import pytest

INITIAL_DELAY_MS = 3_000
REBALANCE_MS = 60_000


def test_last_of_ten_joins_completes_all_ten(bench):
    # Worked case 13: ten members, and the group is the key.
    members = bench.stable(10)
    for member in members[:9]:
        member.join()
        assert bench.group.join_operation is not None
    assert [member.joined for member in members] == [None] * 9 + [members[9].joined]

    members[9].join()

    assert [member.joined.generation_id for member in members] == [2] * 10
    assert bench.group.join_operation is None
    assert bench.rebalance.num_delayed() == 1  # the syncs, under the same key


def test_timeout_answers_joined_members_and_removes_missing_ones(bench):
    # Worked case 13, the other half.
    members = bench.stable(10, session_timeout_ms=300_000)
    for member in members[:7]:
        member.join()

    bench.advance(REBALANCE_MS - 1)
    assert all(member.joined is None for member in members[:7])
    bench.advance(1)

    assert all(member.joined.generation_id == 2 for member in members[:7])
    assert set(bench.group.members) == {member.member_id for member in members[:7]}
    assert members[7].beat().name == "UNKNOWN_MEMBER_ID"


def test_joins_are_watched_under_the_group_id(bench):
    first, _ = bench.stable(2)
    first.join()
    ((key, (operation,)),) = bench.rebalance.watch_lists()
    assert str(key) == "group"
    assert operation.api == "JoinGroup"
    assert operation.delay_ms == REBALANCE_MS


def test_join_phase_waits_for_pending_member(bench):
    (member,) = bench.stable()
    pending = bench.member().join()
    member.join()
    assert member.joined is None

    pending.join()

    assert member.joined.generation_id == pending.joined.generation_id == 2


def test_longest_rebalance_timeout_applies(bench):
    patient = bench.member(rebalance_timeout_ms=90_000, session_timeout_ms=300_000).enter()
    hasty = bench.member(rebalance_timeout_ms=20_000, session_timeout_ms=300_000).enter()
    bench.advance(2 * INITIAL_DELAY_MS)
    bench.assign([patient, hasty])
    (leader, follower) = sorted((patient, hasty), key=lambda member: not member.is_leader)
    leader.join()
    assert bench.group.join_operation.delay_ms == 90_000
    follower.join()


class TestInitialDelay:
    """group.initial.rebalance.delay.ms, for the first members of an empty group."""

    def test_single_member_waits_for_the_full_delay(self, bench):
        member = bench.member().enter()
        bench.advance(INITIAL_DELAY_MS - 1)
        assert member.joined is None
        bench.advance(1)
        assert member.joined.generation_id == 1

    def test_new_members_extend_the_delay(self, bench):
        first = bench.member().enter()
        bench.advance(2_999)
        second = bench.member().enter()
        bench.advance(3_000)  # 5 999
        assert first.joined is None
        bench.advance(1)
        assert first.joined.generation_id == second.joined.generation_id == 1

    def test_extension_starts_at_the_end_of_the_delay(self, bench):
        bench.member().enter()
        bench.advance(1)
        second = bench.member().enter()
        bench.advance(5_998)
        assert second.joined is None
        bench.advance(1)
        assert second.joined.generation_id == 1

    @pytest.mark.parametrize(
        ("rebalance_ms", "end_ms"), [(8_000, 8_000), (6_000, 6_000), (4_000, 4_000), (1_000, 3_000)]
    )
    def test_delay_is_limited_by_the_rebalance_timeout(self, bench, rebalance_ms, end_ms):
        first = bench.member(rebalance_timeout_ms=rebalance_ms).enter()
        for _ in range((end_ms - 1) // 500):
            bench.advance(500)
            bench.member(rebalance_timeout_ms=rebalance_ms).enter()
        bench.advance(end_ms - 1 - bench.clock.now_ms())
        assert first.joined is None
        bench.advance(1)
        assert first.joined.generation_id == 1

    def test_delay_does_not_wait_for_pending_member(self, bench):
        member = bench.member().enter()
        bench.member().join()
        bench.advance(INITIAL_DELAY_MS)
        assert member.joined.generation_id == 1

    def test_delay_of_zero_answers_at_once(self, make_bench):
        bench = make_bench(group_initial_rebalance_delay_ms=0)
        assert bench.member().enter().joined.generation_id == 1

    def test_only_empty_groups_have_the_delay(self, bench):
        (member,) = bench.stable()
        member.join()
        assert member.joined.generation_id == 2

    def test_group_that_became_empty_has_the_delay_again(self, bench):
        (member,) = bench.stable()
        member.leave()
        assert bench.state == "Empty"
        another = bench.member().enter()
        assert another.joined is None
        bench.advance(INITIAL_DELAY_MS)
        assert another.joined.generation_id == 3

    def test_last_leave_does_not_end_the_delay(self, bench):
        member = bench.member().enter()
        # It leaves over another connection: its own is waiting.
        assert member.leave().name == "NONE"
        assert member.error.name == "UNKNOWN_MEMBER_ID"
        assert bench.state == "PreparingRebalance"
        bench.advance(INITIAL_DELAY_MS)
        assert bench.state == "Empty"
        assert bench.group.generation_id == 1
