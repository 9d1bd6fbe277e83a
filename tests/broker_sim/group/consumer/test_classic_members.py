"""Tests of classic members in consumer groups; the behaviour was observed on Kafka 4.3.1."""

import pytest

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.group.consumer_protocol import read_assignment
from broker_sim.group.modern.assigned_group import MemberState
from broker_sim.group.offsets import OffsetCommit

NONE, REBALANCE = ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS
TOPIC = "t"
SESSION_MS = 10_000
REBALANCE_MS = 60_000


@pytest.fixture
def group(bench):
    """Return the bench of a group in which a member of the new protocol has four partitions."""
    bench.set_topic(TOPIC, 4)
    bench.new = bench.consumer("new", TOPIC)
    bench.new.join()
    return bench


def classic(bench, *topics, **options):
    options.setdefault("protocols", [("range", bench.metadata(*topics or (TOPIC,)))])
    return bench.member(**options)


def sync_error(member, **changes):
    try:
        member.sync(**changes)
    except ApiError as error:
        return error.error_code
    return ErrorCode(member.synced.error_code)


def synced(member):
    member.sync(protocol_type="consumer", protocol_name="range")
    decoded = read_assignment(member.synced.assignment)
    return {of.topic: list(of.partitions) for of in decoded.assigned_partitions}


def both(bench):
    """Return a classic member that has two partitions, beside the new one."""
    member = classic(bench).enter()
    bench.new.beat()
    bench.new.beat()
    member.join()
    assert synced(member) == {TOPIC: [2, 3]}
    return member


# -- joining ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "needs_id"), [(3, False), (4, True), (9, True)])
def test_dynamic_member_gets_an_id_first(group, version, needs_id):
    member = classic(group).join(version=version)
    assert (member.error == ErrorCode.MEMBER_ID_REQUIRED) is needs_id
    assert group.group.member_count == (1 if needs_id else 2)
    assert len(member.member_id) == 22


def test_join_is_answered_at_once_with_epoch_as_generation(group):
    member = classic(group).enter()
    assert (member.error, member.generation) == (NONE, 3)
    assert (member.joined.protocol_type, member.joined.protocol_name) == ("consumer", "range")
    assert (member.joined.leader, member.joined.members) == ("", [])
    assert synced(member) == {}, "the new member has not given anything up"


def test_classic_member_gets_partitions_revoked_by_consumer_member(group):
    member = both(group)
    assert group.new.partitions == {TOPIC: [0, 1]}
    assert (group.state, member.beat()) == ("Stable", NONE)


def test_heartbeat_requests_rejoin_when_partitions_are_free(group):
    member = classic(group).enter()
    member.sync()
    assert member.beat() == NONE, "they are not"
    group.new.beat()
    assert member.beat() == NONE
    group.new.beat()
    assert member.beat() == REBALANCE


def test_cooperative_member_keeps_partitions_until_rejoin(group):
    member = both(group)
    third = group.consumer("third", TOPIC)
    third.join()
    assert member.beat() == REBALANCE
    member.protocols = [("range", group.metadata(TOPIC, owned={TOPIC: [2, 3]}))]
    member.join()
    state = group.group.members[member.member_id].state
    if state is MemberState.STABLE:
        pytest.fail("the third member takes one of its partitions")
    remaining = synced(member)
    assert len(remaining[TOPIC]) == 1
    assert member.beat() == REBALANCE, "it has to tell that it has given it up"
    member.protocols = [("range", group.metadata(TOPIC, owned=remaining))]
    member.join()
    assert (synced(member), member.beat()) == (remaining, NONE)


def test_subscription_without_owned_partitions_has_revoked_all(group):
    member = both(group)
    group.consumer("third", TOPIC).join()
    member.protocols = [("range", group.metadata(TOPIC, version=0))]
    member.join()
    assert group.group.members[member.member_id].state is not MemberState.UNREVOKED


def test_unsubscribed_topic_is_revoked_before_the_next_target(make_bench):
    bench = make_bench(group_consumer_assignment_interval_ms=5_000)
    bench.set_topic(TOPIC, 4)
    bench.new = bench.consumer("new", TOPIC)
    bench.new.join()
    bench.advance(5_000)
    member = both(bench)
    assert member.beat() == NONE
    member.protocols = [("range", bench.metadata("other", owned={TOPIC: [2, 3]}))]
    member.join()
    assert synced(member) == {}
    assert member.generation == bench.group.assignment_epoch
    assert member.beat() == REBALANCE


def test_regular_expression_of_replaced_member_is_removed(group):
    new = group.consumer("static", regex_member := TOPIC, instance_id="i")
    new.options["subscribed_topic_regex"] = f"{regex_member}.*"
    new.join()
    group.run_later()
    assert group.group.regexes
    classic(group, group_instance_id="i").join()
    assert not group.group.regexes
    assert not group.group.resolved


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": []}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": [("sticky", b"")]}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": [("range", b"any")]}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_mismatched_join_is_rejected(group, options, error):
    both(group)
    assert classic(group, **options).enter().error == error
    assert group.group.member_count == 2


def test_first_classic_member_chooses_the_protocol(group):
    member = classic(group, protocols=[("sticky", group.metadata(TOPIC))]).enter()
    assert (member.error, member.joined.protocol_name) == (NONE, "sticky")


def test_full_group_rejects_only_new_members(make_bench):
    bench = make_bench(group_consumer_max_size=2)
    bench.set_topic(TOPIC, 4)
    bench.consumer("new", TOPIC).join()
    member = classic(bench).enter()
    assert classic(bench).enter().error == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert member.join().error == NONE


def test_disabled_migration_rejects_classic_members(make_bench):
    bench = make_bench(group_consumer_migration_policy="disabled")
    bench.set_topic(TOPIC, 4)
    bench.consumer("new", TOPIC).join()
    assert classic(bench).join().error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_failed_write_returns_the_error_and_changes_nothing(group):
    group.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    member = classic(group).join(version=3)
    assert member.error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group.group.member_count == 1


def test_answer_waits_for_the_commit(group):
    member = classic(group).join()
    group.log.is_held = True
    member.join()
    assert member.joined is None
    group.log.release()
    assert member.error == NONE


# -- static members -----------------------------------------------------------------------------


def test_returning_static_member_replaces_the_old_one(group):
    member = classic(group, group_instance_id="i").join()
    successor = classic(group, group_instance_id="i").join()
    assert successor.error == NONE
    assert successor.member_id != member.member_id
    assert (member.beat(), sync_error(member)) == (ErrorCode.FENCED_INSTANCE_ID,) * 2
    assert member.join().error == ErrorCode.FENCED_INSTANCE_ID
    assert group.leave((member.member_id, "i")) == [ErrorCode.FENCED_INSTANCE_ID]


def test_unknown_instance_is_unknown(group):
    member = classic(group, group_instance_id="i")
    member.member_id = "stranger"
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert (member.beat(), sync_error(member), member.join().error) == (unknown,) * 3


# -- checks -------------------------------------------------------------------------------------


def test_consumer_members_cannot_use_classic_requests(group):
    impostor = classic(group)
    impostor.member_id, impostor.generation = "new", group.new.epoch
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert (impostor.beat(), sync_error(impostor)) == (unknown, unknown)


@pytest.mark.parametrize("step", [-1, 1])
def test_other_generation_is_illegal(group, step):
    member = both(group)
    member.generation += step
    illegal = ErrorCode.ILLEGAL_GENERATION
    assert (member.beat(), sync_error(member)) == (illegal, illegal)


@pytest.mark.parametrize("changes", [{"protocol_type": "connect"}, {"protocol_name": "sticky"}])
def test_sync_of_another_protocol_is_inconsistent(group, changes):
    assert sync_error(both(group), **changes) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_sync_after_a_new_target_must_rejoin(group):
    member = both(group)
    group.consumer("third", TOPIC).join()
    assert sync_error(member) == REBALANCE


def test_sync_of_revoking_member_is_answered(group):
    member = both(group)
    group.consumer("third", TOPIC).join()
    member.protocols = [("range", group.metadata(TOPIC, owned={TOPIC: [2, 3]}))]
    member.join()
    group.consumer("fourth", TOPIC).join()
    assert sync_error(member) == NONE


# -- times --------------------------------------------------------------------------------------


def beats(bench, member, ms, *, new=True):
    """Advance the time, while members send heartbeats."""
    for _ in range(ms // 1_000):
        bench.advance(1_000)
        if member is not None:
            member.beat()
        if new:
            bench.new.beat()


@pytest.mark.parametrize(("silent_ms", "stays"), [(SESSION_MS - 1, True), (SESSION_MS, False)])
def test_session_timeout_of_the_member_applies(group, silent_ms, stays):
    member = both(group)
    group.advance(silent_ms)
    assert (member.member_id in group.group.members) is stays


@pytest.mark.parametrize("renew", ["join", "sync", "beat"])
def test_each_request_restarts_the_session(group, renew):
    member = both(group)
    group.advance(SESSION_MS - 1)
    getattr(member, renew)()
    group.advance(SESSION_MS - 1)
    assert member.member_id in group.group.members
    group.advance(1)
    assert member.member_id not in group.group.members


@pytest.mark.parametrize("syncs", [True, False])
def test_member_without_sync_is_fenced_after_rebalance_timeout(group, syncs):
    member = classic(group).enter()
    if syncs:
        member.sync()
    group.new.beat()
    beats(group, member, REBALANCE_MS - 1_000)
    group.advance(999)
    member.beat()
    assert member.member_id in group.group.members
    group.advance(1)
    assert (member.member_id in group.group.members) is syncs


@pytest.mark.parametrize("call", ["beat", "sync"])
def test_member_without_rejoin_is_fenced_after_rebalance_timeout(group, call):
    member = both(group)
    group.consumer("third", TOPIC).join()
    if call == "beat":
        assert member.beat() == REBALANCE
    else:
        assert sync_error(member) == REBALANCE
    beats(group, member, REBALANCE_MS - 1_000)
    group.advance(999)
    assert member.member_id in group.group.members
    group.advance(1)
    assert member.member_id not in group.group.members


def test_join_cancels_the_join_timer(group):
    member = both(group)
    group.consumer("third", TOPIC).join()
    member.beat()
    group.advance(1_000)
    member.join()
    member.sync()
    for _ in range(70):
        group.advance(1_000)
        group.new.beat()
        if member.beat() == REBALANCE:
            member.join()
            member.sync()
    assert member.member_id in group.group.members


def test_revocation_timeout_does_not_apply(group):
    member = both(group)
    group.consumer("third", TOPIC).join()
    member.protocols = [("range", group.metadata(TOPIC, owned={TOPIC: [2, 3]}))]
    member.join()
    member.sync()
    assert group.group.members[member.member_id].state is MemberState.UNREVOKED
    group.advance(1_000)
    assert group.rebalance.num_delayed() == 0


# -- leaving ------------------------------------------------------------------------------------


def test_members_of_both_protocols_leave_independently(group):
    first, second = both(group), classic(group, group_instance_id="i").join()
    third = group.consumer("third", TOPIC)
    third.join()
    epoch = group.group.group_epoch
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    left = group.leave((first.member_id, None), ("", "i"), ("new", None), ("stranger", None), ("", "none"))
    assert left == [NONE, NONE, NONE, unknown, unknown]
    assert list(group.group.members) == ["third"]
    assert group.group.group_epoch == epoch + 1, "one epoch for all of them"
    assert second.beat() == unknown


def test_failed_leave_writes_no_record(group):
    seen = len(group.log.records)
    assert group.leave(("stranger", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert len(group.log.records) == seen


def commit(group, member, generation_id):
    request = OffsetCommit(group.group.group_id, member.member_id, None, generation_id, 8, [])
    group.group.validate_offset_commit(request, is_transactional=False)


def test_commits_use_the_generation(group):
    member = both(group)
    commit(group, member, member.generation)
    with pytest.raises(ApiError) as raised:
        commit(group, member, member.generation + 1)
    assert raised.value.error_code == ErrorCode.ILLEGAL_GENERATION
