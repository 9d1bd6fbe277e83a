"""Which reference is chosen on which machine."""

import pytest
from broker_sim_integration.broker_verbs import Fault
from broker_sim_integration.reference.clusters.bootstrap import BootstrapCluster
from broker_sim_integration.reference.clusters.jvm import JvmCluster, find_java
from broker_sim_integration.reference.errors import ReferenceUnavailableError, UnsupportedFaultError
from broker_sim_integration.reference.jars import KAFKA_VERSION, KAFKA_VERSIONS
from broker_sim_integration.reference.selection import ReferenceKind, Selection, select_reference


@pytest.fixture
def bare_machine(tmp_path, monkeypatch):
    """No Docker, no programs, an empty cache; returns the only directory in the path."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("BROKER_SIM_CACHE", str(tmp_path / "cache"))
    return programs


def install_java(programs, version):
    java = programs / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    java.chmod(0o755)


def test_requested_reference_is_selected_without_a_check(bare_machine):
    assert select_reference("containers") == Selection(ReferenceKind.CONTAINERS, "as requested")
    assert select_reference("jvm") == Selection(ReferenceKind.JVM, "as requested")
    assert select_reference("recorded") == Selection(ReferenceKind.RECORDED, "as requested")
    assert select_reference("bootstrap=kafka:9092").address == "kafka:9092"


@pytest.mark.parametrize("word", ["docker", "", "bootstrap=", "bootstrap=kafka"])
def test_unknown_reference_is_refused(word):
    with pytest.raises(ValueError, match=r"^--reference "):
        select_reference(word)


def test_auto_on_a_bare_machine_selects_the_recording_with_the_reason(bare_machine):
    selection = select_reference()
    assert selection.kind is ReferenceKind.RECORDED
    assert "Docker does not run: apt-get install" in selection.reason
    assert "Java is missing: apt-get install" in selection.reason
    with pytest.raises(ValueError, match="needs no cluster"):
        selection.cluster()


def test_auto_selects_java_without_docker(bare_machine, tmp_path):
    install_java(bare_machine, "17.0.15")
    (tmp_path / "cache" / f"kafka-jars-{KAFKA_VERSION}").mkdir(parents=True)
    selection = select_reference()
    assert selection.kind is ReferenceKind.JVM
    assert isinstance(selection.cluster({"a": "b"}), JvmCluster)


@pytest.mark.parametrize("version", KAFKA_VERSIONS.values())
def test_reference_is_of_the_version_that_is_compared(bare_machine, tmp_path, version):
    install_java(bare_machine, "17.0.15")
    (tmp_path / "cache" / f"kafka-jars-{version}").mkdir(parents=True)
    selection = select_reference(version=version)
    assert (selection.kind, selection.version) == (ReferenceKind.JVM, version)


def test_auto_does_not_take_java_without_the_jars(bare_machine):
    install_java(bare_machine, "21")
    selection = select_reference()
    assert selection.kind is ReferenceKind.RECORDED
    assert "Maven is missing" in selection.reason


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402"])
def test_an_old_java_is_refused_with_the_remedy(bare_machine, version):
    install_java(bare_machine, version)
    with pytest.raises(ReferenceUnavailableError, match=r"older than Java 17.*apt-get install"):
        find_java()


def test_cluster_at_an_address_takes_no_broker_configuration():
    with pytest.raises(ReferenceUnavailableError, match=r"unclean cannot be set on kafka:9092"):
        select_reference("bootstrap=kafka:9092").cluster(node_configs={1: {"unclean": "true"}})


def test_cluster_that_was_already_running_gets_no_faults():
    cluster = BootstrapCluster("kafka:9092")
    assert cluster.faults == frozenset()
    for verb in (cluster.pause, cluster.resume, cluster.stop, cluster.kill, cluster.start):
        with pytest.raises(UnsupportedFaultError, match=r"--reference containers"):
            verb(1)
    with pytest.raises(UnsupportedFaultError, match=r"no way to disconnect \(broker 1\)"):
        cluster.disconnect(1)
    with pytest.raises(UnsupportedFaultError, match=r"no way to disconnect clients \(broker 2\)"):
        cluster.disconnect_clients(2)


def test_local_processes_cannot_be_disconnected():
    assert JvmCluster.faults == {Fault.PAUSE, Fault.STOP, Fault.KILL}
    with pytest.raises(UnsupportedFaultError, match=r"a jvm reference has no way to disconnect"):
        JvmCluster().disconnect(2)


def test_address_without_a_kafka_is_named():
    cluster = BootstrapCluster("127.0.0.1:1")
    with pytest.raises(ReferenceUnavailableError, match=r"^no Kafka responds at 127\.0\.0\.1:1; "):
        cluster.open()
