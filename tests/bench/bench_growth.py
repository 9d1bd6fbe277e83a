"""What idle partitions cost: processor time of three brokers that nobody asks anything, and how long they take to end.

A few and many partitions of three replicas, in memory and with a data directory; and the processor time per
virtual minute of a `VirtualCluster` with as many. All processes rest side by side, in the same minute: each
has its own processor time.
"""

import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from options import Options
from peers import Peer, simulator
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
    """Seconds to wait until the first checkpoints are written."""
    idle_s: float

    @property
    def on_disk_name(self) -> str:
        """What has a data directory."""
        return f"{self.on_disk} partitions on disk"


FULL = Sizes(partitions=(1_000, 8_000, 25_000), on_disk=4_000, settle_s=35.0, idle_s=30.0)
TINY = Sizes(partitions=(3,), on_disk=3, settle_s=0.0, idle_s=0.2)


def run(options: Options, report: Report) -> None:
    """Measure each number of partitions once: half a minute of rest is long enough."""
    sizes = options.choose(FULL, TINY)
    with ExitStack() as running:
        directory = running.enter_context(tempfile.TemporaryDirectory(prefix="broker-sim-bench-"))
        processes = {f"{count} partitions": _start(running, count, report) for count in sizes.partitions}
        on_disk = _start(running, sizes.on_disk, report, "--data-dir", directory)
        processes[sizes.on_disk_name] = on_disk
        settled_s = time.perf_counter() + sizes.settle_s
        for count in sizes.partitions:
            _in_virtual_time(count, report)
        time.sleep(max(0.0, settled_s - time.perf_counter()))
        _rest(processes, sizes.idle_s, report)
        _end_all(processes, report)
    report.print_suite(SUITE)
    for name in (f"{sizes.partitions[-1]} partitions", sizes.on_disk_name):
        report.bar_below(SUITE, _idle(name), 3)
        report.bar_below(SUITE, _end(name), 1_000)


@dataclass(frozen=True)
class Process:
    """A running cluster; to close `running` ends it."""

    peer: Peer
    running: ExitStack


def _idle(name: str) -> str:
    return f"{name}, idle"


def _end(name: str) -> str:
    return f"{name}, SIGTERM to end"


def _topics(count: int) -> list[str]:
    """Return topics of three replicas that have so many partitions together."""
    sizes = [min(PER_TOPIC, count - start) for start in range(0, count, PER_TOPIC)]
    return [f"topic-{number}:{size}:3" for number, size in enumerate(sizes)]


def _start(running: ExitStack, count: int, report: Report, *arguments: str) -> Process:
    asked = [word for topic in _topics(count) for word in ("--topic", topic)]
    own = running.enter_context(ExitStack())
    peer = own.enter_context(simulator(*arguments, *asked))
    name = f"{count} partitions{' on disk' if arguments else ''}"
    report.add(SUITE, f"{name}, start", "ms", OURS, peer.ready_ms, lower=True)
    return Process(peer, own)


def _rest(processes: dict[str, Process], idle_s: float, report: Report) -> None:
    before_s = {name: process.peer.cpu_s() for name, process in processes.items()}
    start = time.perf_counter()
    time.sleep(idle_s)
    rested_s = time.perf_counter() - start
    for name, process in processes.items():
        used = (process.peer.cpu_s() - before_s[name]) / rested_s
        report.add(SUITE, _idle(name), "% of a core", OURS, used * 100, lower=True)
        peer = process.peer
        report.add(SUITE, f"{name}, resident memory", "MB", OURS, peer.resident_mb(), lower=True)
        files = sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in peer.pids)
        report.add(SUITE, f"{name}, open files", "", OURS, files, lower=True)


def _end_all(processes: dict[str, Process], report: Report) -> None:
    for name, process in processes.items():
        start = time.perf_counter()
        process.running.close()
        report.add(SUITE, _end(name), "ms", OURS, (time.perf_counter() - start) * 1e3, lower=True)


def _in_virtual_time(count: int, report: Report) -> None:
    with VirtualCluster(3, topics=_topics(count)) as cluster:
        cluster.advance(MINUTE_MS // 6)
        before_s = time.process_time()
        cluster.advance(MINUTE_MS)
        used_s = time.process_time() - before_s
    name = f"{count} partitions, a virtual minute"
    report.add(SUITE, name, "CPU ms", OURS, used_s * 1e3, lower=True)
