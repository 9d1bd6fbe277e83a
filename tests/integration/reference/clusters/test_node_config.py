"""The nodes' configuration, directly and through a container's environment."""

import os
import subprocess
from pathlib import Path

import pytest
from broker_sim_integration.reference.clusters.node_config import (
    CLUSTER_ID,
    Node,
    node_environment,
    node_properties,
    to_file,
)

ENTRYPOINT = (
    Path(__file__).parents[4] / "integration" / "broker_sim_integration" / "reference" / "node_files" / "entrypoint"
)

NODES = [
    Node(
        node_id=number,
        host=f"kafka-{number}",
        bind_host="0.0.0.0",
        internal_port=19092,
        controller_port=19093,
        external_port=9092,
        client_port=20_000 + number,
    )
    for number in (1, 2, 3)
]


@pytest.fixture
def run_entrypoint(tmp_path):
    """Run the image's entry point with a java that records its arguments."""
    home = tmp_path / "kafka"
    (home / "config").mkdir(parents=True)
    calls = tmp_path / "calls"
    programs = tmp_path / "bin"
    programs.mkdir()
    java = programs / "java"
    java.write_text(f'#!/bin/bash\nprintf "%s\\n" "$*" >> {calls}\n')
    java.chmod(0o755)

    def run(environment):
        subprocess.run(
            [ENTRYPOINT],
            env={"PATH": f"{programs}:{os.environ['PATH']}", "NODE_HOME": str(home), **environment},
            timeout=120,
            check=True,
        )
        properties = (home / "config" / "node.properties").read_text()
        started = calls.read_text().splitlines()
        calls.unlink()
        return properties, started

    return run


def test_every_node_knows_all_voters_and_advertises_its_own_ports():
    properties = node_properties(NODES[1], NODES, "/data", {})
    assert properties["node.id"] == "2"
    assert properties["controller.quorum.voters"] == ("1@kafka-1:19093,2@kafka-2:19093,3@kafka-3:19093")
    assert properties["advertised.listeners"] == ("INTERNAL://kafka-2:19092,EXTERNAL://127.0.0.1:20002")
    assert properties["log.dirs"] == "/data"


def test_given_configs_win():
    properties = node_properties(NODES[0], NODES, "/data", {"log.dirs": "/other", "a.b": "c"})
    assert properties["log.dirs"] == "/other"
    assert properties["a.b"] == "c"


def test_environment_escapes_underscores_and_dashes():
    assert node_environment({"a.b_c-d": "x"}) == {"CLUSTER_ID": CLUSTER_ID, "KAFKA_A_B__C___D": "x"}


def test_entrypoint_restores_the_properties_from_the_environment(run_entrypoint, tmp_path):
    configs = {"a.b_c-d": "x=y z", "back.slash": "a\\b", "log.dirs": str(tmp_path)}
    properties = node_properties(NODES[0], NODES, "/data", configs)
    written, _ = run_entrypoint(node_environment(properties))
    assert sorted(written.splitlines()) == sorted(to_file(properties).splitlines())


def test_entrypoint_formats_the_storage_once_and_hands_options_to_java(run_entrypoint, tmp_path):
    environment = {
        "CLUSTER_ID": CLUSTER_ID,
        "KAFKA_LOG_DIRS": str(tmp_path),
        "KAFKA_HEAP_OPTS": "-Xmx99m",
        "KAFKA_OPTS": "-Done=1 -Dtwo=2",
    }
    properties, first = run_entrypoint(environment)
    assert properties == f"log.dirs={tmp_path}\n"
    assert [call.split(" -cp ")[0].split()[:3] for call in first] == [["-Xmx99m", "-Done=1", "-Dtwo=2"]] * 2
    assert f"kafka.tools.StorageTool format --ignore-formatted -t {CLUSTER_ID}" in first[0]
    assert " kafka.Kafka " in first[1]

    (tmp_path / "meta.properties").touch()
    _, second = run_entrypoint(environment)
    assert second == first[1:]
