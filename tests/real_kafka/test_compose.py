"""docker-compose.yml gives three real brokers on 127.0.0.1."""

import re
from contextlib import closing, suppress
from pathlib import Path

import pytest
from broker_sim_integration.reference.clusters.bootstrap import BootstrapCluster
from broker_sim_integration.reference.clusters.node_config import NODE_IDS, Node, node_environment, node_properties
from broker_sim_integration.reference.clusters.ports import free_ports
from broker_sim_integration.reference.clusters.waiting import wait_until
from broker_sim_integration.reference.docker_daemon import connect_docker
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.reference.image import find_image

ROOT = Path(__file__).parents[2]
BROKERS = set(NODE_IDS)


@pytest.fixture
def kafka_image(require_or_skip):
    try:
        with closing(connect_docker()) as client:
            image = find_image(client)
    except ReferenceUnavailableError as unavailable:
        require_or_skip(str(unavailable), needs_containers=True)
    return image or require_or_skip(
        "Docker has no image of Kafka: python -m broker_sim_integration.reference.image", needs_containers=True
    )


@pytest.fixture
def compose_kafka(compose_project, kafka_image):
    ports = free_ports(len(BROKERS))
    environment = {f"KAFKA_{n}_PORT": str(port) for n, port in enumerate(ports, start=1)}
    environment["KAFKA_IMAGE"] = kafka_image
    with compose_project(environment, *(f"kafka-{broker}" for broker in sorted(BROKERS))):
        yield BootstrapCluster(",".join(f"127.0.0.1:{port}" for port in ports))


def test_the_compose_file_configures_the_nodes_as_the_comparison_does():
    text = (ROOT / "docker-compose.yml").read_text()
    text = re.sub(r"\$\{KAFKA_\d_PORT:-(\d+)\}", r"\1", text)
    nodes = [
        Node(
            node_id=number,
            host=f"kafka-{number}",
            bind_host="0.0.0.0",
            internal_port=19092,
            controller_port=19093,
            external_port=9092,
            client_port=19091 + number,
        )
        for number in NODE_IDS
    ]
    for node in nodes:
        properties = node_properties(node, nodes, "/tmp/kafka-data", {})
        for key, value in node_environment(properties).items():
            assert f"{key}: {value}\n" in text


@pytest.mark.soak(part="scenarios")
@pytest.mark.real_kafka
def test_three_brokers_of_the_compose_file_find_each_other(compose_kafka):
    def is_up():
        with suppress(ReferenceUnavailableError):
            compose_kafka.open()
        return set(compose_kafka.broker_ids) == BROKERS

    wait_until(is_up, "the compose file's Kafka has three brokers", timeout_ms=120_000)
    compose_kafka.wait_for_brokers(BROKERS)
    assert ",".join(map(compose_kafka.address, BROKERS)) == compose_kafka.bootstrap_servers
