"""Tests of consumer, share and streams groups alike: sessions, checks and the log."""

import pytest

from broker_sim.errors import ApiError, ErrorCode
from tests.broker_sim.group.share.members import Shares
from tests.broker_sim.group.streams.members import Streams

NONE = ErrorCode.NONE
SESSION_MS = 45_000
IDS = {"consumer": "group", "share": "share", "streams": "app"}
KINDS = list(IDS)
AT_ONCE = {
    "group_consumer_assignment_interval_ms": 0,
    "group_share_assignment_interval_ms": 0,
    "group_streams_assignment_interval_ms": 0,
    "group_streams_initial_rebalance_delay_ms": 0,
}


class Groups:
    """The groups of one kind of a bench; all members read the topic `in`."""

    def __init__(self, kind, bench):
        self.kind, self.bench = kind, bench
        self.group_id = IDS[kind]
        self.clients = {"share": Shares, "streams": Streams}.get(kind, lambda bench: bench)(bench)
        bench.set_topic("in", 2)

    @property
    def group(self):
        return self.bench.shard.groups[self.group_id]

    @property
    def members(self):
        return list(self.group.members)

    @property
    def count(self):
        """The number of new group epochs that were counted."""
        return getattr(self.bench.service.counters, f"{self.kind}_group_rebalances")

    def member(self, member_id):
        if self.kind == "consumer":
            return self.bench.consumer(member_id, "in")
        return self.clients.member(member_id, *(["in"] if self.kind == "share" else []))

    def joined(self, *member_ids):
        """Return members that are reconciled with their targets."""
        members = [self.member(member_id) for member_id in member_ids]
        assert [member.join() for member in members] == [NONE] * len(members)
        for _ in range(5):
            self.bench.run_later()
            assert [member.beat() for member in members] == [NONE] * len(members)
        return members

    def partitions(self, member):
        """Return the partitions of `in` that the member owns."""
        return member.partitions.get("in", []) if self.kind == "consumer" else member.active.get("0", [])

    def owning(self, *partitions):
        """Return the fields of a heartbeat that reports the owned partitions of `in`."""
        if self.kind == "consumer":
            return {"owned": {self.bench.image.topics["in"].topic_id: list(partitions)}}
        return {"owned": ({"0": list(partitions)}, {}, {})}

    def describe(self, group_id=None):
        group_id = self.group_id if group_id is None else group_id
        if self.kind == "consumer":
            return self.bench.service.consumer_group_describe([group_id])[0]
        return self.clients.describe(group_id)


@pytest.fixture
def make_groups(make_bench):
    return lambda kind, **configs: Groups(
        kind, make_bench(**AT_ONCE, **{f"group_{kind}_{name}": value for name, value in configs.items()})
    )


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def groups(kind, make_groups):
    return make_groups(kind)


def test_rebalance_on_demand_moves_members_to_a_new_epoch(groups):
    first, second = groups.joined("m1", "m2")
    epoch, count = groups.group.group_epoch, groups.count
    results = []
    groups.bench.service.rebalance(groups.group_id, results.append, results.append)
    assert results == [NONE]
    for _ in range(2):
        groups.bench.run_later()
        assert [member.beat() for member in (first, second)] == [NONE, NONE]
    assert groups.group.group_epoch == groups.group.assignment_epoch == epoch + 1
    assert {member.member_epoch for member in groups.group.members.values()} == {epoch + 1}
    assert groups.count == count + 1


# -- sessions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("silent_ms", "is_there"), [(SESSION_MS - 1, True), (SESSION_MS, False)])
def test_silent_member_is_fenced_at_its_session_timeout(groups, silent_ms, is_there):
    (member,) = groups.joined("m1")
    groups.bench.advance(silent_ms)
    assert ("m1" in groups.members) == is_there
    assert member.beat() == (NONE if is_there else ErrorCode.UNKNOWN_MEMBER_ID)


def test_heartbeats_postpone_one_operation(groups):
    (member,) = groups.joined("m1")
    parked = groups.bench.heartbeat.statistics().total_watched
    for _ in range(3):
        groups.bench.advance(SESSION_MS - 1)
        member.beat()
    assert groups.members == ["m1"]
    assert groups.bench.heartbeat.statistics().total_watched == parked


def test_failed_write_of_fencing_is_retried(groups):
    groups.joined("m1")
    groups.bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    groups.bench.advance(SESSION_MS)
    assert groups.members == ["m1"]
    groups.bench.log.fails_with = NONE
    groups.bench.advance(499)
    assert groups.members == ["m1"]
    groups.bench.advance(1)
    assert groups.members == []


def test_member_leaves(groups):
    (member,) = groups.joined("m1")
    assert member.leave() == NONE
    assert (member.answer.member_id, member.answer.member_epoch) == ("m1", -1)
    assert groups.describe().group_state == "Empty"
    assert groups.bench.heartbeat.num_delayed() == 0
    assert member.leave() == ErrorCode.UNKNOWN_MEMBER_ID


def test_failed_leave_does_not_change_the_session(groups):
    (member,) = groups.joined("m1")
    groups.bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert member.leave() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (groups.members, groups.bench.heartbeat.num_delayed()) == (["m1"], 1)
    groups.bench.log.fails_with = NONE
    assert member.leave() == NONE
    assert groups.bench.heartbeat.num_delayed() == 0


def test_failed_heartbeat_write_still_extends_the_session(groups):
    (member,) = groups.joined("m1")
    groups.bench.advance(30_000)
    groups.bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    assert member.beat(rack_id="other") == ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.bench.log.fails_with = NONE
    groups.bench.advance(30_000)
    assert groups.members == ["m1"]


# -- checks ---------------------------------------------------------------------------------------


def test_newer_epoch_is_fenced(groups):
    (member,) = groups.joined("m1")
    assert member.beat(member_epoch=9) == ErrorCode.FENCED_MEMBER_EPOCH


def test_unknown_member_and_group(groups):
    stranger = groups.member("m1")
    stranger.epoch = 5
    assert stranger.beat() == ErrorCode.GROUP_ID_NOT_FOUND
    groups.joined("m2")
    stranger.epoch = 5
    assert stranger.beat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_full_group_rejects_new_members(kind, make_groups):
    groups = make_groups(kind, max_size=1)
    (member,) = groups.joined("m1")
    assert groups.member("m2").join() == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert member.beat() == NONE
    assert member.join() == NONE


@pytest.mark.parametrize("other", KINDS)
def test_group_of_another_kind_rejects_members(groups, kind, other):
    if other == kind:
        return
    Groups(other, groups.bench).member("x").join(group_id=groups.group_id)
    member = groups.member("m1")
    assert member.join() == ErrorCode.GROUP_ID_NOT_FOUND
    assert member.answer.error_message == f"Group {groups.group_id} is not a {kind} group."
    assert groups.describe().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_group_with_members_is_not_deleted(groups):
    (member,) = groups.joined("m1")
    with pytest.raises(ApiError, match="not empty"):
        groups.group.validate_delete_group()
    member.leave()
    groups.group.validate_delete_group()
    groups.bench.write(groups.group.tombstones())
    assert groups.bench.shard.groups == {}


def test_group_is_listed_by_type(groups, kind):
    groups.joined("m1")
    (listed,) = groups.bench.service.list_groups((), (kind,))
    assert (listed.group_id, listed.protocol_type, listed.group_type) == (groups.group_id, kind, kind)
    assert groups.bench.service.list_groups((), ("classic",)) == []


def test_description_of_unknown_group_is_an_error(groups):
    assert groups.describe("").error_code == ErrorCode.INVALID_GROUP_ID
    assert groups.describe("none").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    groups.bench.resign()
    assert groups.describe().error_code == ErrorCode.NOT_COORDINATOR


# -- epochs and targets ---------------------------------------------------------------------------


def test_new_epochs_are_counted_except_after_leave(groups):
    first, second = groups.joined("m1", "m2")
    count, epoch = groups.count, groups.group.group_epoch
    assert count >= 2
    second.leave()
    assert (groups.count, groups.group.group_epoch) == (count, epoch + 1)
    groups.bench.set_topic("in", 3)
    first.beat()
    assert groups.count == count + 1


def test_next_target_waits_for_the_assignment_interval(kind, make_bench):
    configs = {**AT_ONCE, f"group_{kind}_assignment_interval_ms": 1_000}
    groups = Groups(kind, make_bench(**configs))
    first, second = groups.member("m1"), groups.member("m2")
    first.join()
    groups.bench.advance(999)
    second.join()
    assert groups.group.assignment_epoch < groups.group.group_epoch
    groups.bench.advance(1)
    first.beat()
    assert groups.group.assignment_epoch == groups.group.group_epoch


def test_group_configuration_overrides_the_brokers(groups, kind):
    configs = {f"{kind}_session_timeout_ms": 50_000, f"{kind}_heartbeat_interval_ms": 7_000}
    groups.bench.configure_group(groups.group_id, **configs)
    (member,) = groups.joined("m1")
    assert member.answer.heartbeat_interval_ms == 7_000
    groups.bench.advance(49_999)
    assert groups.members == ["m1"]
    groups.bench.advance(1)
    assert groups.members == []


# -- partitions that one member gives up for another ------------------------------------------------


@pytest.fixture(params=["consumer", "streams"])
def exclusive(request, make_groups):
    """Groups of kinds whose partitions have a single owner, which must revoke them first."""
    return make_groups(request.param)


def test_first_member_gets_everything_once_in_epoch_2(exclusive):
    member = exclusive.member("m1")
    assert member.join() == NONE
    assert (member.epoch, exclusive.partitions(member)) == (2, [0, 1])
    assert member.answer.heartbeat_interval_ms == 5_000
    assert exclusive.group.state_name == "Stable"
    assert member.beat() == NONE
    assignment = member.answer.assignment if exclusive.kind == "consumer" else member.answer.active_tasks
    assert assignment is None


def test_second_member_waits_until_the_first_has_revoked(exclusive):
    first, second = exclusive.member("m1"), exclusive.member("m2")
    first.join()
    assert second.join() == NONE
    assert (second.epoch, exclusive.partitions(second)) == (3, [])
    first.beat(**exclusive.owning(0, 1))
    assert (first.epoch, len(exclusive.partitions(first))) == (2, 1)
    assert exclusive.group.state_name == "Reconciling"
    remaining = exclusive.partitions(first)
    second.beat()
    assert exclusive.partitions(second) == [], "the first has not said that it has revoked"
    first.beat(**exclusive.owning(0, 1))
    assert first.epoch == 2, "it still owns both"
    first.beat(**exclusive.owning(*remaining))
    assert first.epoch == 3
    second.beat()
    assert sorted(remaining + exclusive.partitions(second)) == [0, 1]
    assert exclusive.group.state_name == "Stable"


def revoking(groups):
    """Return a member that must revoke within 10 s, and the one that waits for it."""
    first, second = groups.member("m1"), groups.member("m2")
    first.join(rebalance_timeout_ms=10_000)
    second.join()
    first.beat(**groups.owning(0, 1))
    return first, second


def test_member_is_fenced_if_it_does_not_revoke_in_time(exclusive):
    first, second = revoking(exclusive)
    exclusive.bench.advance(9_999)
    assert "m1" in exclusive.members
    exclusive.bench.advance(1)
    assert exclusive.members == ["m2"]
    assert first.beat() == ErrorCode.UNKNOWN_MEMBER_ID
    second.beat()
    assert exclusive.partitions(second) == [0, 1]


def test_member_that_revokes_in_time_stays(exclusive):
    first, _ = revoking(exclusive)
    first.beat()
    assert first.epoch == 3
    exclusive.bench.advance(10_000)
    assert "m1" in exclusive.members


def test_revocation_timeout_applies_after_loading(exclusive):
    revoking(exclusive)
    exclusive.bench.fail_over()
    exclusive.bench.advance(9_999)
    assert "m1" in exclusive.members
    exclusive.bench.advance(1)
    assert exclusive.members == ["m2"]


def test_leaving_member_frees_its_partitions(exclusive):
    first, second = exclusive.joined("m1", "m2")
    assert first.leave() == NONE
    second.beat()
    assert exclusive.partitions(second) == [0, 1]


def test_previous_epoch_is_accepted_after_a_lost_response(exclusive):
    first, second = exclusive.member("m1"), exclusive.member("m2")
    first.join()
    second.join()
    first.beat()
    first.beat()
    assert first.epoch == 3
    assert first.beat(member_epoch=2, **exclusive.owning(*exclusive.partitions(first))) == NONE
    assert first.beat(member_epoch=2, **exclusive.owning(0, 1)) == ErrorCode.FENCED_MEMBER_EPOCH
    nothing_said = {"topic_partitions": None} if exclusive.kind == "consumer" else {"owned": None}
    assert first.beat(member_epoch=2, **nothing_said) == ErrorCode.FENCED_MEMBER_EPOCH


def test_new_partitions_are_assigned_with_the_next_heartbeat(exclusive):
    (member,) = exclusive.joined("m1")
    exclusive.bench.set_topic("in", 3)
    member.beat()
    assert (member.epoch, exclusive.partitions(member)) == (3, [0, 1, 2])


def test_topic_that_comes_later_is_assigned(exclusive):
    exclusive.bench.delete_topic("in")
    member = exclusive.member("m1")
    member.join()
    assert exclusive.partitions(member) == []
    exclusive.bench.set_topic("in", 1)
    member.beat()
    assert exclusive.partitions(member) == [0]


# -- the log --------------------------------------------------------------------------------------


def test_answer_waits_for_the_commit(groups):
    groups.bench.log.is_held = True
    member = groups.member("m1")
    assert member.join() is None
    groups.bench.log.release()
    answer = member.answers[0] if groups.kind == "consumer" else member.answer
    assert answer.member_epoch == 2


def test_failed_append_changes_nothing(groups):
    groups.bench.log.fails_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert groups.member("m1").join() == ErrorCode.NOT_COORDINATOR
    assert groups.bench.shard.groups == {}


def test_next_coordinator_continues(groups):
    members = groups.joined("m1", "m2")
    before = groups.describe()
    groups.bench.advance(30_000)
    groups.bench.fail_over()
    after = groups.describe()
    for described in (before, after):
        described.members.sort(key=lambda member: member.member_id)
    assert after == before
    assert before.group_state == "Stable"
    assert [member.beat() for member in members] == [NONE, NONE]
    groups.bench.advance(SESSION_MS)
    assert groups.group.is_empty, "their sessions began anew"


def test_unloaded_group_has_no_timers(groups):
    groups.joined("m1")
    groups.bench.resign()
    assert groups.bench.heartbeat.num_delayed() == 0


def test_timers_started_in_unloaded_group_write_nothing(groups, kind):
    groups.joined("m1")
    shard, member = groups.bench.shard, groups.group.members["m1"]
    groups.bench.fail_over()
    records = len(groups.bench.log.records)
    getattr(shard, kind).keep_alive(groups.group_id, member, 10)
    groups.bench.advance(10)
    assert len(groups.bench.log.records) == records
    assert groups.members == ["m1"]
