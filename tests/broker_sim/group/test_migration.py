"""Tests of group migration between the protocols; the behaviour was observed on Kafka 4.3.1."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.consumer_protocol import encode_assignment, read_assignment
from broker_sim.group.records import serde

NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
TOPIC = "t"
VERSION_3 = b"\0\3"


def assignment(*numbers):
    return encode_assignment([(TOPIC, numbers)], VERSION_3)


def assigned(data):
    return {of.topic: list(of.partitions) for of in read_assignment(data).assigned_partitions}


def classic_group(bench, *shares, **options):
    """Return the members of a stable classic group; each is assigned a share of the topic."""
    options.setdefault("protocols", [("range", bench.metadata(TOPIC))])
    members = [bench.member(**options).enter() for _ in shares]
    bench.advance(10_000)
    members.sort(key=lambda member: not member.is_leader)
    assignments = {m.member_id: assignment(*share) for m, share in zip(members, shares, strict=True)}
    members[0].sync(assignments)
    for member in members[1:]:
        member.sync()
    assert bench.state == "Stable"
    return members


@pytest.fixture
def bench(make_bench):
    bench = make_bench(group_consumer_assignment_interval_ms=0)
    bench.set_topic(TOPIC, 4)
    return bench


def names_of(records):
    return [(type(record.key).__name__.removesuffix("Key"), record.value is not None) for record in records]


# -- to the consumer protocol -------------------------------------------------------------------


def test_generation_becomes_epoch_and_members_keep_assignments(bench):
    (classic,) = classic_group(bench, ())
    classic.join()
    classic.sync({classic.member_id: assignment(0, 1, 2, 3)})
    assert classic.generation == 2
    new = bench.consumer("new", TOPIC)
    assert new.join() == ErrorCode.NONE
    assert (bench.group.group_type, bench.group.member_count) == ("consumer", 2)
    converted = bench.group.members[classic.member_id]
    assert (converted.member_epoch, converted.uses_classic_protocol) == (2, True)
    assert [sorted(numbers) for numbers in converted.assigned.values()] == [[0, 1, 2, 3]]
    assert (bench.group.group_epoch, new.epoch, new.partitions) == (3, 3, {})


def test_records_equal_kafkas_in_order(bench):
    classic_group(bench, (0, 1, 2, 3))
    seen = len(bench.log.records)
    bench.consumer("new", TOPIC).join()
    assert names_of(bench.log.records[seen:]) == [
        ("GroupMetadata", False),
        ("ConsumerGroupMemberMetadata", True),
        ("ConsumerGroupMetadata", True),
        ("ConsumerGroupTargetAssignmentMember", True),
        ("ConsumerGroupTargetAssignmentMetadata", True),
        ("ConsumerGroupCurrentMemberAssignment", True),
        # From here on the new member's heartbeat.
        ("ConsumerGroupMemberMetadata", True),
        ("ConsumerGroupMetadata", True),
        ("ConsumerGroupTargetAssignmentMember", True),
        ("ConsumerGroupTargetAssignmentMember", True),
        ("ConsumerGroupTargetAssignmentMetadata", True),
        ("ConsumerGroupCurrentMemberAssignment", True),
    ]


def test_parked_join_and_sync_get_rebalance_in_progress(bench):
    leader, follower = classic_group(bench, (0, 1), (2, 3))
    leader.join()
    assert leader.joined is None
    bench.consumer("new", TOPIC).join()
    assert leader.error == REBALANCE
    assert leader.joined.member_id == leader.member_id
    assert follower.beat() == REBALANCE


def test_parked_sync_gets_rebalance_in_progress(bench):
    leader, follower = classic_group(bench, (0, 1), (2, 3))
    leader.join()
    follower.join()
    follower.sync()
    assert follower.synced is None
    bench.consumer("new", TOPIC).join()
    assert follower.synced.error_code == REBALANCE
    assert bench.group.group_type == "consumer"


def test_upgraded_group_has_no_classic_operations(bench):
    leader, _ = classic_group(bench, (0, 1), (2, 3))
    leader.join()
    bench.consumer("new", TOPIC).join()
    assert bench.rebalance.num_delayed() == 0
    assert bench.heartbeat.num_delayed() == 3, "a session for each member"


def test_simultaneous_sessions_expire_in_record_order(bench):
    """As in Kafka, sessions start in the order of the new group's hash table."""
    classic_group(bench, (0, 1, 2, 3), *[()] * 7)
    seen = len(bench.log.records)
    bench.consumer("new", TOPIC).join()
    key = record_messages.ConsumerGroupMemberMetadataKey
    upgraded = [each.key.member_id for each in bench.log.records[seen:] if type(each.key) is key]
    seen = len(bench.log.records)
    bench.advance(45_000)
    gone = [each.key.member_id for each in bench.log.records[seen:] if type(each.key) is key]
    assert gone[:8] == upgraded[:8]


@pytest.mark.parametrize(
    ("policy", "error"),
    [("disabled", NOT_FOUND), ("downgrade", NOT_FOUND), ("upgrade", ErrorCode.NONE), ("bidirectional", ErrorCode.NONE)],
)
def test_policy_controls_upgrades(make_bench, policy, error):
    bench = make_bench(group_consumer_migration_policy=policy)
    bench.set_topic(TOPIC, 4)
    (classic,) = classic_group(bench, (0, 1))
    assert bench.consumer("new", TOPIC).join() == error
    assert bench.group.group_type == ("classic" if error else "consumer")
    if error:
        assert classic.beat() == ErrorCode.NONE


def refused(bench, group_type="classic"):
    new = bench.consumer("new", TOPIC)
    error = new.join()
    assert bench.group.group_type == group_type
    return error, new.answer.error_message


def test_group_of_another_protocol_type_is_not_upgraded(bench):
    classic_group(bench, (0,), protocol_type="connect")
    error, message = refused(bench)
    assert error == NOT_FOUND
    assert message.endswith("because the group does not use the consumer embedded protocol.")


def test_group_above_max_size_is_not_upgraded(make_bench):
    bench = make_bench(group_consumer_max_size=1)
    bench.set_topic(TOPIC, 4)
    classic_group(bench, (0,), (1,))
    error, message = refused(bench)
    assert error == NOT_FOUND
    assert message.endswith("because the group size exceeds the consumer group maximum size.")


def test_group_without_room_for_the_new_member_is_not_upgraded(make_bench):
    bench = make_bench(group_consumer_max_size=1)
    bench.set_topic(TOPIC, 4)
    classic_group(bench, (0,))
    assert refused(bench)[0] == ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize("subscription", [b"", b"\0", b"any", b"\xff\xff\0\0"])
def test_malformed_subscription_prevents_upgrade(bench, subscription):
    classic_group(bench, (0,), protocols=[("range", subscription)])
    error, message = refused(bench)
    assert error == NOT_FOUND
    assert message.endswith("because the embedded consumer protocol is malformed.")


def test_malformed_assignment_prevents_upgrade(bench):
    (member,) = classic_group(bench, (0,))
    bench.group.members[member.member_id].assignment = b"any"
    assert refused(bench)[0] == NOT_FOUND


def test_custom_assignor_data_prevents_upgrade(bench):
    (member,) = classic_group(bench, (0,))
    bench.group.members[member.member_id].assignment = assignment(0)[:-4] + b"\0\0\0\1x"
    error, message = refused(bench)
    assert error == NOT_FOUND
    assert "unsupported custom assignor" in message


def test_group_before_its_first_generation_is_not_upgraded(bench):
    member = bench.member(protocols=[("range", bench.metadata(TOPIC))]).enter()
    assert refused(bench)[0] == ErrorCode.UNKNOWN_SERVER_ERROR
    assert member.error == REBALANCE, "told to rejoin before the conversion failed"


def test_member_without_an_assignment_has_an_empty_target(bench):
    leader, follower = classic_group(bench, (0, 1, 2, 3), ())
    bench.group.members[follower.member_id].assignment = b""
    bench.consumer("new", TOPIC).join()
    assert not bench.group.members[follower.member_id].assigned
    assert bench.group.members[leader.member_id].assigned


def test_deleted_topic_is_not_in_the_target(bench):
    (member,) = classic_group(bench, (0, 1))
    bench.delete_topic(TOPIC)
    bench.consumer("new", TOPIC).join()
    assert not bench.group.members[member.member_id].assigned


def test_failed_write_leaves_the_group_classic(bench):
    (classic,) = classic_group(bench, (0, 1, 2, 3))
    bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.consumer("new", TOPIC).join() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.log.fails_with = ErrorCode.NONE
    assert (bench.state, classic.beat()) == ("Stable", ErrorCode.NONE)
    bench.advance(6_000)
    assert classic.beat() == ErrorCode.NONE
    bench.advance(6_000)
    assert classic.beat() == ErrorCode.NONE, "timers of the group that was not made do nothing"


# -- to the classic protocol --------------------------------------------------------------------


def mixed_group(bench):
    """Return a classic and a new member that have two partitions each."""
    (classic,) = classic_group(bench, (0, 1, 2, 3))
    new = bench.consumer("new", TOPIC)
    new.join()
    classic.join()
    classic.sync(protocol_type="consumer", protocol_name="range")
    new.beat()
    return classic, new


@pytest.mark.parametrize("how", ["leaves", "is silent"])
def test_group_is_downgraded_after_the_last_consumer_member(bench, how):
    classic, new = mixed_group(bench)
    if how == "leaves":
        assert new.leave() == ErrorCode.NONE
    else:
        for _ in range(10):
            bench.advance(5_000)
            classic.beat()
    assert (bench.group.group_type, bench.group.member_count) == ("classic", 1)
    assert (bench.state, bench.group.generation_id) == ("PreparingRebalance", 2)
    assert (bench.group.leader_id, bench.group.protocol_name) == (classic.member_id, "range")
    assert classic.beat() == REBALANCE
    classic.join()
    assert (classic.error, classic.generation) == (ErrorCode.NONE, 3)


def test_downgrade_is_written_in_one_batch(bench):
    classic, new = mixed_group(bench)
    seen = len(bench.log.records)
    new.leave()
    written = bench.log.records[seen:]
    assert names_of(written) == [
        *[("ConsumerGroupCurrentMemberAssignment", False)] * 2,
        *[("ConsumerGroupTargetAssignmentMember", False)] * 2,
        ("ConsumerGroupTargetAssignmentMetadata", False),
        *[("ConsumerGroupMemberMetadata", False)] * 2,
        ("ConsumerGroupPartitionMetadata", False),
        ("ConsumerGroupMetadata", False),
        ("GroupMetadata", True),
    ]
    value = written[-1].value
    assert isinstance(value, record_messages.GroupMetadataValue)
    assert (value.generation, value.protocol, value.leader) == (2, "range", classic.member_id)
    (member,) = value.members
    assert (member.session_timeout, member.rebalance_timeout) == (10_000, 60_000)
    assert assigned(bytes(member.assignment)) == {TOPIC: [0, 1]}


def test_assignment_is_in_the_version_of_the_members_subscription(bench):
    (classic,) = classic_group(bench, (0, 1), protocols=[("range", bench.metadata(TOPIC, version=1))])
    new = bench.consumer("new", TOPIC)
    new.join()
    new.leave()
    stored = bench.group.members[classic.member_id].assignment
    assert stored[:2] == b"\0\1"


def test_downgrade_survives_a_failover(bench):
    classic, new = mixed_group(bench)
    new.leave()
    bench.fail_over()
    assert (bench.group.group_type, bench.state) == ("classic", "Stable")
    assert classic.beat(generation_id=2) == ErrorCode.NONE


def test_mixed_group_survives_a_failover(bench):
    classic, new = mixed_group(bench)
    bench.fail_over()
    assert bench.group.member_count == 2
    assert (classic.beat(), new.beat()) == (ErrorCode.NONE, ErrorCode.NONE)
    assert bench.group.classic_members == 1


@pytest.mark.parametrize(("policy", "kind"), [("upgrade", "consumer"), ("bidirectional", "classic")])
def test_policy_controls_downgrades(make_bench, policy, kind):
    bench = make_bench(group_consumer_migration_policy=policy)
    bench.set_topic(TOPIC, 4)
    classic, new = mixed_group(bench)
    new.leave()
    assert bench.group.group_type == kind
    assert classic.beat() == (REBALANCE if kind == "classic" else ErrorCode.NONE)


def test_downgrade_is_allowed_where_upgrades_are_not(make_bench):
    bench = make_bench(group_consumer_migration_policy="downgrade")
    bench.set_topic(TOPIC, 4)
    new = bench.consumer("new", TOPIC)
    new.join()
    classic = bench.member(protocols=[("range", bench.metadata(TOPIC))]).enter()
    assert classic.error == ErrorCode.NONE
    new.leave()
    assert bench.group.group_type == "classic"


def test_empty_leave_does_not_downgrade(bench):
    classic, new = mixed_group(bench)
    taker = bench.member(protocols=classic.protocols)
    taker.member_id = new.member_id
    assert taker.join().error == ErrorCode.NONE
    assert bench.group.classic_members == 2
    assert bench.leave(("nobody", None)) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert bench.group.group_type == "consumer"


def test_group_above_classic_max_size_is_not_downgraded(make_bench):
    bench = make_bench(group_max_size=1)
    bench.set_topic(TOPIC, 4)
    new = bench.consumer("new", TOPIC)
    new.join()
    for _ in range(2):
        bench.member(protocols=[("range", bench.metadata(TOPIC))]).enter()
    new.leave()
    assert (bench.group.group_type, bench.group.member_count) == ("consumer", 2)


def test_empty_group_is_not_converted(bench):
    new = bench.consumer("new", TOPIC)
    new.join()
    new.leave()
    assert (bench.group.group_type, bench.state) == ("consumer", "Empty")


def test_failed_write_does_not_change_the_group(bench):
    classic, new = mixed_group(bench)
    bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    epoch = new.epoch
    assert new.leave() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.log.fails_with = ErrorCode.NONE
    new.epoch = epoch
    assert (bench.group.group_type, classic.beat()) == ("consumer", ErrorCode.NONE)
    assert new.beat() == ErrorCode.NONE


def test_failed_write_of_expiration_is_retried(bench):
    classic, _ = mixed_group(bench)
    bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    for _ in range(10):
        bench.advance(5_000)
        classic.beat()
    assert bench.group.group_type == "consumer"
    bench.log.fails_with = ErrorCode.NONE
    bench.advance(500)
    assert bench.group.group_type == "classic"


# -- static members -----------------------------------------------------------------------------


def test_returning_static_consumer_member_gets_partitions_at_once(bench):
    (classic,) = classic_group(bench, (0, 1, 2, 3), group_instance_id="i")
    new = bench.consumer("new", TOPIC, instance_id="i")
    assert new.join() == ErrorCode.NONE
    assert new.partitions == {TOPIC: [0, 1, 2, 3]}
    assert classic.beat() == ErrorCode.FENCED_INSTANCE_ID
    assert (bench.group.member_count, bench.group.classic_members) == (1, 0)


def static_pair(bench):
    """Return two members of the new protocol with instances, of which each has a half."""
    first = bench.consumer("first", TOPIC, instance_id="i1")
    second = bench.consumer("second", TOPIC, instance_id="i2")
    first.join()
    second.join()
    for member in (first, second) * 2:
        member.beat()
    return first, second


def back(bench, instance_id, *topics):
    protocols = [("range", bench.metadata(*topics or (TOPIC,)))]
    return bench.member(protocols=protocols, group_instance_id=instance_id).join()


def test_last_static_member_downgrades_without_rebalance(bench):
    first, second = static_pair(bench)
    back(bench, "i1")
    assert bench.group.group_type == "consumer"
    last = back(bench, "i2")
    assert (last.error, last.generation) == (ErrorCode.NONE, 3)
    assert (bench.group.group_type, bench.state) == ("classic", "Stable")
    last.sync()
    shares = [assigned(member.assignment)[TOPIC] for member in bench.group.members.values()]
    assert sorted(number for share in shares for number in share) == [0, 1, 2, 3]
    assert assigned(last.synced.assignment) == second.partitions
    assert first.beat() == NOT_FOUND


def test_downgraded_members_have_sessions(bench):
    static_pair(bench)
    back(bench, "i1")
    back(bench, "i2")
    bench.advance(9_999)
    assert bench.group.member_count == 2
    bench.advance(1)
    assert bench.group.member_count == 0


def test_last_static_member_with_new_subscription_rebalances(bench):
    bench.set_topic("other", 1)
    static_pair(bench)
    back(bench, "i1")
    last = back(bench, "i2", TOPIC, "other")
    assert last.error == ErrorCode.NONE
    assert (bench.group.group_type, bench.state) == ("classic", "PreparingRebalance")
    assert last.beat(generation_id=bench.group.generation_id) == REBALANCE


def test_downgrade_by_static_member_deletes_all_records(bench):
    static_pair(bench)
    back(bench, "i1")
    back(bench, "i2")
    newest = {serde.encode_key(record.key): record for record in bench.log.records}
    live = [record for record in newest.values() if record.value is not None]
    assert names_of(live) == [("GroupMetadata", True)]
    bench.fail_over()
    assert (bench.group.group_type, bench.group.member_count) == ("classic", 2)
    assert sorted(bench.group.static_members) == ["i1", "i2"]
