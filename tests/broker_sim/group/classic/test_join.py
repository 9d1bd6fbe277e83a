"""Tests of JoinGroup."""

import re

import pytest

from broker_sim.errors import ApiError, ErrorCode

INITIAL_DELAY_MS = 3_000


class TestNewMembers:
    """First joins of dynamic members."""

    def test_first_join_only_gets_a_member_id(self, bench):
        member = bench.member(client_id="app").join()
        assert member.error is ErrorCode.MEMBER_ID_REQUIRED
        assert re.fullmatch(
            r"app-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", member.joined.member_id
        )
        assert bench.state == "Empty"

    def test_versions_below_4_join_at_once(self, bench):
        member = bench.member().join(version=3)
        assert member.joined is None
        bench.advance(INITIAL_DELAY_MS)
        assert member.joined.generation_id == 1

    def test_pending_member_expires_after_the_session_timeout(self, bench):
        member = bench.member().join()
        bench.advance(9_999)
        assert member.member_id in bench.group.pending_join_members
        bench.advance(1)
        assert not bench.group.pending_join_members
        assert member.join().error is ErrorCode.UNKNOWN_MEMBER_ID

    def test_unknown_member_id_is_rejected(self, bench):
        stranger = bench.member()
        stranger.member_id = "stranger"
        assert stranger.join().error is ErrorCode.UNKNOWN_MEMBER_ID
        assert stranger.joined.member_id == "stranger"
        assert not bench.shard.groups
        bench.stable()
        assert stranger.join().error is ErrorCode.UNKNOWN_MEMBER_ID

    def test_new_group_is_written_at_once(self, bench):
        bench.member().join()
        (record,) = bench.log.records
        assert record.key.group == "group"
        assert (record.value.generation, record.value.protocol, record.value.members) == (0, None, [])

    def test_group_is_removed_if_its_record_cannot_be_written(self, bench):
        bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
        member = bench.member().join(version=3)
        assert member.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert not bench.shard.groups
        bench.advance(INITIAL_DELAY_MS)
        assert member.answers == 1

    def test_group_is_kept_if_its_record_times_out(self, bench):
        bench.log.is_held = True
        member = bench.member().join(version=3)
        bench.log.release(ErrorCode.REQUEST_TIMED_OUT)
        assert member.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert list(bench.shard.groups) == ["group"]
        bench.advance(INITIAL_DELAY_MS)
        assert bench.group.generation_id == 1
        assert member.answers == 1

    def test_first_join_expires_after_five_minutes(self, bench):
        (member,) = bench.stable(session_timeout_ms=300_001, rebalance_timeout_ms=900_000)
        newcomer = bench.member(rebalance_timeout_ms=900_000).enter()
        bench.advance(299_999)
        assert newcomer.joined is None
        bench.advance(1)
        assert newcomer.error is ErrorCode.UNKNOWN_MEMBER_ID
        assert newcomer.joined.member_id == ""
        assert list(bench.group.members) == [member.member_id]

    def test_only_the_leader_gets_the_members(self, bench):
        leader, follower = bench.stable(2)
        assert {member.member_id for member in leader.joined.members} == {leader.member_id, follower.member_id}
        assert follower.joined.members == []
        assert follower.joined.leader == leader.member_id
        assert leader.joined.protocol_type == "consumer"
        assert leader.joined.protocol_name == "range"
        assert leader.joined.skip_assignment is False


class TestProtocols:
    """Protocols that all members must support."""

    @pytest.mark.parametrize("changes", [{"protocol_type": ""}, {"protocols": []}])
    def test_join_without_protocols_is_rejected(self, bench, changes):
        member = bench.member(protocols=changes.pop("protocols", [("range", b"")]), **changes)
        assert member.join().error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_join_without_common_protocol_is_rejected(self, bench):
        bench.stable()
        other = bench.member(protocols=[("roundrobin", b"")])
        assert other.join().error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_other_protocol_type_is_rejected(self, bench):
        bench.stable()
        other = bench.member(protocol_type="connect")
        assert other.join().error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_protocol_must_be_supported_by_all_members(self, bench):
        bench.member(protocols=[("range", b""), ("sticky", b"")]).enter()
        bench.member(protocols=[("range", b"")]).enter()
        assert bench.member(protocols=[("sticky", b"")]).join().error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL

    def test_protocol_with_most_votes_is_chosen(self, bench):
        for names in (("a", "b"), ("b", "a"), ("b", "a")):
            bench.member(protocols=[(name, b"") for name in names]).enter()
        bench.advance(2 * INITIAL_DELAY_MS)
        assert bench.group.protocol_name == "b"


class TestRoom:
    """group.max.size"""

    def test_join_above_max_size_is_rejected(self, make_bench):
        bench = make_bench(group_max_size=2)
        bench.stable(2)
        refused = bench.member().join()
        assert refused.error is ErrorCode.GROUP_MAX_SIZE_REACHED
        assert refused.joined.member_id == ""

    def test_known_members_may_rejoin_a_full_group(self, make_bench):
        bench = make_bench(group_max_size=2)
        leader, follower = bench.stable(2)
        leader.join()
        follower.join()
        assert leader.joined.generation_id == 2

    def test_last_member_to_rejoin_is_removed_above_max_size(self, make_bench):
        bench = make_bench(group_max_size=3)
        leader, *followers = bench.stable(3, session_timeout_ms=300_000)
        bench.broker.config.__dict__["group_max_size"] = 2
        for member in (leader, *followers):
            member.protocols = [("range", b"changed")]
            member.join()
        assert followers[1].error is ErrorCode.GROUP_MAX_SIZE_REACHED
        # Nobody looks whether all that are left have joined, nor does Kafka.
        bench.advance(60_000)
        assert leader.joined.generation_id == followers[0].joined.generation_id == 2
        assert len(bench.group.members) == 2

    def test_last_pending_member_is_removed_above_max_size(self, make_bench):
        bench = make_bench(group_max_size=2)
        pending = [bench.member().join() for _ in range(3)]
        for member in pending:
            member.join()
        assert pending[2].error is ErrorCode.GROUP_MAX_SIZE_REACHED
        bench.advance(2 * INITIAL_DELAY_MS)
        assert len(bench.group.members) == 2

    def test_loaded_group_above_max_size_rebalances(self, make_bench):
        bench = make_bench(group_max_size=2)
        bench.stable(2)
        bench.broker.config.__dict__["group_max_size"] = 1
        bench.fail_over()
        assert bench.state == "PreparingRebalance"


class TestRejoin:
    """Rejoins of known members."""

    def test_leader_of_a_stable_group_begins_a_rebalance(self, bench):
        leader, follower = bench.stable(2)
        leader.join()
        assert leader.joined is None
        assert follower.beat() is ErrorCode.REBALANCE_IN_PROGRESS

    def test_follower_gets_the_current_generation(self, bench):
        _, follower = bench.stable(2)
        follower.join()
        assert follower.joined.generation_id == 1
        assert follower.joined.members == []
        assert bench.state == "Stable"

    def test_follower_with_other_metadata_begins_a_rebalance(self, bench):
        _, follower = bench.stable(2)
        follower.protocols = [("range", b"changed")]
        follower.join()
        assert follower.joined is None
        assert bench.state == "PreparingRebalance"

    def test_rejoin_before_assignment_gets_the_current_generation(self, bench):
        members = [bench.member().enter() for _ in range(2)]
        bench.advance(2 * INITIAL_DELAY_MS)
        for member in members:
            member.join()
            assert member.joined.generation_id == 1
            assert len(member.joined.members) == (2 if member.is_leader else 0)
        assert bench.state == "CompletingRebalance"

    def test_changed_metadata_before_assignment_fails_parked_syncs(self, bench):
        members = [bench.member().enter() for _ in range(2)]
        bench.advance(2 * INITIAL_DELAY_MS)
        leader, follower = sorted(members, key=lambda member: not member.is_leader)
        follower.sync()
        leader.protocols = [("range", b"changed")]
        leader.join()
        assert follower.synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS
        assert bench.state == "PreparingRebalance"

    def test_second_join_of_a_member_replaces_the_first(self, bench):
        leader, follower = bench.stable(2)
        leader.join()
        leader.join()
        assert bench.group.awaiting_join_count == 1
        follower.join()
        assert leader.answers == 3  # an id, generation 1, and generation 2 once


class TestStaticMembers:
    """Members with a group instance id (KIP-345)."""

    def test_new_static_member_joins_at_once(self, bench):
        member = bench.member(group_instance_id="one").join()
        assert member.joined is None
        bench.advance(INITIAL_DELAY_MS)
        assert member.joined.generation_id == 1
        assert member.member_id.startswith("one-")

    def test_returning_static_member_continues_the_generation(self, bench):
        leader, follower = bench.stable_static("one", "two")
        again = bench.member(group_instance_id=follower.options["group_instance_id"]).join()
        assert again.joined.generation_id == 1
        assert bench.state == "Stable"
        assert again.sync().synced.assignment == follower.synced.assignment
        assert follower.beat() is ErrorCode.FENCED_INSTANCE_ID
        assert leader.beat() is ErrorCode.NONE
        assert bench.heartbeat.num_delayed() == 2

    def test_returning_leader_skips_the_assignment(self, bench):
        leader, _ = bench.stable_static("one", "two")
        again = bench.member(group_instance_id=leader.options["group_instance_id"]).join()
        assert again.joined.skip_assignment is True
        assert again.joined.leader == again.member_id
        assert len(again.joined.members) == 2

    def test_before_version_9_response_names_the_old_leader_id(self, bench):
        leader, _ = bench.stable_static("one", "two")
        again = bench.member(group_instance_id=leader.options["group_instance_id"])
        again.join(version=8)
        assert again.joined.leader == leader.member_id
        assert again.joined.skip_assignment is False
        assert again.joined.members == []

    def test_returning_static_member_is_answered_after_the_write(self, bench):
        leader, follower = bench.stable_static("one", "two")
        bench.log.is_held = True
        again = bench.member(group_instance_id=follower.options["group_instance_id"]).join()
        assert again.joined is None
        bench.log.release()
        written = {member.member_id for member in bench.log.records[-1].value.members}
        assert written == {leader.member_id, again.member_id}

    def test_failed_write_restores_the_old_member_id(self, bench):
        _, follower = bench.stable_static("one", "two")
        bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
        again = bench.member(group_instance_id=follower.options["group_instance_id"]).join()
        assert again.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert follower.beat() is ErrorCode.NONE
        assert again.answers == 1

    def test_returning_static_member_with_other_protocols_rebalances(self, bench):
        (member,) = bench.stable_static("one", protocols=[("a", b""), ("b", b"")])
        again = bench.member(group_instance_id="one", protocols=[("b", b"")]).join()
        assert again.joined.generation_id == 2
        assert again.joined.protocol_name == "b"
        assert member.beat() is ErrorCode.FENCED_INSTANCE_ID

    def test_parked_requests_of_replaced_member_are_fenced(self, bench):
        leader, follower = bench.stable_static("one", "two")
        follower.protocols = [("range", b"changed")]
        follower.join()
        bench.member(group_instance_id=follower.options["group_instance_id"]).join()
        assert follower.error is ErrorCode.FENCED_INSTANCE_ID
        assert follower.joined.member_id == follower.member_id
        leader.join()
        assert leader.joined.generation_id == 2

    def test_static_member_returning_before_assignment_rebalances(self, bench):
        member = bench.member(group_instance_id="one").join()
        bench.advance(INITIAL_DELAY_MS)
        again = bench.member(group_instance_id="one").join()
        assert again.joined.generation_id == 2
        assert member.beat() is ErrorCode.FENCED_INSTANCE_ID

    def test_missing_static_member_stays_in_the_next_generation(self, bench):
        leader, follower = bench.stable_static("one", "two", session_timeout_ms=300_000)
        leader.join()
        bench.advance(60_000)
        assert leader.joined.generation_id == 2
        assert len(leader.joined.members) == 2
        assert follower.beat() is ErrorCode.ILLEGAL_GENERATION

    def test_group_waits_again_if_no_static_member_rejoined(self, bench):
        leader, _ = bench.stable_static("one", "two", session_timeout_ms=300_000)
        bench.leave((leader.member_id, "one"))
        assert bench.state == "PreparingRebalance"
        bench.advance(60_000)
        assert bench.state == "PreparingRebalance"
        assert bench.group.join_operation is not None
        bench.advance(240_000)  # the session of the missing one is over
        assert bench.state == "Empty"

    def test_pending_id_with_instance_id_is_rejected(self, bench):
        member = bench.member().join()
        member.options["group_instance_id"] = "one"
        assert member.join().error is ErrorCode.UNKNOWN_SERVER_ERROR

    @pytest.mark.parametrize(("member_id", "error"), [("stranger", "FENCED_INSTANCE_ID"), (None, "UNKNOWN_MEMBER_ID")])
    def test_mismatched_member_and_instance_ids_are_rejected(self, bench, member_id, error):
        (member,) = bench.stable_static("one")
        wrong = bench.member(group_instance_id="one" if member_id else "other")
        wrong.member_id = member_id or member.member_id
        assert wrong.join().error.name == error


class TestProtocolsNamedTwice:
    """A protocol counts as often as a member names it, so that members may have none in common."""

    def test_failed_join_phase_is_retried_until_member_leaves(self, bench):
        twice = bench.member(protocols=(("range", b"1"), ("range", b"2"))).join(version=3)
        bench.advance(10 * INITIAL_DELAY_MS)
        assert twice.joined is None
        assert bench.state == "PreparingRebalance"
        bench.leave((twice.member_id or next(iter(bench.group.members)), None))
        bench.advance(499)
        assert bench.state == "PreparingRebalance"
        bench.advance(1)
        assert bench.state == "Empty"

    def test_member_completing_a_failed_join_phase_gets_an_error(self, bench):
        protocols = (("range", b""), ("other", b""), ("range", b""))
        first = bench.stable(protocols=protocols)[0]
        second = bench.member(protocols=(("other", b""), ("other", b""))).join(version=3)
        assert first.join().error is ErrorCode.UNKNOWN_SERVER_ERROR
        assert first.joined.member_id == ""
        assert second.joined is None
        with pytest.raises(ApiError, match="UNKNOWN_SERVER_ERROR"):
            bench.leave((first.member_id, None))
        assert bench.state == "PreparingRebalance"

    def test_leave_completing_a_failed_join_phase_gets_an_error(self, bench):
        (first,) = bench.stable(protocols=(("range", b""), ("other", b"")))
        bench.member(protocols=(("other", b""), ("other", b""))).join(version=3)
        with pytest.raises(ApiError) as raised:
            first.leave()
        assert raised.value.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
        assert bench.state == "PreparingRebalance"
        assert first.leave() is ErrorCode.UNKNOWN_MEMBER_ID
