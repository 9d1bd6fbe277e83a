"""`KafkaContainer` is used as that of testcontainers is."""

import inspect

import pytest

from broker_sim import ConfigError, KafkaContainer, WrongStateError


def test_only_a_started_container_returns_its_address():
    container = KafkaContainer("confluentinc/cp-kafka:7.6.0", 9093, security_protocol="PLAINTEXT")
    assert container.with_kraft().with_name("kafka").with_exposed_ports(9093) is container
    with container as kafka:
        assert kafka is container
        host, port = kafka.get_container_host_ip(), kafka.get_exposed_port(9093)
        assert kafka.get_bootstrap_server() == f"{host}:{port}"
        assert kafka.cluster.create_topic("orders").partitions[0].leader == 1
        with pytest.raises(WrongStateError, match="is running already"):
            kafka.start()
    with pytest.raises(WrongStateError, match="is not running"):
        container.get_bootstrap_server()
    container.stop()


def test_each_start_has_a_cluster_without_data():
    container = KafkaContainer()
    for _ in range(2):
        container.start(timeout=10)
        container.cluster.create_topic("orders")
        assert container.cluster.produce("orders", "x").offset == 0
        container.stop(force=True, delete_volume=True)


def test_variables_set_configurations_as_in_the_images():
    container = KafkaContainer().with_env("KAFKA_NUM_PARTITIONS", "4")
    container.with_envs(
        KAFKA_LISTENERS="PLAINTEXT://0.0.0.0:9093",
        KAFKA_HEAP_OPTS="-Xmx256M",
        KAFKA_CONTROLLER_LISTENER_NAMES="CONTROLLER",
        CLUSTER_ID="MkU3OEVBNTcwNTJENDM2Qk",
    )
    with container:
        assert len(container.cluster.create_topic("orders").partitions) == 4


def test_unknown_configuration_fails_the_start_of_a_container():
    container = KafkaContainer().with_env("KAFKA_NO_SUCH", "1")
    with pytest.raises(ConfigError, match=r"no\.such"):
        container.start()
    container.stop()


def test_bound_port_is_the_brokers():
    with KafkaContainer() as first:
        port = first.get_exposed_port(9093)
    with KafkaContainer().with_bind_ports(9093, str(port)) as second:
        assert second.get_exposed_port(9093) == port


def test_method_that_needs_a_container_raises_one_line():
    with pytest.raises(AttributeError, match="no 'exec': there is no container"):
        KafkaContainer().exec("kafka-topics.sh")


def test_methods_have_the_parameters_of_testcontainers():
    theirs = pytest.importorskip("testcontainers.community.kafka").KafkaContainer
    ours = {name for name, value in vars(KafkaContainer).items() if inspect.isfunction(value)}
    for name in sorted(name for name in ours if not name.startswith("_")):
        expected = list(inspect.signature(getattr(theirs, name)).parameters)
        assert list(inspect.signature(getattr(KafkaContainer, name)).parameters) == expected, name
