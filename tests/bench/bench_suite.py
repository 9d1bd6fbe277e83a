"""Seconds and processor time of a user's test suite: the same twenty tests on the simulator and its peers.

`suite/user_suite.py` is run by pytest as a command. Cold is the start of a cluster, the command and the cluster's end;
warm is the command again on the cluster that runs. With the fixture the cluster is in pytest's process, and is reset
between tests. A test's seconds go from its set-up to the end of its tear-down. librdkafka's mock does not take part:
it creates no topics.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from statistics import mean
from xml.etree import ElementTree as ET

from options import Options
from peers import KFAKE, Peer, PeerMissingError
from report import OURS, Report
from turns import Samples, starters

SUITE = "suite"
TESTS = Path(__file__).with_name("suite") / "user_suite.py"
FIXTURE = f"{OURS}, fixture"
CONFIGS = {"group.initial.rebalance.delay.ms": "0"}
PER_TEST, CPU_PER_TEST = "warm: one test", "warm: CPU of a test, client and brokers"
TIMEOUT_S = 300


def run(options: Options, report: Report) -> None:
    """Run the suite twice on each in every round."""
    samples = Samples()
    starts = [partial(nullcontext, None), *starters(options, CONFIGS)]
    # One test of each kind.
    choice = ["-k", "0"] if options.tiny else []
    for index in range(options.rounds):
        for start in starts[:: 1 if index % 2 == 0 else -1]:
            try:
                before_s = time.perf_counter()
                with start() as peer:
                    _run_tests(peer, "cold", before_s, choice, samples)
                    _run_tests(peer, "warm", time.perf_counter(), choice, samples)
            except PeerMissingError as missing:
                report.say(f"missing: {missing}")
    samples.report_medians(report, SUITE)
    report.print_suite(SUITE)
    report.bar_ratio(SUITE, PER_TEST, KFAKE, PER_TEST, at_most=1)
    report.bar_ratio(SUITE, CPU_PER_TEST, KFAKE, CPU_PER_TEST, at_most=1)


def _run_tests(peer: Peer | None, kind: str, start_s: float, choice: list[str], samples: Samples) -> None:
    """Run pytest once; `start_s` is when the time of the whole command begins."""
    name = FIXTURE if peer is None else peer.name
    environment = {key: value for key, value in os.environ.items() if key != "SUITE_SERVERS"}
    if peer is not None:
        environment["SUITE_SERVERS"] = peer.bootstrap_servers
    # A peer's start is part of the cold run.
    used_s = 0.0 if kind == "cold" or peer is None else peer.cpu_s()
    with tempfile.TemporaryDirectory() as directory:
        results = Path(directory) / "results.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml", str(results)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [*command, *choice, str(TESTS)],
            capture_output=True, text=True, env=environment, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, f"{name}: {done.stdout[-2000:]}"
        seconds = [float(case.get("time", 0)) for case in ET.parse(results).iter("testcase")]
    used_s = (0.0 if peer is None else peer.cpu_s()) - used_s
    used_s += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    samples.add(name, f"{kind}: one test", "ms", mean(seconds) * 1e3, lower=True)
    samples.add(name, f"{kind}: CPU of a test, client and brokers", "ms", used_s * 1e3 / len(seconds), lower=True)
    samples.add(name, f"{kind}: whole command", "s", time.perf_counter() - start_s, lower=True)
