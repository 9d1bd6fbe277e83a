"""Claims about what a cluster imports when it starts: the names, because seconds depend on the machine."""

import json
import subprocess
import sys

import pytest

START = """
import json, sys, threading
from broker_sim import Cluster

with Cluster(brokers=3) as cluster:
    started = sorted(sys.modules)
    threads = [thread.name for thread in threading.enumerate()]
    cluster.create_topic("orders", 3, 3)
    cluster.reset()
    print(json.dumps([started, sorted(sys.modules), threads]))
"""
NOT_AT_START = (
    "broker_sim.chaos",
    "broker_sim.cli",
    "broker_sim.cluster.status",
    "broker_sim.control.server",
    "broker_sim.coordinator.runtime",
    "broker_sim.group",
    "broker_sim.handlers.data.fetch",
    "broker_sim.handlers.groups.join_group",
    "broker_sim.handlers.security.acls",
    "broker_sim.handlers.share.share_fetch",
    "broker_sim.page",
    "broker_sim.regex",
    "broker_sim.security.sasl_listener",
    "broker_sim.security.ssl_listener",
    "broker_sim.share.coordinator",
    "broker_sim.share.partition",
    "broker_sim.share.persister",
    "broker_sim.share.state_apis",
    "broker_sim.testing",
    "broker_sim.trace",
    "broker_sim.transaction",
    "aiohttp",
    "click",
    "crc32c",
    "cryptography",
    "ctypes",
    "decimal",
    "importlib.metadata",
    "prometheus_client",
    "rich",
    "shutil",
    "structlog",
    "uuid",
)
MOST_MODULES = 285
"""Modules of this project; there were 504 when a broker imported all that it may need."""


@pytest.fixture(scope="module")
def modules():
    """What is imported when three brokers are ready, and after a topic and a reset; and the threads of the start."""
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)
    return dict(zip(("started", "reset", "threads"), json.loads(done.stdout), strict=True))


def test_start_imports_only_what_it_needs(modules):
    early = [name for name in NOT_AT_START if name in modules["started"]]
    ours = [name for name in modules["started"] if name.startswith("broker_sim")]
    assert early == []
    assert len(ours) <= MOST_MODULES


def test_start_makes_one_thread_for_all_brokers(modules):
    assert modules["threads"] == ["MainThread", "broker-sim"]


def test_topic_and_reset_without_clients_make_no_coordinator(modules):
    rooms = ("broker_sim.group", "broker_sim.share.coordinator", "broker_sim.transaction")
    assert [name for name in rooms if name in modules["reset"]] == []
