"""Tests of the coordinator: location of groups, failover, loading and expiration."""

import logging

import pytest

from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, fetch_request
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC

RETENTION_MS = 60_000


def coordinator(user, broker):
    return user.cluster.nodes.brokers[broker].groups


def move(user, group_id, to):
    user.cluster.transfer_leadership(GROUP_METADATA_TOPIC, user.partition(group_id), to)
    user.cluster.advance(10)


def test_only_the_leader_has_the_shard(user):
    user.commit("g", {0: 5})
    leader = user.leader("g")
    for broker in (1, 2, 3):
        if broker == leader:
            assert list(coordinator(user, broker).shard("g").groups) == ["g"]
        else:
            with pytest.raises(ApiError) as refused:
                coordinator(user, broker).shard("g")
            assert refused.value.error_code is ErrorCode.NOT_COORDINATOR


def test_empty_group_id_has_a_shard_for_offsets_only(user):
    leader = coordinator(user, user.leader(""))
    with pytest.raises(ApiError) as refused:
        leader.shard("")
    assert refused.value.error_code is ErrorCode.INVALID_GROUP_ID
    assert leader.runtime.find("").partition == user.partition("")


def test_new_leader_loads_offsets_from_its_log(user):
    user.commit("g", {0: 5, 1: 7})
    user.commit("g", {0: 6})
    user.delete_offsets("g", [1])
    old = user.leader("g")
    new = user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))[0]
    move(user, "g", new)
    assert user.leader("g") == new
    assert user.fetch("g", stable=True) == {("t", 0): 6}
    assert user.commit("g", {0: 9}, broker=old) == {("t", 0): ErrorCode.NOT_COORDINATOR}
    assert list(user.listed()) == ["g"]


def test_new_leader_returns_committed_offsets_unless_stable_required(user):
    # As in Kafka, a new leader learns the newest high watermark from its followers' next fetches.
    user.commit("g", {0: 5})
    user.cluster.advance(1_000)
    user.commit("g", {0: 6})
    new = user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))[0]
    move(user, "g", new)
    assert user.fetch("g") == {("t", 0): 5}
    assert user.fetch("g", stable=True) == {("t", 0): 6}
    assert user.fetch("g") == {("t", 0): 6}


def test_returning_coordinator_has_commits_of_others(user):
    first = user.leader("g")
    second = user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))[0]
    user.commit("g", {0: 5})
    move(user, "g", second)
    user.commit("g", {0: 6})
    move(user, "g", first)
    assert user.fetch("g", stable=True) == {("t", 0): 6}


@pytest.mark.parametrize("seed_offset", [1, 2, 3])
def test_killed_coordinator_loses_no_committed_offset(user, seed_offset):
    for number in range(20):
        assert user.commit("g", {0: number * seed_offset}) == {("t", 0): 0}
    old = user.leader("g")
    user.cluster.kill(old)
    user.until(lambda: user.leader("g") != old)
    user.cluster.advance(100)
    assert user.fetch("g", stable=True) == {("t", 0): 19 * seed_offset}
    user.cluster.start(old)
    user.cluster.wait_until_in_sync()
    assert user.fetch("g", stable=True) == {("t", 0): 19 * seed_offset}


def test_restarted_only_broker_loads_its_groups(make_user):
    user = make_user(brokers=1)
    user.commit("g", {0: 5})
    user.cluster.kill(1)
    user.cluster.start(1, end_session=True)
    user.cluster.wait_until_in_sync()
    user.until(lambda: user.other().fetch("g", broker=1, stable=True) == {("t", 0): 5})


def test_loading_partition_returns_load_in_progress(user):
    user.commit("g", {0: 5})
    groups = coordinator(user, user.leader("g"))
    partition = user.partition("g")
    groups.runtime.resigned(partition)
    groups.runtime.elected(partition, 7)
    with pytest.raises(ApiError) as refused:
        groups.shard("g")
    assert refused.value.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert groups.runtime.is_loading
    user.cluster.advance(1)
    assert list(groups.shard("g").groups) == ["g"]
    assert groups.runtime.find("g").leader_epoch == 7


def test_partition_lost_during_loading_is_not_served(user):
    groups = coordinator(user, user.leader("g"))
    partition = user.partition("g")
    groups.runtime.resigned(partition)
    groups.runtime.elected(partition, 7)
    groups.runtime.resigned(partition)
    user.cluster.advance(1)
    with pytest.raises(ApiError) as refused:
        groups.shard("g")
    assert refused.value.error_code is ErrorCode.NOT_COORDINATOR


def test_reelected_leader_keeps_its_groups(user):
    user.commit("g", {0: 5})
    groups = coordinator(user, user.leader("g"))
    context = groups.runtime.find("g")
    epoch = context.leader_epoch
    groups.runtime.elected(user.partition("g"), epoch + 1)
    groups.runtime.elected(user.partition("g"), epoch)
    assert groups.runtime.find("g") is context
    assert context.leader_epoch == epoch + 1


def test_offsets_expire_after_their_retention_and_the_group_with_them(make_user):
    user = make_user(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000)
    user.commit("g", {0: 5})
    user.cluster.advance(RETENTION_MS // 2)
    user.commit("g", {1: 7})
    user.cluster.advance(RETENTION_MS // 2 - 2_000)
    assert user.fetch("g") == {("t", 0): 5, ("t", 1): 7}
    user.cluster.advance(4_000)
    assert user.fetch("g") == {("t", 1): 7}
    user.cluster.advance(RETENTION_MS // 2)
    assert user.fetch("g") == {}
    assert user.listed() == {}
    counters = coordinator(user, user.leader("g")).counters
    assert (counters.offset_commits, counters.offset_expirations) == (2, 2)


def test_expiration_is_checked_at_its_interval(make_user):
    user = make_user(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000)
    expired_ms = []
    for count in (1, 2):
        user.commit("g", {0: 5})
        user.cluster.advance(RETENTION_MS - 500)
        counters = coordinator(user, user.leader("g")).counters
        while counters.offset_expirations < count:
            user.cluster.advance(1)
        expired_ms.append(user.cluster.now_ms)
    first_ms, second_ms = expired_ms
    assert (second_ms - first_ms) % 1_000 == 0


def test_retention_of_the_request_overrides_the_brokers(make_user):
    user = make_user(offsets_retention_check_interval_ms=1_000)
    request = user.commit_request("g", {0: 5}, 2)
    request.retention_time_ms = 5_000
    user.ask(request, 2, user.leader("g"))
    user.cluster.advance(4_000)
    assert user.fetch("g") == {("t", 0): 5}
    user.cluster.advance(3_000)
    assert user.fetch("g") == {}


def test_background_write_completes_fetch_of_offsets_topic(make_user):
    user = make_user(brokers=1, offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000)
    user.commit("g", {0: 5})
    partition = user.partition("g")
    end_offset = user.cluster.high_watermark(GROUP_METADATA_TOPIC, partition)
    request = fetch_request((GROUP_METADATA_TOPIC, partition), offset=end_offset, max_wait_ms=10 * RETENTION_MS)
    pending = user.client.send(1, request, FETCH_VERSION)
    user.cluster.advance(RETENTION_MS - 1_000)
    assert not pending.done
    user.cluster.advance(3_000)
    assert pending.done
    assert pending.response.responses[0].partitions[0].records


def test_expired_offsets_stay_expired_with_the_next_leader(make_user):
    user = make_user(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1_000)
    user.commit("g", {0: 5})
    user.cluster.advance(RETENTION_MS + 2_000)
    move(user, "g", user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))[0])
    assert user.fetch("g", stable=True) == {}
    assert user.listed() == {}


def test_only_offsets_of_the_deleted_topic_are_deleted(user):
    user.cluster.create_topic("other")
    user.cluster.wait_until_in_sync()
    user.commit("g", {0: 5, ("other", 0): 7})
    user.cluster.delete_topic("other")
    user.until(lambda: user.fetch("g", stable=True) == {("t", 0): 5})
    new = user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))[0]
    move(user, "g", new)
    assert user.fetch("g", stable=True) == {("t", 0): 5}


def test_deleted_offsets_topic_removes_all_groups(user):
    user.commit("g", {0: 5})
    user.cluster.delete_topic(GROUP_METADATA_TOPIC)
    user.cluster.advance(100)
    assert [coordinator(user, broker).shards() for broker in (1, 2, 3)] == [[], [], []]
    user.create_offsets_topic()
    assert user.fetch("g") == {}


def test_purgatories_of_groups_are_among_the_brokers(user):
    for broker in (1, 2, 3):
        for name in ("Rebalance", "Heartbeat"):
            assert user.cluster.purgatory().of(broker, name).watched == 0


def test_loading_and_unloading_are_logged(user, caplog):
    user.commit("g", {0: 5})
    with caplog.at_level(logging.INFO, "broker_sim.group"):
        move(user, "g", user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))[0])
    log_messages = [record.getMessage() for record in caplog.records]
    assert any("groups_unloaded" in text and "groups=1" in text for text in log_messages)
    assert any("groups_loaded" in text and "offsets=1" in text for text in log_messages)


def test_compressed_offsets_topic_is_loaded(make_user):
    user = make_user(offsets_topic_compression_codec=1)
    user.commit("g", {0: 5})
    move(user, "g", user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))[0])
    assert user.fetch("g", stable=True) == {("t", 0): 5}


def test_small_load_buffer_reads_everything(make_user):
    user = make_user(offsets_load_buffer_size=1)
    for number in range(5):
        user.commit("g", {0: number, 1: number + 1})
    move(user, "g", user.cluster.followers(GROUP_METADATA_TOPIC, user.partition("g"))[0])
    assert user.fetch("g", stable=True) == {("t", 0): 4, ("t", 1): 5}
