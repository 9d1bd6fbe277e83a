"""Claims about FindCoordinator."""

import pytest

from broker_sim.coordinator.runtime import partition_of_hash
from broker_sim.errors import ErrorCode
from broker_sim.handlers.api_table import ApiTable
from broker_sim.hash_order.hash_codes import java_hash_code
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from broker_sim.protocol.api_keys import ApiKey

SPEC = ApiTable().get(ApiKey.FIND_COORDINATOR)
VERSIONS = range(SPEC.min_version, SPEC.max_version + 1)
NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("version", VERSIONS)
def test_every_broker_names_the_leader_of_the_groups_partition(user, version):
    for group_id in ("a", "b", "c"):
        leader = user.leader(group_id)
        for broker in (1, 2, 3):
            found = user.find(group_id, version=version, broker=broker)
            assert (found.error_code, found.node_id) == (0, leader)
            address = user.cluster.nodes.node(leader).address
            assert (found.host, found.port) == address


def test_success_has_the_message_none_from_version_1_to_3(user):
    assert [user.find("g", version=version).error_message for version in (1, 3, 4)] == ["NONE", "NONE", ""]


def test_several_keys_are_answered_in_their_order(user):
    found = user.find("b", "a", "b")
    assert [coordinator.key for coordinator in found] == ["b", "a", "b"]


def test_first_question_creates_the_topic_with_its_configuration(make_user):
    user = make_user(offsets_topic=False, offsets_topic_segment_bytes=2_000_000)
    found = user.find("g")
    assert (found.error_code, found.node_id, found.port) == (NOT_AVAILABLE, -1, -1)
    user.create_offsets_topic()
    topic = user.cluster.nodes.controller.image.topics[GROUP_METADATA_TOPIC]
    assert [len(state.replicas) for state in topic.partitions] == [3] * 5
    assert dict(topic.configs) == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "2000000",
    }


def test_topic_that_lacks_brokers_is_not_created(make_user, caplog):
    user = make_user(brokers=2, offsets_topic=False, offsets_topic_replication_factor=3)
    for _ in range(3):
        assert user.find("g", version=3).error_message == "The coordinator is not available."
        user.cluster.advance(1_000)
    assert GROUP_METADATA_TOPIC not in user.cluster.nodes.controller.image.topics
    assert "topic_not_created" in caplog.text
    assert "INVALID_REPLICATION_FACTOR" in caplog.text


def test_coordinator_that_died_is_not_named(user):
    leader = user.leader("g")
    user.cluster.kill(leader)
    other = leader % 3 + 1
    user.cluster.run_until(lambda: user.leader("g") != leader)
    user.cluster.advance(100)
    assert user.find("g", broker=other).node_id == user.leader("g")


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("key_type", [2, 9])
def test_unknown_kinds_of_coordinators_are_refused(user, version, key_type):
    found = user.find("g", version=version, key_type=key_type)
    assert (found.error_code, found.node_id) == (ErrorCode.INVALID_REQUEST, -1)
    assert user.find("g", version=3, key_type=key_type).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_coordinator_of_a_transactional_id_leads_its_partition(user, version):
    assert user.find("tx", version=version, key_type=1).error_code in {
        ErrorCode.NONE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
    }
    user.until(lambda: not user.find("tx", version=version, key_type=1).error_code)
    topic = user.cluster.nodes.controller.image.topics[TRANSACTION_STATE_TOPIC]
    assert len(topic.partitions) == 50
    assert topic.configs["min.insync.replicas"] == "2"
    partition = partition_of_hash(java_hash_code("tx"), 50)
    for broker in (1, 2, 3):
        found = user.find("tx", version=version, key_type=1, broker=broker)
        assert found.node_id == topic.partitions[partition].leader
