"""Kafka's own classes in a separate process; needs Java and Maven."""

import os
import shutil
import subprocess

import pytest

PACKAGE = "org.apache.kafka.coordinator.group"


class Peer:
    """A Java program of this project that executes commands with Kafka's classes."""

    def __init__(self, command, *arguments):
        self._process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(60)

    def ask(self, *words):
        """Send one command; returns the lines of its output."""
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        lines = []
        while (line := self._process.stdout.readline().strip()) != "done":
            assert line or self._process.poll() is None, "the peer has ended"
            lines.append(line)
        return lines


def with_configs(configs):
    """Return command-line arguments that set the given configurations."""
    return [f"{name.replace('_', '.')}={value}" for name, value in configs.items()]


def compiled_peer(source, classes, **jars_of):
    """Compile a program into the folder `classes`; return the command that starts it. `version` is Kafka's.

    Without Java the test is skipped, or fails if REQUIRE_REAL_KAFKA is set.
    """
    from broker_sim_integration.reference.errors import ReferenceUnavailableError
    from broker_sim_integration.reference.jars import kafka_jars

    give_up = pytest.fail if os.environ.get("REQUIRE_REAL_KAFKA") else pytest.skip
    if shutil.which("javac") is None:
        give_up("Java is missing: apt-get install -y --no-install-recommends default-jdk-headless")
    try:
        jars = f"{kafka_jars(**jars_of)}/*"
    except ReferenceUnavailableError as unavailable:
        give_up(str(unavailable))
    done = subprocess.run(
        ["javac", "-nowarn", "-cp", jars, "-d", str(classes), str(source)], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{jars}", f"{PACKAGE}.{source.stem}"]
