"""Every configuration is set and described as by the recorded Kafka 4.3.1, see `kafka_configs`."""

import logging

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.config import every_broker_config
from tests.broker_sim.handlers.configs import kafka_configs
from tests.broker_sim.handlers.configs.kafka_configs import LISTENER, STATIC

STEPS_OF_A_DESCRIPTION = ("before", "after", "some", "deleted")
NOT_LOADED = "Class x could not be found."
TIERED = ("remote.", "local.retention.")


@pytest.fixture(scope="module")
def root_level():
    """Give the root logger its level back, which a configuration of the broker's loggers has set."""
    before = logging.root.level
    yield
    logging.root.setLevel(before)


@pytest.fixture(scope="module")
def played(root_level):
    configs = {**STATIC, "listener.security.protocol.map": "EXTERNAL:PLAINTEXT"}
    with VirtualCluster(3, configs=configs, listeners="EXTERNAL://:19092", as_version="4.3") as cluster:
        cluster.wait_until_in_sync()
        client = cluster.client()

        def ask(request, version):
            pending = client.send(1, request, version)
            cluster.run_until(lambda: pending.done)
            return pending.response

        return list(kafka_configs.play(ask, lambda: cluster.advance(3_000)))


@pytest.fixture(scope="module")
def classes():
    """The configurations that Kafka refuses as it cannot load a class."""
    return {line[2] for line in kafka_configs.recorded() if line[0] == "set" and NOT_LOADED in (line[5] or "")}


def subject(line):
    """Return what a line is about: its step, resource and name; all of a line of a list."""
    return str(line if line[1] == "resource" else line[:3])


def compared(lines, classes):
    """Return the lines that are compared, by subject: all but tiered storage and classes that are not loaded."""
    return {subject(line): line for line in lines if str(line[2]) not in classes and not is_tiered(line)}


def is_tiered(line):
    return line[1] == "topic" and str(line[2]).startswith(TIERED)


def test_each_change_and_each_entry_is_kafkas(played, classes):
    assert compared(played, classes) == compared(kafka_configs.recorded(), classes)


def test_public_entries_stand_in_kafkas_order(played):
    public = {name for name, definition in every_broker_config().items() if not definition.internal}

    def orders(lines):
        orders = {}
        for line in lines:
            described = line[0] in STEPS_OF_A_DESCRIPTION and line[1] in {"topic", "group", "client-metrics", "broker"}
            if described and (line[1] != "broker" or line[2] in public) and not is_tiered(line):
                orders.setdefault((line[0], line[1]), []).append(line[2])
        return orders

    assert orders(played) == orders(kafka_configs.recorded())


def test_a_class_is_described_as_it_was_set(played, classes):
    lines = {subject(line): line for line in played}
    assert len(classes) == 8
    for name in classes:
        assert lines[subject(["set", "broker", name])][4] == "NONE"
        assert lines[subject(["after", "broker", name])][4] == "x"


def test_configuration_of_a_running_listener_holds_up_changes_of_listeners(played):
    refused = {line[2] for line in played if line[0] == "delete"}
    assert "max.connections" in refused
    assert not any(name.startswith(LISTENER) for name in refused)
