"""Groups in the status of a cluster."""

import pytest

from broker_sim.cluster.status.coordinator_status import GroupOffsetStatus
from broker_sim.group.consumer_protocol import encode_assignment
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages

METADATA = b"\x00\x01"


def assigned(*partitions):
    return encode_assignment([("t", partitions)], METADATA)


def stable_group(user, assignment):
    member_id = user.joined().member_id
    user.ask(user.sync(member_id, assignments=[(member_id, assignment)]), 3, user.leader("g"))
    return member_id


def test_classic_group_has_its_members_offsets_and_lag(user):
    member_id = stable_group(user, assigned(0, 1))
    user.cluster.produce("t", "a", partition=0)
    user.cluster.produce("t", "b", partition=0)
    user.cluster.produce("t", "c", partition=1)
    user.commit("g", {0: 1}, member=member_id, generation=1)
    group = user.cluster.group("g")
    assert (group.id, group.type, group.state, group.assignor) == ("g", "classic", "Stable", "range")
    assert group.coordinator == user.leader("g")
    (member,) = group.members
    assert (member.id, member.instance_id) == (member_id, None)
    assert member.client_id == user.client.host
    assert member.assignment == (TopicPartition("t", 0), TopicPartition("t", 1))
    assert group.offsets == (
        GroupOffsetStatus("t", 0, 1, high_watermark=2, lag=1),
        GroupOffsetStatus("t", 1, None, high_watermark=1, lag=1),
    )
    assert (group.lag, group.committed("t"), group.committed("t", 1)) == (2, 1, None)
    assert user.cluster.status().group("g") == group
    assert user.cluster.groups() == (group,)


def test_group_of_the_consumer_protocol_has_its_members(user):
    request = messages.ConsumerGroupHeartbeatRequest(
        "g", "m", 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert not user.ask(request, 1, user.leader("g")).error_code
    group = user.cluster.group("g")
    assert (group.type, group.state, group.assignor) == ("consumer", "Stable", "uniform")
    (member,) = group.members
    assert (member.id, member.assignment) == ("m", (TopicPartition("t", 0), TopicPartition("t", 1)))


def test_streams_group_has_its_members_and_the_partitions_that_they_read(user):
    told = messages.StreamsGroupHeartbeatRequest
    request = told(
        "g",
        "m",
        0,
        rebalance_timeout_ms=60_000,
        topology=told.Topology(0, [told.Subtopology("0", ["t"])]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    )
    assert not user.ask(request, 0, user.leader("g")).error_code
    user.cluster.advance(3_000)
    beat = told("g", "m", 1, active_tasks=[], standby_tasks=[], warmup_tasks=[])
    assert not user.ask(beat, 0, user.leader("g")).error_code
    group = user.cluster.group("g")
    assert (group.type, group.state, group.assignor) == ("streams", "Stable", "sticky")
    (member,) = group.members
    partitions = TopicPartition("t", 0), TopicPartition("t", 1)
    assert (member.id, member.assignment) == ("m", partitions)
    assert [(each.topic, each.partition) for each in group.offsets] == [*partitions]
    user.cluster.nodes.brokers[user.leader("g")].remove_member("g", "m")
    user.cluster.advance(1_000)
    assert user.cluster.group("g").members == ()


@pytest.mark.parametrize("assignment", [b"", b"\x00", b"no assignment at all"])
def test_assignment_that_only_the_members_understand_is_empty(user, assignment):
    stable_group(user, assignment)
    assert user.cluster.group("g").members[0].assignment == ()


def test_status_has_offsets_of_a_group_without_members(user):
    user.commit("g", {0: 0})
    group = user.cluster.group("g")
    assert (group.state, group.members) == ("Empty", ())
    assert group.offsets == (GroupOffsetStatus("t", 0, 0, high_watermark=0, lag=0),)


def test_partition_that_does_not_exist_has_no_lag(user):
    stable_group(user, encode_assignment([("gone", [3])], METADATA))
    group = user.cluster.group("g")
    assert group.offsets == (GroupOffsetStatus("gone", 3, None, high_watermark=None, lag=None),)
    assert group.lag == 0


def test_error_of_an_unknown_group_lists_the_existing_ones(user):
    user.commit("g", {0: 0})
    with pytest.raises(LookupError, match="unknown group 'h'; groups: g"):
        user.cluster.group("h")


def test_group_is_in_the_status_of_its_new_coordinator_only(user):
    user.commit("g", {0: 0})
    old = user.leader("g")
    user.cluster.pause(old)
    user.cluster.run_until(lambda: user.leader("g") != old)
    user.cluster.run_until(user.cluster.groups)
    assert [group.coordinator for group in user.cluster.groups()] == [user.leader("g")]


@pytest.mark.parametrize("kind", ["consumer", "share"])
def test_status_has_a_group_that_is_not_committed_yet(make_user, kind):
    user = make_user(replica_lag_time_max_ms=60_000)
    leader = user.leader("g")
    request = messages.ShareGroupHeartbeatRequest("g", "m", 0, subscribed_topic_names=["t"])
    if kind == "consumer":
        request = messages.ConsumerGroupHeartbeatRequest(
            "g", "m", 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
        )
    for follower in {1, 2, 3} - {leader}:
        user.cluster.pause(follower)
    pending = user.client.send(leader, request, 1)
    user.cluster.advance(100)
    assert not pending.done
    assert [(group.id, group.type) for group in user.cluster.groups()] == [("g", kind)]


def share_heartbeat(user, **fields):
    request = messages.ShareGroupHeartbeatRequest(
        **{"group_id": "s", "member_id": "m", "subscribed_topic_names": ["t"], **fields}
    )
    answer = user.ask(request, 1, user.leader("s"))
    assert not answer.error_code
    return answer


def test_member_that_is_removed_from_a_share_group_joins_again(user):
    share_heartbeat(user)
    user.cluster.advance(1_000)
    user.cluster.nodes.brokers[user.leader("s")].remove_member("s", "m")
    assert user.cluster.group("s").members == ()
    share_heartbeat(user)
    assert [member.id for member in user.cluster.group("s").members] == ["m"]


@pytest.mark.parametrize(("configs", "epoch"), [({"group_share_persister_class_name": ""}, 3), ({}, 4)])
def test_share_group_without_a_persister_has_its_state_before_the_next_assignment(make_user, configs, epoch):
    user = make_user(**configs)
    answer = share_heartbeat(user, subscribed_topic_names=["u"])
    assert (answer.member_epoch, answer.assignment.topic_partitions) == (2, [])
    user.cluster.create_topic("u", partitions=2)
    while not (answer.assignment and answer.assignment.topic_partitions):
        user.cluster.advance(100)
        answer = share_heartbeat(user, member_epoch=answer.member_epoch, subscribed_topic_names=None)
    assert [topic.partitions for topic in answer.assignment.topic_partitions] == [[0, 1]]
    assert answer.member_epoch == epoch
    has_state_topic = "__share_group_state" in [topic.name for topic in user.cluster.status().topics]
    assert has_state_topic is not bool(configs)
