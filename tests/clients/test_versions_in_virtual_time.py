"""Every client takes one course in virtual time: newest and older versions, on several Pythons and JVMs."""

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.clients.environments import NotInstalledError, python_with
from tests.clients.test_programs_in_virtual_time import idle_minute, play, shop
from tools.pythons import find_pythons

pytestmark = pytest.mark.soak(part="clients")
PROGRAMS = Path(__file__).parent / "idle_minute"
JVMS = Path("/usr/lib/jvm")
RUNS = 20
OF_PYTHON = {
    "confluent-kafka": ("2.16.1", "2.13.2", "2.5.3"),
    "kafka-python": ("3.0.12", "2.3.3", "2.0.6"),
    "aiokafka": ("0.14.0", "0.13.0", "0.11.0"),
}
"""Clients and their versions, for the running Python."""


def check_one_course(scenario):
    """Assert that the runs print the same and have one digest; return what they print."""
    courses = {play(scenario) for _ in range(RUNS)}
    assert len(courses) == 1, f"{len(courses)} courses in {RUNS} runs"
    return courses.pop()[0]


def check_idle_minute(*command):
    """Check a program; some print that there was no coordinator at first."""
    printed = check_one_course(lambda kafka: idle_minute(kafka, *command))
    assert printed.splitlines()[-1] == "20 records, 60 s idle"


@pytest.fixture
def environment(require_or_skip):
    """Return a function that gives the Python of an environment with a client in a version."""

    def environment(client, version, interpreter=sys.executable):
        try:
            return python_with(f"{client}=={version}", interpreter)
        except NotInstalledError as missing:
            require_or_skip(str(missing))

    return environment


@pytest.mark.parametrize(
    ("client", "version"), [(name, each) for name, versions in OF_PYTHON.items() for each in versions]
)
def test_client_of_python_takes_one_course(client, version, environment):
    python = environment(client, version)
    if client == "confluent-kafka":
        printed = check_one_course(partial(shop, python=python))
        assert printed.count("closed") == 2
    else:
        check_idle_minute(python, PROGRAMS / f"idle_{client.replace('-', '_')}.py")


@pytest.mark.parametrize("version", [(3, 12), (3, 13), (3, 14)], ids="{0[0]}.{0[1]}".format)
def test_confluent_kafka_takes_one_course_on_other_pythons(version, environment):
    interpreter = find_pythons().get(version)
    if interpreter is None:
        pytest.skip("Python {}.{} is missing: python -m tools.pythons says how to get it".format(*version))
    python = environment("confluent-kafka", OF_PYTHON["confluent-kafka"][0], interpreter)
    assert check_one_course(partial(shop, python=python)).count("closed") == 2


def test_kafkajs_takes_one_course(find_program, tmp_path):
    npm = find_program("npm", "npm")
    subprocess.run([npm, "install", "--no-audit", "--no-fund", "kafkajs@2.2.4"], cwd=tmp_path, check=True)
    program = tmp_path / "idle_kafkajs.js"
    program.write_text((PROGRAMS / program.name).read_text(encoding="utf-8"), encoding="utf-8")
    check_idle_minute("node", program)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("version", ["4.4.0", "4.3.1"])
@pytest.mark.parametrize("release", [17, 21, 25])
def test_client_of_java_takes_one_course(release, version, protocol, kafka_class_path, tmp_path):
    class_path = kafka_class_path("kafka-clients", version=version)
    java = next(JVMS.glob(f"*-{release}-*/bin/java"), None)
    if java is None:
        pytest.skip(f"Java {release} is missing: apt-get install -y openjdk-{release}-jdk-headless, or Temurin's")
    source = PROGRAMS / "IdleMinute.java"
    subprocess.run(["javac", "--release", "17", "-cp", class_path, "-d", tmp_path, source], check=True)
    command = java, "-XX:TieredStopAtLevel=1", "-cp", f"{tmp_path}:{class_path}", "IdleMinute", protocol
    check_idle_minute(*command)


def test_rskafka_takes_one_course(find_program, tmp_path):
    project = shutil.copytree(PROGRAMS / "rust", tmp_path / "rust")
    subprocess.run([find_program("cargo", "cargo"), "build", "-q"], cwd=project, check=True)
    check_idle_minute(project / "target" / "debug" / "idle_minute")


def test_kcat_takes_one_course(find_program):
    find_program("kcat", "kcat")
    produce = "seq 20 | kcat -P -b $KAFKA_BOOTSTRAP_SERVERS -t orders"
    consume = "kcat -C -b $KAFKA_BOOTSTRAP_SERVERS -t orders -e -q | wc -l | tr '\\n' ' '"
    check_idle_minute("sh", "-c", f"{produce}; {consume}; sleep 60; echo records, 60 s idle")
