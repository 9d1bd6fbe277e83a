"""Every configuration is set and described as by the recorded Kafka 4.4.0, see `kafka_configs`.

The lines of 4.3.1 were recorded too: they are those of 4.4.0 without the configurations that are new in 4.4.
"""

import logging

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.config import GROUP_CONFIGS, TOPIC_CONFIGS, every_broker_config, without_listener
from broker_sim.protocol.release import find_release
from tests.broker_sim.handlers.configs import kafka_configs
from tests.broker_sim.handlers.configs.kafka_configs import LISTENER, STATIC

STEPS_OF_A_DESCRIPTION = ("before", "after", "some", "deleted")
NOT_LOADED = "Class x could not be found."


@pytest.fixture(scope="module")
def root_level():
    """Give the root logger its level back, which a configuration of the broker's loggers has set."""
    before = logging.root.level
    yield
    logging.root.setLevel(before)


@pytest.fixture(scope="module", params=["4.4", pytest.param("4.3", marks=pytest.mark.soak(part="scenarios"))])
def release(request):
    return find_release(request.param)


@pytest.fixture(scope="module")
def played(root_level, release):
    configs = {**STATIC, "listener.security.protocol.map": "EXTERNAL:PLAINTEXT"}
    with VirtualCluster(3, configs=configs, listeners="EXTERNAL://:19092", as_version=release.name) as cluster:
        cluster.wait_until_in_sync()
        client = cluster.client()

        def ask(request, version):
            pending = client.send(1, request, version)
            cluster.run_until(lambda: pending.done)
            return pending.response

        return list(kafka_configs.play(ask, lambda: cluster.advance(3_000), release))


@pytest.fixture(scope="module")
def recorded(release):
    """Return the lines about configurations that the release has."""
    definitions = [*every_broker_config().values(), *TOPIC_CONFIGS.values(), *GROUP_CONFIGS.values()]
    newer = {each.name for each in definitions if not each.is_in(release.is_at_least)}
    return [line for line in kafka_configs.recorded() if name_of(line) not in newer]


@pytest.fixture(scope="module")
def classes(recorded):
    """The configurations that Kafka refuses as it cannot load a class."""
    return {line[2] for line in recorded if line[0] == "set" and NOT_LOADED in (line[5] or "")}


def name_of(line):
    """Return the name of the configuration that a line is about."""
    return without_listener(str(line[2]).partition("=")[0])


def subject(line):
    """Return what a line is about: its step, resource and name; all of a line of a list."""
    return str(line if line[1] == "resource" else line[:3])


def compared(lines, classes):
    """Return the lines that are compared, by subject: all but classes that are not loaded."""
    return {subject(line): line for line in lines if str(line[2]) not in classes}


def test_each_change_and_each_entry_is_kafkas(played, recorded, classes):
    assert compared(played, classes) == compared(recorded, classes)


def test_public_entries_are_in_kafkas_order(played, recorded):
    public = {name for name, definition in every_broker_config().items() if not definition.internal}

    def orders(lines):
        orders = {}
        for line in lines:
            described = line[0] in STEPS_OF_A_DESCRIPTION and line[1] in {"topic", "group", "client-metrics", "broker"}
            if described and (line[1] != "broker" or line[2] in public):
                orders.setdefault((line[0], line[1]), []).append(line[2])
        return orders

    assert orders(played) == orders(recorded)


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
