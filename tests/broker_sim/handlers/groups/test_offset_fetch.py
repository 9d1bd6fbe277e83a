"""Claims about OffsetFetch."""

import pytest

from broker_sim.coordinator.result import Result
from broker_sim.errors import ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.records import GroupRecord
from broker_sim.handlers.api_table import ApiTable
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey

SPEC = ApiTable().get(ApiKey.OFFSET_FETCH)
VERSIONS = range(SPEC.min_version, SPEC.max_version + 1)
FETCH = messages.OffsetFetchRequest


@pytest.mark.parametrize("version", VERSIONS)
def test_partition_without_an_offset_has_minus_1_and_no_error(user, version):
    user.commit("g", {1: 7})
    name = user.topic_id() if version >= 10 else "t"
    assert user.fetch("g", [0, 1, 9], version) == {(name, 0): -1, (name, 1): 7, (name, 9): -1}
    assert user.fetch("none", [0], version) == {(name, 0): -1}


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_null_asks_for_all_offsets(user, version):
    user.commit("g", {0: 5, 1: 7})
    name = user.topic_id() if version >= 10 else "t"
    assert user.fetch("g", None, version) == {(name, 0): 5, (name, 1): 7}
    assert user.fetch("none", None, version) == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_other_broker_is_not_the_coordinator(user, version):
    wrong = user.leader("g") % 3 + 1
    answer = user.ask(user.fetch_request("g", [0], version), version, wrong)
    if version == 1:
        (partition,) = answer.topics[0].partitions
        assert (partition.error_code, partition.committed_offset) == (16, -1)
    else:
        group = answer.groups[0] if version >= 8 else answer
        assert (group.error_code, group.topics) == (ErrorCode.NOT_COORDINATOR, [])


def test_groups_of_one_request_are_answered_in_their_order(user):
    same = [g for g in map(str, range(50)) if user.leader(g) == user.leader("0")][:3]
    for offset, group_id in enumerate(same):
        user.commit(group_id, {0: offset})
    groups = [FETCH.OffsetFetchRequestGroup(group_id, topics=None) for group_id in same[::-1]]
    answer = user.ask(FETCH(groups=groups), 9, user.leader("0"))
    found = [(g.group_id, g.topics[0].partitions[0].committed_offset) for g in answer.groups]
    assert found == [(same[2], 2), (same[1], 1), (same[0], 0)]


def test_unknown_topic_id_fails_by_itself_and_comes_last(user):
    user.commit("g", {0: 5})
    topics = [
        FETCH.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])
        for topic_id in (b"x" * 16, user.topic_id())
    ]
    group = FETCH.OffsetFetchRequestGroup("g", topics=topics)
    (answer,) = user.ask(FETCH(groups=[group]), 10, user.leader("g")).groups
    assert [(t.topic_id, t.partitions[0].error_code) for t in answer.topics] == [
        (user.topic_id(), 0),
        (b"x" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_stable_fetch_waits_for_the_commit_before_it(user):
    leader = user.leader("g")
    (follower, _) = user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))
    user.cluster.pause(follower)
    user.cluster.advance(1)
    user.send(user.commit_request("g", {0: 5}), 9, leader)
    other = user.cluster.client()
    user.cluster.advance(10)
    stable = other.send(leader, user.fetch_request("g", [0], stable=True), 9)
    user.cluster.advance(200)
    assert not stable.done
    user.cluster.resume(follower)
    user.cluster.run_until(lambda: stable.done)
    (partition,) = stable.response.groups[0].topics[0].partitions
    assert partition.committed_offset == 5


def test_stable_fetch_times_out_as_not_coordinator(make_user):
    user = make_user(offsets_commit_timeout_ms=500)
    leader = user.leader("g")
    (follower, _) = user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))
    user.cluster.pause(follower)
    user.cluster.advance(1)
    user.send(user.commit_request("g", {0: 5}), 9, leader)
    user.cluster.advance(100)
    stable = user.cluster.client().send(leader, user.fetch_request("g", [0], stable=True), 9)
    user.cluster.run_until(lambda: stable.done)
    assert stable.response.groups[0].error_code == ErrorCode.NOT_COORDINATOR
    assert stable.elapsed_ms == 500


def test_stable_fetch_without_a_commit_in_flight_is_answered_at_once(user):
    user.commit("g", {0: 5})
    pending = user.send(user.fetch_request("g", [0], stable=True), 9, user.leader("g"))
    user.cluster.run_until(lambda: pending.done)
    assert pending.elapsed_ms == 0


def test_offset_of_a_deleted_topic_is_not_that_of_its_successor(make_user):
    user = make_user(brokers=1)
    user.commit("g", {0: 5})
    key = record_messages.OffsetCommitKey("g", "t", 0)
    of_predecessor = record_messages.OffsetCommitValue(7, topic_id=b"x" * 16)
    context = user.cluster.nodes.brokers[1].groups.runtime.find("g")
    context.perform(lambda: Result(records=[GroupRecord(key, of_predecessor)]))
    assert user.fetch("g", [0], 10) == {(user.topic_id(), 0): -1}
    assert user.fetch("g", [0], 9) == {("t", 0): 7}
