"""Brokers beside tools that users' tests have, each in a process of its own with the wheel and the tool."""

import sys
from dataclasses import dataclass

import pytest

pytestmark = [pytest.mark.install, pytest.mark.soak(part="environments")]

PACKAGES = (
    "confluent-kafka",
    "coverage",
    "eventlet",
    "gevent",
    "httpretty",
    "nest_asyncio",
    "pyfakefs",
    "pytest-randomly",
    "pytest-socket",
    "pytest-timeout",
    "uvloop",
)
CLIENT = """
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource

pytestmark = pytest.mark.kafka(topics=["orders:1:3"])
TIMEOUT_S = 30

def use(kafka):
    servers = {"bootstrap.servers": kafka.bootstrap_servers}
    producer = Producer(servers)
    producer.produce("orders", "three apples")
    assert producer.flush(TIMEOUT_S) == 0
    broker = ConfigResource("broker", "1")
    admin = AdminClient(servers)
    assert admin.describe_configs([broker])[broker].result(TIMEOUT_S)
    assert len(kafka.records("orders")) == 1
"""
SUITE = f"""{CLIENT}
def test_client_is_served(kafka):
    use(kafka)

def test_killed_broker_is_fenced(kafka):
    kafka.kill(2)
    kafka.wait_for_isr("orders", 0, lacks=2, timeout_s=TIMEOUT_S)
"""
"""Tests that pass beside a tool that works on all tests."""
HTTPRETTY = f"""{CLIENT}
import httpretty

def test_client_is_served(kafka_cluster):
    with httpretty.enabled():
        use(kafka_cluster)

@httpretty.activate
def test_cluster_is_opened(kafka_cluster):
    use(kafka_cluster)
"""
PYFAKEFS = f"""{CLIENT}
def test_client_is_served(fs, kafka):
    use(kafka)

def test_client_of_a_cluster_opened_before_is_served(kafka, fs):
    use(kafka)
"""
ALARM = f"""{CLIENT}
import signal

class Late(Exception):
    pass

def late(*_):
    raise Late

def test_wait_ends_and_cluster_goes_on(kafka):
    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    with pytest.raises(Late):
        kafka.wait_until(lambda: False, timeout_s=TIMEOUT_S)
    use(kafka)

@pytest.mark.timeout(10)
@pytest.mark.xfail(strict=True)
def test_wait_ends_with_the_timeout_of_the_test(kafka):
    kafka.wait_until(lambda: False, timeout_s=TIMEOUT_S)

def test_next_test_has_a_cluster(kafka):
    use(kafka)
"""
FORK = f"""{CLIENT}
import multiprocessing

def test_child_is_a_client(kafka):
    child = multiprocessing.get_context("fork").Process(target=use_servers, args=(kafka.bootstrap_servers,))
    child.start()
    child.join(2 * TIMEOUT_S)
    assert child.exitcode == 0
    assert len(kafka.records("orders")) == 1

def use_servers(servers):
    producer = Producer({{"bootstrap.servers": servers}})
    producer.produce("orders", "three apples")
    assert producer.flush(TIMEOUT_S) == 0
"""


@dataclass(frozen=True)
class Tool:
    """A tool, the tests beside it, and how they are started."""

    suite: str
    options: tuple[str, ...] = ()
    program: str = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"


def begun_by(statements):
    """Return the program that runs pytest after these statements."""
    return f"{statements}; {Tool.program}"


TOOLS = {
    "HTTPretty": Tool(HTTPRETTY),
    "pyfakefs": Tool(PYFAKEFS, ("-p", "pyfakefs.pytest_plugin")),
    "pytest-socket": Tool(SUITE, ("-p", "pytest_socket", "--disable-socket")),
    "pytest-randomly": Tool(SUITE, ("-p", "randomly")),
    "pytest-timeout and alarms": Tool(ALARM, ("-p", "pytest_timeout")),
    "faulthandler": Tool(SUITE, ("-o", "faulthandler_timeout=0.2")),
    "forks": Tool(FORK),
    "warnings as errors": Tool(SUITE, ("-W", "error")),
    "coverage": Tool(SUITE, program=begun_by("import coverage; coverage.Coverage(data_file=None).start()")),
    "profile": Tool(
        SUITE,
        program=begun_by("import sys, threading; f = lambda *_: None; sys.setprofile(f); threading.setprofile(f)"),
    ),
    "policy of uvloop": Tool(
        SUITE, program=begun_by("import asyncio, uvloop; asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())")
    ),
    "nest_asyncio": Tool(
        SUITE, program=begun_by("import asyncio, nest_asyncio; nest_asyncio.apply(asyncio.new_event_loop())")
    ),
}
GREEN = {
    "gevent": "from gevent import monkey; monkey.patch_all()",
    "eventlet": "import eventlet; eventlet.monkey_patch()",
}
OPENS = """
from broker_sim import Cluster
from broker_sim.errors import WrongStateError
try:
    Cluster(1).open()
except WrongStateError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def environment(install, wheel, tmp_path_factory):
    made = install(tmp_path_factory.mktemp("tools"), sys.executable, wheel)
    made.add(*PACKAGES)
    return made


@pytest.mark.parametrize("name", TOOLS)
def test_suite_passes_beside_the_tool(environment, name):
    tool = TOOLS[name]
    file = environment.project / f"test_{abs(hash(name))}.py"
    file.write_text(tool.suite)
    plugins = ("-p", "broker_sim.testing.kafka_plugin", "-p", "no:cacheprovider", "--noconftest")
    program = f"import os; os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'] = '1'; {tool.program}"
    done = environment.run("python", "-c", program, "-q", *plugins, *tool.options, file.name)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", GREEN)
def test_cluster_is_refused_in_one_line_beside_green_threads(environment, name):
    done = environment.run("python", "-W", "ignore", "-c", GREEN[name] + OPENS)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"{name} has replaced the threads and sockets of this process")
