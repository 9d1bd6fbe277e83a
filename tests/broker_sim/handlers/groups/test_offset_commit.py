"""Claims about OffsetCommit, and about what the in-sync replicas have to do with it."""

import itertools

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers.api_table import ApiTable
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey

SPEC = ApiTable().get(ApiKey.OFFSET_COMMIT)
VERSIONS = range(SPEC.min_version, SPEC.max_version + 1)
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def followers(user, group_id):
    return user.cluster.followers(GROUP_METADATA_TOPIC, user.partition(group_id))


@pytest.mark.parametrize("version", VERSIONS)
def test_committed_offset_is_fetched_in_every_version(user, version):
    name = user.topic_id() if version >= 10 else "t"
    assert user.commit("g", {0: 5, 1: 7}, version) == {(name, 0): 0, (name, 1): 0}
    assert user.fetch("g", [0, 1]) == {("t", 0): 5, ("t", 1): 7}


def test_partitions_that_do_not_exist_fail_by_themselves_and_come_first(user):
    codes = user.commit("g", {0: 5, 9: 1, ("nope", 0): 2})
    assert list(codes.items()) == [(("t", 9), UNKNOWN), (("t", 0), 0), (("nope", 0), UNKNOWN)]
    assert user.fetch("g") == {("t", 0): 5}


def test_unknown_topic_id_is_told(user):
    request = user.commit_request("g", {0: 5}, 10)
    request.topics[0].topic_id = b"x" * 16
    answer = user.ask(request, 10, user.leader("g"))
    assert answer.topics[0].topic_id == b"x" * 16
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_request_without_a_valid_partition_does_not_ask_the_coordinator(user):
    wrong = user.leader("g") % 3 + 1
    assert user.commit("g", {9: 1}, broker=wrong) == {("t", 9): UNKNOWN}
    assert user.commit("g", {}, broker=wrong) == {}


def test_other_broker_is_not_the_coordinator(user):
    wrong = user.leader("g") % 3 + 1
    assert user.commit("g", {0: 1, 9: 1}, broker=wrong) == {("t", 9): UNKNOWN, ("t", 0): ErrorCode.NOT_COORDINATOR}


def test_coordinator_without_its_topic_is_none(make_user):
    user = make_user(offsets_topic=False)
    assert user.commit("g", {0: 1}, broker=1) == {("t", 0): ErrorCode.NOT_COORDINATOR}


@pytest.mark.parametrize(
    ("text", "error_code"),
    [("x" * 10, 0), ("x" * 11, 12), ("é" * 10, 0), ("\U0001f600" * 5, 0), ("\U0001f600" * 6, 12)],
)
def test_metadata_is_limited_in_java_characters(make_user, text, error_code):
    user = make_user(brokers=1, offset_metadata_max_bytes=10, offsets_topic_replication_factor=1)
    assert user.commit("g", {0: 5}, metadata=text) == {("t", 0): error_code}
    assert user.fetch("g", [0]) == {("t", 0): -1 if error_code else 5}


def test_group_without_any_valid_offset_is_shown_when_something_else_is_committed(user):
    # It has no record of its own, so nothing else tells Kafka that it is committed.
    user.commit("g", {0: 5}, metadata="x" * 5_000)
    user.cluster.advance(1_000)
    assert user.listed() == {}
    names = (f"other-{number}" for number in itertools.count())
    other = next(name for name in names if user.partition(name) == user.partition("g"))
    user.commit(other, {0: 5})
    assert set(user.listed()) == {"g", other}


def test_null_metadata_is_the_empty_text(user):
    user.commit("g", {0: 5}, metadata=None)
    answer = user.ask(user.fetch_request("g", [0]), 9, user.leader("g"))
    assert answer.groups[0].topics[0].partitions[0].metadata == ""


@pytest.mark.parametrize(("version", "error_code"), [(8, 22), (9, 69)])
def test_generation_without_a_group_is_refused(user, version, error_code):
    codes = user.commit("g", {0: 5}, version, member="m", generation=3)
    assert codes == {("t", 0): error_code}
    assert user.listed() == {}


def test_member_of_a_simple_group_is_unknown(user):
    user.commit("g", {0: 5})
    codes = user.commit("g", {0: 6}, member="m", generation=3)
    assert codes == {("t", 0): ErrorCode.UNKNOWN_MEMBER_ID}
    assert user.fetch("g", [0]) == {("t", 0): 5}


def test_empty_group_id_and_negative_offsets_are_taken(user):
    assert user.commit("", {0: -1}) == {("t", 0): 0}


def test_commit_waits_for_the_replicas_and_is_parked_as_a_produce(user):
    leader = user.leader("g")
    (follower, _) = followers(user, "g")
    user.cluster.pause(follower)
    pending = user.send(user.commit_request("g", {0: 5}), 9, leader)
    user.cluster.advance(1_000)
    assert not pending.done
    assert user.other().fetch("g", [0]) == {("t", 0): -1}
    (parked,) = user.cluster.purgatory().of(leader, "Produce").parked
    assert tuple(map(str, parked.keys)) == (f"{GROUP_METADATA_TOPIC}-{user.partition('g')}",)
    user.cluster.resume(follower)
    user.cluster.run_until(lambda: pending.done)
    assert pending.response.topics[0].partitions[0].error_code == 0
    assert user.fetch("g", [0]) == {("t", 0): 5}


@pytest.mark.parametrize("timeout_ms", [700, 2_000])
def test_commit_times_out_and_stays_written(make_user, timeout_ms):
    user = make_user(offsets_commit_timeout_ms=timeout_ms)
    leader = user.leader("g")
    (follower, _) = followers(user, "g")
    user.cluster.pause(follower)
    user.cluster.advance(1)
    pending = user.send(user.commit_request("g", {0: 5}), 9, leader)
    user.cluster.run_until(lambda: pending.done)
    error_code = pending.response.topics[0].partitions[0].error_code
    assert error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert pending.elapsed_ms == timeout_ms
    assert user.fetch("g", [0], broker=leader) == {("t", 0): -1}
    user.cluster.resume(follower)
    user.cluster.wait_until_in_sync()
    user.until(lambda: user.fetch("g", [0]) == {("t", 0): 5})


def test_commit_below_the_minimum_of_replicas_is_not_written(user):
    topic = user.cluster.nodes.controller
    assert user.commit("g", {0: 5}) == {("t", 0): 0}
    configs = messages.IncrementalAlterConfigsRequest
    change = configs.AlterableConfig("min.insync.replicas", 0, "3")
    resource = configs.AlterConfigsResource(2, GROUP_METADATA_TOPIC, [change])
    user.ask(configs([resource]), 1, 1)
    leader = user.leader("g")
    (follower, _) = followers(user, "g")
    user.cluster.kill(follower)
    user.cluster.run_until(lambda: len(user.cluster.isr(GROUP_METADATA_TOPIC, user.partition("g"))) == 2)
    user.cluster.advance(100)
    codes = user.commit("g", {0: 6}, broker=leader)
    assert codes == {("t", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}
    new = next(f"new-{n}" for n in range(50) if user.partition(f"new-{n}") == user.partition("g"))
    codes = user.commit(new, {0: 6}, broker=leader)
    assert codes == {("t", 0): ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert list(user.listed(broker=leader)) == ["g"]
    assert user.fetch("g", [0], broker=leader, stable=True) == {("t", 0): 5}
    assert topic.image.topics[GROUP_METADATA_TOPIC].configs["min.insync.replicas"] == "3"


def test_commit_parked_at_a_leader_that_moves_is_told(user):
    leader = user.leader("g")
    first, second = followers(user, "g")
    user.cluster.pause(first)
    user.cluster.advance(1)
    pending = user.send(user.commit_request("g", {0: 5}), 9, leader)
    user.cluster.advance(50)
    assert not pending.done
    user.cluster.transfer_leadership(GROUP_METADATA_TOPIC, user.partition("g"), second)
    user.cluster.run_until(lambda: pending.done)
    assert pending.response.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR


def test_commits_of_one_connection_are_answered_in_order(user):
    leader = user.leader("g")
    waiting = [user.send(user.commit_request("g", {0: n}), 9, leader) for n in range(20)]
    user.cluster.run_until(lambda: all(pending.done for pending in waiting))
    assert user.fetch("g", [0]) == {("t", 0): 19}
