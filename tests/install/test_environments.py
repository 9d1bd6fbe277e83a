"""The product works in any environment that a user's machine may have: each is one process tree with a difference."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
TIMEOUT_S = 300
SUITE = {
    "test_orders.py": """
from confluent_kafka import Producer

def test_order_is_sent(kafka):
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("orders", "three apples")
    assert producer.flush(30) == 0
""",
    "conftest.py": 'pytest_plugins = ["broker_sim.testing.pytest_plugin"]\n',
    "test_hour.py": """
import pytest
from aiokafka import AIOKafkaProducer

@pytest.mark.virtual_time
async def test_record_after_an_hour(kafka):
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        await producer.send_and_wait("orders", b"first")
""",
}
"""A newcomer's tests: in real time, and in virtual time."""
DEAD_PROXY = "http://127.0.0.1:9"
ENVIRONMENTS = {
    "plain": {},
    "no home": {"HOME": None},
    "no temporary directory": {"TMPDIR": None},
    "ASCII locale": {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "earliest time zone": {"TZ": "Etc/GMT-14"},
    "latest time zone": {"TZ": "Etc/GMT+12"},
    "dead proxy": dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), DEAD_PROXY),
    "warnings are errors": {"PYTHONWARNINGS": "error"},
    "development mode": {"PYTHONDEVMODE": "1"},
    "optimized": {"PYTHONOPTIMIZE": "1"},
    "buffered": {"PYTHONUNBUFFERED": None},
    "hash seed": {"PYTHONHASHSEED": "4711"},
    "no colours": {"NO_COLOR": "1", "TERM": "dumb"},
    "20 columns": {"COLUMNS": "20", "LINES": "5"},
    "pytest options": {"PYTEST_ADDOPTS": "-v --tb=short"},
}
SHELLS = {
    "umask 077": "umask 077",
    "64 open files": "ulimit -n 64",
    "SIGINT ignored": "trap '' INT",
    "SIGPIPE ignored": "trap '' PIPE",
    "no stdin": "exec <&-",
    "no stderr": "exec 2>&-",
    "one processor": "taskset -p -c 0 $$ > /dev/null",
    "root": 'test "$(id -u)" = 0 || exec unshare --map-root-user "$@"',
}
"""What a shell does before it becomes the program."""

pytestmark = [pytest.mark.install, pytest.mark.soak(part="environments")]


@pytest.fixture(params=[*ENVIRONMENTS, *SHELLS])
def run_there(request, tmp_path):
    """Return a function that runs a command in a directory with a space, in the environment of the parameter."""
    directory = tmp_path / "a directory"
    directory.mkdir()
    environment = os.environ | {"TMPDIR": str(directory)}
    for name, value in ENVIRONMENTS.get(request.param, {}).items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    before = SHELLS.get(request.param, ":")

    def run(*command, start=subprocess.run, **options):
        words = ["sh", "-c", f'{before}; exec "$@"', "sh", *map(str, command)]
        return start(words, cwd=directory, env=environment, text=True, stdout=subprocess.PIPE, **options)

    run.directory = directory
    return run


# pytest itself does not start without stderr.
@pytest.mark.parametrize("run_there", [*ENVIRONMENTS, *(name for name in SHELLS if name != "no stderr")], indirect=True)
def test_newcomers_suite_passes(run_there):
    for name, text in SUITE.items():
        (run_there.directory / name).write_text(text)
    done = run_there(BIN / "pytest", "-q", "-p", "no:cacheprovider", timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_cluster_of_the_command_serves_and_ends(run_there):
    process = run_there(BIN / "broker-sim", "run", "--brokers", "1", "--topic", "orders", start=subprocess.Popen)
    with process:
        try:
            ready = json.loads(process.stdout.readline())
            topics = run_there(
                *(BIN / "broker-sim", "ctl", "--control", ready["control"], "--json", "status"),
                timeout=TIMEOUT_S,
                check=False,
            )
            assert topics.returncode == 0, topics.stdout
            assert "orders" in topics.stdout
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()


def test_search_for_failing_seeds_ends(run_there):
    for path in (ROOT / "examples" / "chaos").glob("*.py"):
        (run_there.directory / path.name).write_bytes(path.read_bytes())
    search = (BIN / "broker-sim", "chaos", "commit_before_work:test_mended", "--seeds", "2")
    done = run_there(*search, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("2 of 2 seeds passed")
