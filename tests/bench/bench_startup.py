"""How long three brokers take to be ready, and what memory they hold when idle.

In the process: `Cluster().open()` in a Python that has imported it, the first time and again, and
`reset()` after a topic of three partitions and three replicas, as between two tests.
"""

import json
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from statistics import median

from options import Options
from peers import (
    PeerMissingError,
    kafka,
    kfake,
    librdkafka_mock,
    simulator,
)
from report import OURS, Report

SUITE = "startup"
IN_PROCESS = """
import json, time
from broker_sim import Cluster

def took_ms(function):
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1e3

open_ms, reset_ms = [], []
for _ in range(%d):
    cluster = Cluster(brokers=3)
    open_ms.append(took_ms(cluster.open))
    for _ in range(10):
        cluster.create_topic("orders", 3, 3)
        reset_ms.append(took_ms(cluster.reset))
    cluster.close()
print(json.dumps([open_ms, reset_ms]))
"""
READY = "process start to ready"
CPU = "processor time until ready"
FIRST, AGAIN = "Cluster().open(), first", "Cluster().open(), again"
RESET = "reset between tests"
MEMORY = "resident memory, idle"


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    starts: int
    settle_s: float
    """Seconds that a cluster rests before its memory is read."""


FULL = Sizes(starts=10, settle_s=1.0)
TINY = Sizes(starts=1, settle_s=0.0)


def run(options: Options, report: Report) -> None:
    """Start everything often, in turns; what takes seconds once."""
    sizes = options.choose(FULL, TINY)
    built = [kfake] if options.peers else []
    starters = [simulator, *built, librdkafka_mock]
    peers = {start.__name__: start for start in starters}
    ready_ms: dict[str, list[float]] = {}
    cpu_ms: dict[str, list[float]] = {}
    for _ in range(sizes.starts):
        for name, start in list(peers.items()):
            try:
                with start() as peer:
                    cpu_ms.setdefault(peer.name, []).append(peer.cpu_s() * 1e3)
                    ready_ms.setdefault(peer.name, []).append(peer.ready_ms)
            except PeerMissingError as missing:
                report.say(f"without {name}: {missing}")
                del peers[name]
    for name, times_ms in ready_ms.items():
        report.add(SUITE, READY, "ms", name, median(times_ms), lower=True)
        report.add(SUITE, CPU, "ms", name, median(cpu_ms[name]), lower=True)
    _in_process(report, OURS, sys.executable, sizes.starts)
    if options.kafka:
        peers["kafka"] = kafka
    else:
        report.say("without Kafka: ask for it by --kafka")
    for start in peers.values():
        with suppress(PeerMissingError), start() as peer:
            if peer.name not in ready_ms:
                report.add(SUITE, READY, "ms", peer.name, peer.ready_ms, lower=True)
            time.sleep(sizes.settle_s)
            report.add(SUITE, MEMORY, "MB", peer.name, peer.resident_mb(), lower=True)
    report.print_suite(SUITE)
    report.bar_below(SUITE, READY, 300)
    report.bar_below(SUITE, FIRST, 30)
    report.bar_below(SUITE, RESET, 5)
    report.bar_below(SUITE, MEMORY, 80)


def _in_process(report: Report, name: str, python: str, starts: int) -> None:
    """Take the first start of every process, the median of the others, and that of resets."""
    firsts, others, resets = [], [], []
    for _ in range(starts):
        done = subprocess.run([python, "-P", "-c", IN_PROCESS % 4], capture_output=True, text=True, check=True)
        (first, *again), reset_ms = json.loads(done.stdout)
        firsts.append(first)
        others += again
        resets += reset_ms
    report.add(SUITE, FIRST, "ms", name, median(firsts), lower=True)
    report.add(SUITE, AGAIN, "ms", name, median(others), lower=True)
    report.add(SUITE, RESET, "ms", name, median(resets), lower=True)
