"""Fetching the jars: by Maven, once, and with a reason when it fails."""

import os

import pytest
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.reference.jars import kafka_jars

FETCHES = """\
for argument in "$@"; do
    case $argument in */pom.xml) wanted=$(grep -o 'kafka[-_][a-z0-9.]*</artifactId>' "$argument" | sed -n 2p) ;; esac
    case $argument in -DoutputDirectory=*) touch "${argument#*=}/kafka-clients-9.9.9.jar" ;; esac
done
echo "${wanted%%<*}" >> "$0.wanted"
"""
FAILS = """\
echo "[INFO] scanning"
echo "[ERROR] Could not resolve dependencies: no such host"
echo "[ERROR] more"
exit 1
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BROKER_SIM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def maven(tmp_path, monkeypatch):
    """Put a Maven with the given script first in the path."""

    def install(script):
        program = tmp_path / "bin" / "mvn"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/bash\n{script}")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        return program

    return install


def test_jars_are_fetched_once(maven):
    program = maven(FETCHES)
    directory = kafka_jars(version="9.9.9")
    assert [path.name for path in directory.iterdir()] == ["kafka-clients-9.9.9.jar"]
    program.unlink()
    assert kafka_jars(version="9.9.9") == directory


def test_tools_are_another_artifact_in_a_directory_of_their_own(maven):
    program = maven(FETCHES)
    assert kafka_jars(version="9.9.9") != kafka_jars("kafka-tools", version="9.9.9")
    wanted = program.with_name("mvn.wanted").read_text().split()
    assert wanted == ["kafka_2.13", "kafka-tools"]


def test_mavens_first_error_is_the_reason_and_nothing_is_kept(maven, cache):
    maven(FAILS)
    reason = r"^Maven cannot fetch Kafka 9\.9\.9: Could not resolve dependencies: no such host$"
    with pytest.raises(ReferenceUnavailableError, match=reason):
        kafka_jars(version="9.9.9")
    assert [path.suffix for path in cache.iterdir()] == [".lock"]


def test_missing_maven_names_the_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReferenceUnavailableError, match=r"^Maven is missing: apt-get install"):
        kafka_jars(version="9.9.9")
