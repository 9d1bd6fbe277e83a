"""What idle partitions cost: processor time of three brokers that nobody asks anything, and how long they take to end.

A few and many partitions of three replicas, in memory and with a data directory; and the processor time per
virtual minute of a `VirtualCluster` with as many.
"""

import sys
import tempfile
import time
from dataclasses import dataclass

from options import Options
from peers import build_of, simulator
from report import OURS, Report

from broker_sim import VirtualCluster

SUITE = "growth"
PER_TOPIC = 1_000
MINUTE_MS = 60_000


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    partitions: tuple[int, ...]
    on_disk: int
    """With a data directory, where to create the partitions is what takes long."""
    settle_s: float
    """Until the first checkpoints are written."""
    idle_s: float


FULL = Sizes(partitions=(1_000, 8_000, 25_000), on_disk=8_000, settle_s=35.0, idle_s=60.0)
TINY = Sizes(partitions=(3,), on_disk=3, settle_s=0.0, idle_s=0.2)


def run(options: Options, report: Report) -> None:
    """Measure each number of partitions once: a minute of rest is long enough."""
    report.say(f"simulator: the {build_of(sys.executable)} build")
    sizes = options.choose(FULL, TINY)
    for count in sizes.partitions:
        _in_virtual_time(count, report)
        _process(count, f"{count} partitions", sizes, report)
    with tempfile.TemporaryDirectory(prefix="broker-sim-bench-") as directory:
        name = f"{sizes.on_disk} partitions on disk"
        _process(sizes.on_disk, name, sizes, report, "--data-dir", directory)
    report.print_suite(SUITE)
    for name in (f"{sizes.partitions[-1]} partitions", f"{sizes.on_disk} partitions on disk"):
        report.bar_below(SUITE, _idle(name), 3)
        report.bar_below(SUITE, _end(name), 1_000)


def _idle(name: str) -> str:
    return f"{name}, idle"


def _end(name: str) -> str:
    return f"{name}, SIGTERM to end"


def _topics(count: int) -> list[str]:
    """Return topics of three replicas that have so many partitions together."""
    sizes = [min(PER_TOPIC, count - start) for start in range(0, count, PER_TOPIC)]
    return [f"topic-{number}:{size}:3" for number, size in enumerate(sizes)]


def _process(count: int, name: str, sizes: Sizes, report: Report, *arguments: str) -> None:
    asked = [word for topic in _topics(count) for word in ("--topic", topic)]
    with simulator(*arguments, *asked) as peer:
        time.sleep(sizes.settle_s)
        before_s, start = peer.cpu_s(), time.perf_counter()
        time.sleep(sizes.idle_s)
        used = (peer.cpu_s() - before_s) / (time.perf_counter() - start)
        report.add(SUITE, _idle(name), "% of a core", OURS, used * 100, lower=True)
        start = time.perf_counter()
    report.add(SUITE, _end(name), "ms", OURS, (time.perf_counter() - start) * 1e3, lower=True)


def _in_virtual_time(count: int, report: Report) -> None:
    with VirtualCluster(3, topics=_topics(count)) as cluster:
        cluster.advance(MINUTE_MS // 6)
        before_s = time.process_time()
        cluster.advance(MINUTE_MS)
        used_s = time.process_time() - before_s
    name = f"{count} partitions, a virtual minute"
    report.add(SUITE, name, "CPU ms", OURS, used_s * 1e3, lower=True)
