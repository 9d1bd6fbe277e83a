"""`--kafka-containers`, with clusters of the simulator in the place of real ones."""

import importlib
from importlib.metadata import entry_points

import pytest
from broker_sim_integration.reference.clusters.containers import ContainerCluster
from broker_sim_integration.reference.selection import kafka_in_containers

from broker_sim import WrongStateError
from broker_sim.testing import containers

pytest_plugins = ["pytester"]

OPTION = "--kafka-containers"
STARTER = """
from broker_sim import Cluster

started = []

def start(configs):
    started.append(Cluster(3, configs=configs))
    return started[-1]

def fail(configs):
    started.append(configs)
    raise RuntimeError("Docker does not run: start dockerd")
"""


@pytest.fixture
def install_starter(pytester):
    """Install a function of the module `starter` as the entry point that starts the containers; returns the
    module."""

    def install(function):
        file = pytester.makepyfile(starter=STARTER)
        directory = file.parent / "starter-1.dist-info"
        directory.mkdir()
        (directory / "METADATA").write_text("Name: starter\nVersion: 1\n")
        text = f"[{containers.GROUP}]\nreference = starter:{function}\n"
        (directory / "entry_points.txt").write_text(text)
        pytester.syspathinsert()
        return importlib.import_module("starter")

    return install


def test_reference_cluster_of_this_project_is_what_is_started():
    (found,) = entry_points(group=containers.GROUP)
    assert found.load() is kafka_in_containers
    assert isinstance(kafka_in_containers({"num.partitions": "2"}), ContainerCluster)


ON_CONTAINERS = """
import starter

@pytest.mark.kafka(topics=["orders:2:3"])
@pytest.mark.parametrize("number", [1, 2])
def test_topics(kafka, number):
    (cluster,) = starter.started
    assert kafka.bootstrap_servers == cluster.bootstrap_servers
    assert [topic.name for topic in cluster.status().topics] == ["orders"]
    cluster.create_topic("made_by_a_client")

@pytest.mark.kafka(brokers=1)
def test_fewer_brokers_are_enough(kafka):
    assert len(starter.started) == 1

@pytest.mark.kafka(brokers=4)
def test_more_brokers(kafka): pass

@pytest.mark.kafka(configs={"num.partitions": 4})
def test_configs(kafka):
    assert len(starter.started) == 2
    kafka.create_topic("orders")
    assert len(starter.started[1].status().topics[0].partitions) == 4

def test_verb(kafka):
    kafka.pause(1)

def test_own_cluster(kafka_cluster): pass
"""


def test_same_tests_run_on_clusters_that_are_theirs(run_here, install_starter):
    starter = install_starter("start")
    result = run_here(ON_CONTAINERS, OPTION, "-rs")
    result.assert_outcomes(passed=4, skipped=3)
    result.stdout.fnmatch_lines_random(
        [
            "SKIPPED *4 brokers need the simulator: --kafka-containers has 3",
            "SKIPPED *kafka.pause needs the simulator; run it without --kafka-containers",
            "SKIPPED *kafka_cluster needs the simulator*",
        ]
    )
    for cluster in starter.started:
        with pytest.raises(WrongStateError):
            cluster.status()


def test_kafka_that_does_not_start_is_one_line_and_not_tried_again(run_here, install_starter):
    starter = install_starter("fail")
    result = run_here("def test_a(kafka): pass\ndef test_b(kafka): pass", OPTION)
    result.assert_outcomes(errors=2)
    text = "--kafka-containers: Docker does not run: start dockerd"
    assert [line for line in result.outlines if "Docker" in line][:2] == [text] * 2
    assert len(starter.started) == 1


def test_what_starts_containers_may_not_be_installed(run_here, monkeypatch):
    monkeypatch.setattr(containers, "GROUP", "broker_sim.nothing")
    result = run_here("def test_it(kafka): pass", OPTION)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["--kafka-containers: the package * not installed: pip install ./integration*"])


def test_one_real_kafka_is_enough(run_here):
    result = run_here("", OPTION, "--kafka-bootstrap=127.0.0.1:1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*pass --kafka-bootstrap or --kafka-containers, not both"])


def test_address_without_a_port_is_refused(run_here):
    result = run_here("", "--kafka-bootstrap=localhost")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*'localhost': pass HOST:PORT, several separated by commas"])
