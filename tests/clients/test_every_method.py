"""Every public method of each client, in the newest and two older versions, here and on Kafka.

The programs in `methods/` are the table of what is expected: `served` methods have the same outcome
on the simulator and on a real Kafka, `refused` ones fail on the simulator at once, with an error
of the broker. A public method that a program does not name fails the test.
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from tests.clients.environments import NotInstalledError, python_with

METHODS = Path(__file__).parent / "methods"
PROGRAM_TIMEOUT_S = 240
AT_ONCE_S = 30
"""Below the 45 s and more for which a client waits when nobody answers."""
OLDER = {"confluent-kafka": ("2.13.2", "2.5.3"), "kafka-python": ("2.3.3", "2.0.6"), "aiokafka": ("0.13.0", "0.11.0")}
NEWEST = [(name, "newest") for name in OLDER]
CASES = [(name, version) for name, older in OLDER.items() for version in older]
AT_A_TIME = 2
MISTAKES = {"NameError", "AttributeError", "TypeError", "ValueError", "TimeoutError"}
"""What a mistake of the program would raise, or a client that waits."""
_numbers = count(1)


# -- the programs -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pythons(request):
    """Return futures of the Pythons of the older versions, made while the first tests run."""
    cases = {item.callspec.params["client"] for item in request.session.items if item.path == request.path}
    pool = ThreadPoolExecutor(AT_A_TIME)
    yield {case: pool.submit(python_with, "==".join(case)) for case in CASES if case in cases}
    pool.shutdown(cancel_futures=True)


OLDER_CASES = [pytest.param(case, marks=pytest.mark.soak(part="clients")) for case in CASES]


@pytest.fixture(params=[*NEWEST, *OLDER_CASES], ids="-".join, scope="module")
def client(request, pythons, require_or_skip):
    """Return the client's name and the Python that has it."""
    name, version = request.param
    if version == "newest":
        return name, sys.executable
    try:
        return name, pythons[request.param].result()
    except NotInstalledError as missing:
        require_or_skip(str(missing))


def outcomes(client, bootstrap_servers, mode):
    """Run the client's program; return its lines."""
    name, python = client
    topic = f"methods-{name}-{next(_numbers)}"
    program = METHODS / f"{name.replace('-', '_')}_methods.py"
    done = subprocess.run(
        [str(python), str(program), bootstrap_servers, topic, mode],
        capture_output=True,
        text=True,
        check=False,
        timeout=PROGRAM_TIMEOUT_S,
    )
    assert done.returncode == 0, f"{done.stdout[-500:]}\n{done.stderr[-4000:]}"
    *lines, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last == {"not_called": []}
    return lines


def served(lines):
    return [(line["method"], line["outcome"]) for line in lines if line["kind"] == "served"]


def test_served_methods_succeed_and_the_others_fail_at_once(client, simulator):
    for line in outcomes(client, simulator.bootstrap_servers, "all"):
        assert line["seconds"] < AT_ONCE_S, line
        if line["kind"] == "served":
            assert "ok" in line["outcome"], line
        else:
            assert "error" in line["outcome"], line
            assert line["outcome"]["error"] not in MISTAKES, line


@pytest.mark.soak(part="clients")
@pytest.mark.real_kafka
def test_served_methods_have_the_outcome_of_kafka(client, simulator, real_kafka):
    clusters = (simulator, real_kafka)
    with ThreadPoolExecutor(len(clusters)) as pool:
        ours, theirs = pool.map(lambda cluster: outcomes(client, cluster.bootstrap_servers, "served"), clusters)
    assert served(ours) == served(theirs)
