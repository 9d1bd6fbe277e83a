"""The Dockerfile's image runs as a service of docker-compose.yml, for clients in its network."""

import json
import re
import urllib.request
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest
from broker_sim_integration.reference.clusters.ports import free_ports
from broker_sim_integration.reference.clusters.waiting import wait_until
from broker_sim_integration.reference.docker_daemon import connect_docker
from broker_sim_integration.reference.errors import ReferenceUnavailableError

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
TOKEN = "open-sesame"
CLIENT = """
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

brokers = "simulator:19092"
with KafkaProducer(bootstrap_servers=brokers, acks="all") as producer:
    sent = producer.send("orders", b"from a container").get(30)
with KafkaConsumer(bootstrap_servers=brokers, consumer_timeout_ms=30_000) as consumer:
    consumer.assign([TopicPartition("orders", sent.partition)])
    consumer.seek_to_beginning()
    print(next(consumer).value.decode())
"""


@pytest.fixture(scope="module")
def docker(require_or_skip):
    try:
        client = connect_docker()
    except ReferenceUnavailableError as unavailable:
        require_or_skip(str(unavailable), needs_containers=True)
    with closing(client):
        yield client


@pytest.fixture(scope="module")
def base_image(docker, require_or_skip):
    """Find or make the image that the Dockerfile is built from."""
    from broker_sim_integration.reference.python_image import find_or_make_python_image

    try:
        return find_or_make_python_image()
    except ReferenceUnavailableError as unavailable:
        return require_or_skip(str(unavailable), needs_containers=True)


@pytest.fixture(scope="module")
def simulator(docker, base_image, compose_project):
    """Run the service for clients in its network; returns its container and control address."""
    environment = {
        "PYTHON_IMAGE": base_image,
        "SIMULATOR_PORTS": "",
        "SIMULATOR_CONTROL_PORT": "",
        "BROKER_SIM_CONTROL_TOKEN": TOKEN,
    }
    with compose_project(environment, "simulator") as compose:
        container = docker.containers.get(compose("ps", "-q", "simulator").strip())
        yield container, compose("port", "simulator", "8090").strip()


def test_the_simulator_understands_the_command_of_its_image():
    from broker_sim.cli.run import command

    (entrypoint,) = re.findall(r"^ENTRYPOINT (\[.*\])$", DOCKERFILE, re.MULTILINE)
    (words,) = re.findall(r"^CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    verb, *options = json.loads(words)
    assert (json.loads(entrypoint), verb) == (["broker-sim"], "run")
    parsed = command.make_context(verb, options).params
    assert parsed["host"] == "0.0.0.0"
    assert (parsed["brokers"], parsed["port"], parsed["control_port"]) == (3, 9092, 8090)


def test_the_service_of_the_compose_file_has_a_listener_inside_and_one_outside():
    from broker_sim.cli.run import command
    from broker_sim.cluster.async_cluster import AsyncCluster

    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    (words,) = re.findall(r"\n    command:\n((?:      - .+\n)+)", text)
    verb, *options = re.findall(r"- (.+)", words)
    parsed = command.make_context(verb, options).params
    cluster = AsyncCluster(
        parsed["brokers"], listeners=parsed["listeners"], advertised_listeners=parsed["advertised_listeners"]
    )
    assert cluster.listeners.advertised(3) == (
        ("INSIDE", "simulator", 19094, "PLAINTEXT"),
        ("OUTSIDE", "127.0.0.1", 9094, "PLAINTEXT"),
    )


@pytest.mark.soak(part="scenarios")
@pytest.mark.real_kafka
def test_a_client_in_the_network_of_the_service_produces_and_consumes(docker, simulator):
    container, control = simulator

    def is_healthy():
        container.reload()
        return container.attrs["State"]["Health"]["Status"] == "healthy"

    wait_until(is_healthy, "the simulator's container is healthy", timeout_ms=60_000)
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    request = urllib.request.Request(f"http://{control}/metrics", headers=bearer)
    with urllib.request.urlopen(request) as answer:
        assert b"kafka_server_delayedoperationpurgatory" in answer.read()
    code, output = container.exec_run(["broker-sim", "ctl", "create-topic", "orders", "--replication-factor", "3"])
    assert code == 0, output
    # kafka-python needs no compiled modules, so this machine's serves in the container too.
    package = Path(find_spec("kafka").origin).parent
    printed = docker.containers.run(
        container.image.id,
        ["-c", CLIENT],
        entrypoint="python3",
        environment={"PYTHONPATH": "/client"},
        volumes={str(package): {"bind": "/client/kafka", "mode": "ro"}},
        network=next(iter(container.attrs["NetworkSettings"]["Networks"])),
        remove=True,
    )
    assert printed.decode().splitlines()[-1] == "from a container"
    container.kill("SIGTERM")
    assert container.wait(timeout=30)["StatusCode"] == 0


@pytest.mark.soak(part="scenarios")
@pytest.mark.real_kafka
def test_image_is_under_120_mb_unpacked_and_has_no_root(docker, simulator):
    image = simulator[0].image
    whoami = ["-c", "import os; print(os.getuid())"]
    assert docker.containers.run(image.id, whoami, entrypoint="python3", remove=True) != b"0\n"
    assert image.attrs["Size"] < 120_000_000


@pytest.mark.soak(part="scenarios")
@pytest.mark.real_kafka
def test_a_client_of_the_machine_reaches_a_published_port(docker, simulator):
    from confluent_kafka import Consumer, Producer

    (port,) = free_ports(1)
    container = docker.containers.run(
        simulator[0].image.id,
        ["run", "--brokers", "1", "--host", "0.0.0.0", "--port", str(port), "--topic", "orders"],
        ports={f"{port}/tcp": ("127.0.0.1", port)},
        detach=True,
        read_only=True,
        remove=True,
    )
    settings = {"bootstrap.servers": f"127.0.0.1:{port}"}
    try:
        producer = Producer(settings)
        producer.produce("orders", b"from outside")
        assert producer.flush(60) == 0
        consumer = Consumer(settings | {"group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(60)
        consumer.close()
    finally:
        container.kill("SIGTERM")
    assert message.error() is None
    assert message.value() == b"from outside"
