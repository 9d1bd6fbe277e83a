"""A reset leaves the coordinators' topics, without groups and transactional ids."""

import sys

import pytest

from broker_sim import VirtualCluster
from broker_sim.controller.requests import AlterOp, ConfigAlteration, ConfigResource, ConfigResourceType
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from broker_sim.protocol import messages

TRANSACTION = 1
"""FindCoordinator's type of key."""


def topics(user):
    return user.cluster.nodes.controller.image.topics


def init_producer(user, transactional_id):
    user.until(lambda: not user.find(transactional_id, key_type=TRANSACTION).error_code)
    broker = user.find(transactional_id, key_type=TRANSACTION).node_id
    request = messages.InitProducerIdRequest(transactional_id, 60_000)
    user.until(lambda: not user.ask(request, 4, broker).error_code)


def test_coordinator_is_found_at_once_and_knows_no_group(user):
    user.stable_member()
    user.commit("other", {0: 5})
    user.cluster.reset()
    assert user.cluster.groups() == ()
    assert user.find("g").error_code == ErrorCode.NONE
    assert user.fetch("other", {0}) == {("t", 0): -1}
    assert user.joined().generation_id == 1


def test_transactional_ids_are_gone_and_their_coordinator_is_found_at_once(make_user):
    user = make_user(transaction_state_log_num_partitions=2)
    init_producer(user, "billing")
    assert [each.transactional_id for each in user.cluster.status().transactions] == ["billing"]
    user.cluster.reset()
    assert user.cluster.status().transactions == ()
    assert user.find("billing", key_type=TRANSACTION).error_code == ErrorCode.NONE
    assert len(topics(user)[TRANSACTION_STATE_TOPIC].partitions) == 2


def test_unused_topic_is_not_created_again(user):
    before = user.topic_id(GROUP_METADATA_TOPIC)
    user.cluster.reset()
    assert user.topic_id(GROUP_METADATA_TOPIC) == before


def test_group_that_is_not_written_yet_is_gone(user):
    user.joined()  # it is written when its leader has assigned partitions
    assert len(user.cluster.groups()) == 1
    user.cluster.reset()
    assert user.cluster.groups() == ()


def test_configurations_of_the_topic_are_as_they_were(user):
    opened = topics(user)[GROUP_METADATA_TOPIC].configs
    resource = ConfigResource(ConfigResourceType.TOPIC, GROUP_METADATA_TOPIC)
    change = ConfigAlteration("segment.bytes", AlterOp.SET, "2000000")
    user.cluster.nodes.controller.incremental_alter_configs([(resource, [change])])
    assert topics(user)[GROUP_METADATA_TOPIC].configs != opened
    user.cluster.reset()
    assert topics(user)[GROUP_METADATA_TOPIC].configs == opened


def test_topic_that_a_client_made_keeps_its_size():
    with VirtualCluster(3) as cluster:
        cluster.create_topic(GROUP_METADATA_TOPIC, 4, 2)
        cluster.reset()
        made = cluster.nodes.controller.image.topics[GROUP_METADATA_TOPIC]
        assert [len(each.replicas) for each in made.partitions] == [2] * 4


def test_cluster_that_was_opened_with_the_topic_has_it_as_it_was_opened():
    with VirtualCluster(3, topics=[f"{GROUP_METADATA_TOPIC}:2:3"]) as cluster:
        cluster.delete_topic(GROUP_METADATA_TOPIC)
        cluster.create_topic(GROUP_METADATA_TOPIC, 4, 2)
        cluster.reset()
        assert len(cluster.nodes.controller.image.topics[GROUP_METADATA_TOPIC].partitions) == 2


def calls_of(function):
    """Return how many Python functions it calls: its work, on a machine of whatever speed."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(("used", "most_calls"), [(False, 4_000), (True, 10_000)])
def test_reset_takes_no_time_and_its_work_does_not_grow(make_user, used, most_calls):
    """Of one that shall take less than 5 ms: 3 000 calls are about 1 ms. Native modules have fewer that count."""
    user = make_user()
    cluster = user.cluster
    calls = []
    for _ in range(20):
        cluster.create_topic("orders", 3, 3)
        if used:
            assert user.commit("g", {0: 1}) == {("t", 0): 0}
        began_ms = cluster.now_ms
        calls.append(calls_of(cluster.reset))
        assert cluster.now_ms - began_ms <= 1
    assert max(calls) <= most_calls
