"""What a cluster is made with is checked at once; each refusal is one line."""

import pytest

from broker_sim import AsyncCluster, Cluster, Fault, UnknownBrokerError, VirtualCluster
from broker_sim.cluster.arguments import broker_configs_by_id
from broker_sim.log import DiskOptions

CASES = [
    (
        {"topcis": []},
        TypeError,
        r"unknown argument 'topcis' \(did you mean topics\?\); allowed: brokers, first_broker_id, topics",
    ),
    ({"brokers": "3"}, ValueError, "brokers must be a number"),
    ({"brokers": 0}, ValueError, "at least one broker"),
    ({"topics": "orders"}, TypeError, "must be a list"),
    ({"topics": ["orders:x"]}, ValueError, "NAME:PARTITIONS:RF"),
    ({"topics": [7]}, ValueError, "NAME:PARTITIONS:RF"),
    ({"topics": [":1"]}, ValueError, "NAME:PARTITIONS:RF"),
    ({"configs": ["x"]}, ValueError, "configs must be a mapping"),
    ({"configs": {"num.partitions": None}}, ValueError, "num.partitions"),
    ({"broker_configs": {4: {}}}, UnknownBrokerError, "unknown broker 4; brokers: 1, 2, 3"),
    ({"broker_configs": {"1": {}}}, UnknownBrokerError, "unknown broker '1'"),
    ({"broker_configs": {1: "x"}}, ValueError, r"broker_configs\[1\] must be a mapping"),
    ({"first_broker_id": -1}, ValueError, "first_broker_id must be a number from 0 on, not -1"),
    ({"first_broker_id": True}, ValueError, "not True"),
    ({"first_broker_id": 2**31 - 2}, ValueError, "broker ids end at 2147483647"),
    ({"first_broker_id": 0, "broker_configs": {3: {}}}, UnknownBrokerError, "unknown broker 3; brokers: 0, 1, 2"),
    ({"trace": 3}, ValueError, "trace must be the path"),
]
REAL_CASES = [
    ({"ports": [99999, 0, 0]}, ValueError, "from 0 .* to 65535, not 99999"),
    ({"ports": [True, 0, 0]}, ValueError, "not True"),
    ({"ports": [9092, 9092, 0]}, ValueError, "9092 is used twice"),
    ({"ports": [1]}, ValueError, "3 brokers need 3 ports"),
    ({"ports": "123"}, ValueError, "ports must be a list"),
    ({"host": 5}, ValueError, "host must be"),
    ({"host": "0.0.0.0"}, ValueError, "set the advertised host"),
    ({"host": "[::]"}, ValueError, "set the advertised host"),
    ({"control": "8080"}, ValueError, "control must be"),
    ({"control": 65536}, ValueError, "control must be"),
    ({"control_token": "secret"}, ValueError, "pass control=True or a port"),
    ({"control": True, "control_token": " "}, ValueError, "must be a text that is not empty"),
    ({"control": True, "control_token": 7}, ValueError, "must be a text that is not empty, not 7"),
]


@pytest.mark.parametrize("face", [Cluster, AsyncCluster, VirtualCluster])
@pytest.mark.parametrize(("arguments", "error", "reason"), CASES)
def test_wrong_argument_is_refused_when_the_cluster_is_made(face, arguments, error, reason):
    with pytest.raises(error, match=reason) as refusal:
        face(**arguments)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("face", [Cluster, AsyncCluster])
@pytest.mark.parametrize(("arguments", "error", "reason"), REAL_CASES)
def test_wrong_address_is_refused_when_the_cluster_is_made(face, arguments, error, reason):
    with pytest.raises(error, match=reason) as refusal:
        face(**arguments)
    assert "\n" not in str(refusal.value)


def test_ids_begin_at_the_first_broker_and_ports_follow_each_other():
    configs = {"listeners": "PLAINTEXT://127.0.0.1:9092"}
    cluster = VirtualCluster(2, first_broker_id=0, configs=configs, broker_configs={0: {"broker.rack": "a"}})
    assert [node.config.node_id for node in cluster.nodes.nodes.values()] == [0, 1]
    assert cluster.nodes.node(0).config.broker_rack == "a"
    assert [broker.address for broker in cluster.status().brokers] == ["127.0.0.1:9092", "127.0.0.1:9093"]


def test_broker_0_leads_follows_coordinates_dies_and_returns():
    with VirtualCluster(3, first_broker_id=0, topics=["orders:1:3"], disk=DiskOptions()) as cluster:
        cluster.transfer_leadership("orders", 0, 0)
        assert cluster.produce("orders", "a").offset == 0
        cluster.kill(0)
        cluster.wait_until(lambda: cluster.leader("orders") != 0)
        cluster.start(0)
        cluster.wait_until_in_sync()
        cluster.roll()
        cluster.reset()
        assert [broker.id for broker in cluster.status().brokers] == [0, 1, 2]


def test_values_may_be_numbers_and_booleans():
    configs = {"num.partitions": 2, "auto.create.topics.enable": False, "log.cleaner.min.cleanable.ratio": 0.7}
    with VirtualCluster(1, configs=configs, broker_configs={1: {"broker.rack": "a"}}) as cluster:
        config = cluster.nodes.node(1).config
        assert (config.num_partitions, config.auto_create_topics_enable) == (2, False)
        assert config.broker_rack == "a"


def test_error_of_an_unknown_field_of_a_fault_lists_the_fields():
    with pytest.raises(
        TypeError, match=r"unknown argument 'eror' \(did you mean error\?\); allowed: api, broker, topic"
    ) as refusal:
        Fault(api="Produce", eror="X")
    assert "\n" not in str(refusal.value)


def test_names_of_errors_are_taken_in_any_case():
    assert Fault(api="produce", error="not_leader_Or_follower").error.name == "NOT_LEADER_OR_FOLLOWER"
    with pytest.raises(ValueError, match="unknown error 'none'"):
        Fault(api="Produce", error="none")


@pytest.mark.parametrize(("brokers", "replicas", "min_isr"), [(1, 1, 1), (2, 2, 2), (3, 3, 2), (5, 3, 2)])
def test_coordinators_topics_need_no_more_replicas_than_there_are_brokers(brokers, replicas, min_isr):
    config = broker_configs_by_id(brokers, None, None)[1]
    assert config.offsets_topic_replication_factor == replicas
    assert config.transaction_state_log_replication_factor == replicas
    assert config.transaction_state_log_min_isr == min_isr


def test_replicas_that_are_given_stay():
    given = {"transaction.state.log.replication.factor": 3, "transaction.state.log.min.isr": 2}
    config = broker_configs_by_id(1, given, None)[1]
    assert config.transaction_state_log_replication_factor == 3
    assert config.transaction_state_log_min_isr == 2
