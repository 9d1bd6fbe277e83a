"""Tests of streams group members: join with a topology, assignment, revocation and leave."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.group.streams.topics.configured_topology import Status
from tests.broker_sim.group.streams.members import GROUP, Request, subtopology

NONE = ErrorCode.NONE
CHANGELOG = [("app-store-changelog", 0, 1, [])]
HEARTBEAT_MS = 5_000


def stateful(name="0"):
    return subtopology(name, "in", state_changelog_topics=CHANGELOG)


def test_new_group_has_an_initial_delay(make_streams):
    streams = make_streams(group_streams_assignment_interval_ms=0)
    streams.bench.set_topic("in", 2)
    first, second = streams.member("a"), streams.member("b")
    delayed = {Status.ASSIGNMENT_DELAYED: "Assignment delayed due to the configured initial rebalance delay."}
    assert first.join() == NONE
    assert (first.epoch, first.active, first.statuses) == (1, {}, delayed)
    streams.bench.advance(2_999)
    second.join()
    assert (second.active, second.statuses) == ({}, delayed)
    streams.bench.advance(1)
    assert streams.group.assignment_epoch == 3
    streams.settle(first, second)
    assert [first.active, second.active] == [{"0": [0]}, {"0": [1]}]


def test_second_heartbeat_assigns_after_the_delay(make_streams):
    streams = make_streams(group_streams_assignment_interval_ms=0)
    streams.bench.set_topic("in", 1)
    member = streams.member("a")
    member.join()
    streams.bench.advance(3_000)
    assert streams.group.assignment_epoch == 1
    member.beat()
    assert (member.epoch, member.active) == (2, {"0": [0]})


def test_targets_are_computed_once_per_interval(make_streams):
    streams = make_streams(group_streams_initial_rebalance_delay_ms=0)
    streams.bench.set_topic("in", 2)
    first, second = streams.member("a"), streams.member("b")
    first.join()
    second.join()
    assert second.statuses == {
        Status.ASSIGNMENT_DELAYED: "Assignment delayed due to the configured assignment interval."
    }
    assert (second.epoch, second.active) == (2, {})
    streams.bench.advance(999)
    second.beat()
    assert second.epoch == 2
    streams.bench.advance(1)
    second.beat()
    assert second.epoch == 3


def test_tasks_are_not_assigned_without_source_topics(streams):
    member = streams.member("a")
    assert member.join() == NONE
    assert set(member.statuses) == {Status.MISSING_SOURCE_TOPICS}
    assert (member.epoch, member.active) == (2, {})
    assert streams.group.state_name == "NotReady"
    streams.bench.set_topic("in", 1)
    member.beat()
    assert (member.active, member.statuses) == ({"0": [0]}, {})
    assert streams.group.state_name == "Stable"


def test_missing_internal_topics_are_returned_for_creation(streams):
    streams.bench.set_topic("in", 3)
    member = streams.member("a", stateful())
    member.join()
    assert set(member.statuses) == {Status.MISSING_INTERNAL_TOPICS}
    (topic,) = member.to_create.values()
    assert (topic.name, topic.num_partitions) == ("app-store-changelog", 3)
    assert member.active == {}
    streams.bench.set_topic("app-store-changelog", 3)
    member.beat()
    assert (member.to_create, member.active) == ({}, {"0": [0, 1, 2]})


def test_deleted_topic_stops_the_group_and_a_new_one_starts_it(streams):
    streams.bench.set_topic("in", 2)
    members = [streams.member(name) for name in "ab"]
    for member in members:
        member.join()
    streams.settle(*members)
    assert streams.group.state_name == "Stable"
    streams.bench.delete_topic("in")
    members[0].beat()
    assert set(members[0].statuses) == {Status.MISSING_SOURCE_TOPICS}
    assert streams.group.state_name == "NotReady"
    streams.settle(*members)
    assert [member.active for member in members] == [{}, {}]
    streams.bench.set_topic("in", 2)
    streams.settle(*members)
    assert [member.active for member in members] == [{"0": [0]}, {"0": [1]}]


def test_older_topology_gets_a_status(streams):
    streams.bench.set_topic("in", 1)
    first, second = streams.member("a", epoch=2), streams.member("b", epoch=1)
    first.join()
    assert second.join() == NONE
    told = {Status.STALE_TOPOLOGY: "The member's topology epoch 1 is behind the group's topology epoch 2."}
    assert second.statuses == told
    second.beat()
    assert second.statuses == told


def test_different_topology_is_rejected(streams):
    streams.bench.set_topic("in", 1)
    streams.member("a").join()
    other = streams.member("b", subtopology("1", "in"))
    assert other.join() == ErrorCode.INVALID_REQUEST
    assert other.answer.error_message == "Topology updates are not supported yet."


def test_member_can_request_a_shutdown(streams):
    streams.bench.set_topic("in", 1)
    first, second = streams.member("a"), streams.member("b")
    first.join()
    second.join()
    first.beat(shutdown_application=True)
    told = {
        Status.SHUTDOWN_APPLICATION: "Streams group member a encountered a fatal error and requested a "
        "shutdown for the entire application."
    }
    assert first.statuses == told
    first.leave()
    second.beat()
    assert second.statuses == told
    second.leave()
    second.join()
    assert second.statuses == {}


def test_leaving_member_can_request_a_shutdown(streams):
    streams.bench.set_topic("in", 1)
    first, second = streams.member("a"), streams.member("b")
    first.join()
    second.join()
    first.leave(shutdown_application=True)
    second.beat()
    assert set(second.statuses) == {Status.SHUTDOWN_APPLICATION}


def test_standby_tasks_are_in_other_processes(make_streams):
    streams = make_streams(
        group_streams_initial_rebalance_delay_ms=0,
        group_streams_assignment_interval_ms=0,
        group_streams_num_standby_replicas=1,
    )
    streams.bench.set_topic("in", 2)
    streams.bench.set_topic("app-store-changelog", 2)
    members = [streams.member(name, stateful()) for name in "ab"]
    for member in members:
        member.join()
    streams.settle(*members)
    assert [member.active for member in members] == [{"0": [0]}, {"0": [1]}]
    assert [member.standby for member in members] == [{"0": [1]}, {"0": [0]}]


def test_group_configuration_is_used(streams):
    streams.bench.set_topic("in", 1)
    streams.bench.set_topic("app-store-changelog", 1)
    members = [streams.member(name, stateful()) for name in "ab"]
    for member in members:
        member.join()
    streams.settle(*members)
    assert [member.standby for member in members] == [{}, {}]
    streams.bench.configure_group(GROUP, streams_num_standby_replicas=1, streams_heartbeat_interval_ms=7_000)
    streams.settle(*members)
    assert [member.standby for member in members] == [{}, {"0": [0]}]
    assert members[0].answer.heartbeat_interval_ms == 7_000


def test_endpoints_are_sent_when_tasks_change(streams):
    streams.bench.set_topic("in", 2)
    first, second = streams.member("a"), streams.member("b")
    endpoint = Request.Endpoint("host-a", 8080)
    first.join(user_endpoint=endpoint)
    # The group of the first heartbeat is forgotten, so its epoch of endpoints begins anew.
    assert first.answer.endpoint_information_epoch == 0
    (told,) = first.answer.partitions_by_user_endpoint
    assert (told.user_endpoint.host, told.user_endpoint.port) == ("host-a", 8080)
    assert [(each.topic, each.partitions) for each in told.active_partitions] == [("in", [0, 1])]
    second.join()
    first.beat()
    assert first.answer.endpoint_information_epoch == 1
    second.beat(endpoint_information_epoch=1)
    assert second.answer.partitions_by_user_endpoint is None
    second.beat(endpoint_information_epoch=0)
    (told,) = second.answer.partitions_by_user_endpoint
    assert [(each.topic, each.partitions) for each in told.active_partitions] == [("in", [0])]


def _ports(member):
    return [told.user_endpoint.port for told in member.answer.partitions_by_user_endpoint]


def test_changed_endpoint_is_sent_once_committed_to_the_group(streams):
    """As in Kafka, the response to the changing member has the old endpoint."""
    streams.bench.set_topic("in", 1)
    member = streams.member("a")
    member.join(user_endpoint=Request.Endpoint("host", 1))
    member.beat(endpoint_information_epoch=-1)
    assert _ports(member) == [1]
    member.beat(endpoint_information_epoch=-1, user_endpoint=Request.Endpoint("host", 2))
    assert _ports(member) == [1]
    member.beat(endpoint_information_epoch=-1)
    assert _ports(member) == [2]


def test_partitions_at_an_endpoint_follow_the_topics(streams):
    streams.bench.set_topic("in", 1)
    member = streams.member("a")
    member.join(user_endpoint=Request.Endpoint("host", 1))
    member.beat(endpoint_information_epoch=-1)
    streams.bench.set_topic("in", 2)
    member.beat(endpoint_information_epoch=-1)
    (told,) = member.answer.partitions_by_user_endpoint
    assert [(each.topic, each.partitions) for each in told.active_partitions] == [("in", [0, 1])]


@pytest.mark.parametrize(
    ("epoch", "owned", "code"),
    [
        (3, "unchanged", ErrorCode.FENCED_MEMBER_EPOCH),
        (1, "unchanged", ErrorCode.FENCED_MEMBER_EPOCH),
        (2, ({"0": [5]}, {}, {}), ErrorCode.INVALID_REQUEST),
        (2, ({"9": [0]}, {}, {}), ErrorCode.INVALID_REQUEST),
    ],
)
def test_epochs_and_tasks_of_heartbeats_are_checked(streams, epoch, owned, code):
    streams.bench.set_topic("in", 1)
    member = streams.member("a")
    member.join()
    assert member.epoch == 2
    assert member.beat(member_epoch=epoch, owned=owned) == code


def test_group_is_the_same_after_a_failover(streams):
    streams.bench.set_topic("in", 3)
    members = [streams.member(name) for name in "ab"]
    for member in members:
        member.join(client_tags=[Request.KeyValue("zone", "z")], rack_id="r")
    streams.settle(*members)
    before = streams.describe()
    streams.bench.fail_over()
    assert streams.describe() == before
    assert before.group_state == "Stable"
    assert [member.beat() for member in members] == [NONE, NONE]
    assert members[0].answer.active_tasks is None
    streams.bench.advance(45_000)
    assert streams.group.state_name == "Empty"
