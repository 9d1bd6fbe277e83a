"""kcat: the command-line client, as a user would type it."""

import json
import os
import shutil
import subprocess

import pytest

TIMEOUT_S = 120


@pytest.fixture
def kcat(simulator):
    """Return a function that runs kcat against the cluster and returns what it prints."""
    path = shutil.which("kcat")
    if path is None:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up("kcat is missing: apt-get install -y --no-install-recommends kcat")

    def run(*arguments, text=None):
        command = [path, "-b", simulator.bootstrap_servers]
        done = subprocess.run(
            [*command, *arguments], input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_piped_lines_are_produced_and_consumed(simulator, kcat):
    topic = simulator.create_topic(partitions=2)
    kcat("-P", "-t", topic, "-p", "1", "-X", "acks=all", text="one\ntwo\nthree\n")
    assert kcat("-C", "-t", topic, "-p", "1", "-o", "beginning", "-e", "-q") == "one\ntwo\nthree\n"


def test_keys_offsets_and_headers_are_kept(simulator, kcat):
    topic = simulator.create_topic()
    kcat("-P", "-t", topic, "-K:", "-H", "source=test", text="key:value\n")
    printed = kcat("-C", "-t", topic, "-p", "0", "-e", "-q", "-f", "%o %k %s %h\n")
    assert printed == "0 key value source=test\n"


def test_lists_brokers_and_partitions(simulator, kcat):
    topic = simulator.create_topic(partitions=3)
    listed = json.loads(kcat("-L", "-J", "-t", topic))
    assert sorted(broker["id"] for broker in listed["brokers"]) == [1, 2, 3]
    (found,) = listed["topics"]
    assert len(found["partitions"]) == 3
    for partition in found["partitions"]:
        assert partition["leader"] == simulator.partition(topic, partition["partition"])["leader"]


def test_offsets_are_found_by_timestamp(simulator, kcat):
    topic = simulator.create_topic()
    kcat("-P", "-t", topic, text="one\n")
    assert kcat("-Q", "-t", f"{topic}:0:-1").split() == [topic, "[0]", "offset", "1"]
