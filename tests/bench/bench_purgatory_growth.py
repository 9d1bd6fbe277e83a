"""How the costs of timers grow with what is parked.

Nanoseconds are processor time of a thread: the least of what several processes found as a median, because what else
the machine does can only add to it. The processes of one subject and size are minutes apart. The native purgatory
takes part where `make compiled` has built it. `out/bench/purgatory.svg` is the plot, `out/bench/purgatory.md` the
tables and bars.
"""

import json
import os
import platform
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from broker_sim_integration.reference.clusters.jvm import find_java
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.reference.jars import kafka_jars
from options import Options
from report import OURS, Report

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
WORK = HERE / "purgatory_work.py"
JAVA_WORK = HERE / "java" / "PurgatoryWork.java"
NATIVE_PACKAGE = ROOT / "build" / "native"
"""Directory in which `make compiled` leaves the native purgatory."""

SUITE = "purgatory growth"
ROUNDS = 3
MAX_SIZES = {"sched": 10_000, "threading.Timer": 1_000}
NATIVE, PENDING, KAFKA = "native", "native, PendingOperation", "Kafka"
WITH_MEMORY = (OURS, NATIVE, "asyncio", "heapq")
"""Subjects whose timers' memory is measured, in a process that does nothing else."""
PEERS = ("asyncio", "heapq", "sched", "threading.Timer")
WHAT = {
    "add": "timer: add, ns",
    "cancel": "timer: cancel, ns",
    "expire": "timer: expire, ns",
    "keys_1": "watch under 1 key, complete, ns",
    "keys_3": "watch under 3 keys, complete, ns",
    "bytes_3": "bytes per parked operation, 3 keys",
    "bytes_timer": "bytes per waiting timer",
}
TIMEOUT_S = 600


@dataclass(frozen=True)
class Sizes:
    """How much is parked, and how often each process measures on top of it."""

    parked: tuple[int, ...]
    repeats: int


FULL = Sizes(parked=(1_000, 10_000, 100_000, 1_000_000), repeats=31)
TINY = Sizes(parked=(100,), repeats=1)

Figures = dict[tuple[str, int], dict[str, float]]
"""(subject, size) -> figures by the keys of `WHAT`."""


def run(options: Options, report: Report) -> None:
    """Measure, report, and write the tables and the plot."""
    sizes = options.choose(FULL, TINY)
    growth = sample(options, sizes, report)
    for (subject, size), found in growth.items():
        for key, name in WHAT.items():
            if key in found and (not key.startswith("bytes") or size == max(sizes.parked)):
                report.add(SUITE, f"{name} at {size:,}", "", subject, found[key], lower=True)
    report.print_suite(SUITE)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "purgatory.md").write_text(as_markdown(growth), encoding="utf-8")
    report.say(f"tables: {options.out}/purgatory.md")
    try:
        plot(growth, options.out / "purgatory.svg")
    except ImportError as missing:
        report.say(f"without a plot: {missing}")


def sample(options: Options, sizes: Sizes, report: Report) -> Figures:
    """Run all subjects at every size in turns, as often as there are rounds."""
    samples: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    subjects = (OURS, NATIVE, PENDING, *PEERS, *([KAFKA] if options.peers else []))
    for _ in range(min(options.rounds, ROUNDS)):
        for size in sizes.parked:
            for subject in subjects:
                if size <= MAX_SIZES.get(subject, size):
                    what = "watches" if subject == PENDING else "growth"
                    figures = measure(report, subject, what, size, sizes.repeats)
                    if subject in WITH_MEMORY:
                        figures |= measure(report, subject, "memory", size)
                    for key, value in figures.items():
                        samples[subject, size, key].append(value)
    growth: Figures = defaultdict(dict)
    for (subject, size, key), values in samples.items():
        growth[subject, size][key] = min(values)
    return growth


def measure(report: Report, subject: str, what: str, *counts: int) -> dict[str, float]:
    """Run the work in a process; empty, with a line about it, if that cannot be done here.

    RuntimeError if this very Python fails: nothing that it needs can be missing.
    """
    try:
        command, path = _command(subject, what)
    except ReferenceUnavailableError as missing:
        report.say(f"without {subject}: {missing}")
        return {}
    done = subprocess.run(
        [*command, *map(str, counts)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))},
        check=False,
    )
    if done.returncode != 0:
        if command[0] == sys.executable:
            raise RuntimeError(f"{subject}, {what}: {done.stderr}")
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        report.say(f"without {subject}, {what}: {lines[-1]}")
        return {}
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _command(subject: str, what: str) -> tuple[list[str], list[Path]]:
    """Return the command, and the directories of its PYTHONPATH."""
    if subject == KAFKA:
        return [find_java(), "-Xmx4g", "-cp", f"{kafka_jars()}/*", str(JAVA_WORK), what], []
    path = [HERE]
    if subject in {NATIVE, PENDING}:
        if not NATIVE_PACKAGE.exists():
            raise ReferenceUnavailableError("make compiled builds it")
        path.append(NATIVE_PACKAGE)
    name = "purgatory" if subject in {OURS, NATIVE, PENDING} else subject
    return [sys.executable, "-P", str(WORK), what, name], path


def as_markdown(growth: Figures) -> str:
    """Return a table of nanoseconds for each operation, by the number of parked operations."""
    subjects = list(dict.fromkeys(subject for subject, _ in growth))
    parked = sizes_of(growth)
    lines = [machine(), ""]
    for key, name in WHAT.items():
        sizes = [size for size in parked if not key.startswith("bytes") or size >= 100_000]
        lines += row([name, *(f"{size:,}" for size in sizes)], rule=True)
        for subject in subjects:
            cells = [growth.get((subject, size), {}).get(key) for size in sizes]
            if any(cell is not None for cell in cells):
                lines += row([label(subject), *map(number, cells)])
        lines.append("")
    lines += row(["bar", NATIVE, PENDING, "pure"], rule=True)
    for claim, judge in BARS.items():
        lines += row([claim, *(judge(growth, subject) for subject in (NATIVE, PENDING, OURS))])
    lines.append("")
    return "\n".join(lines)


def sizes_of(growth: Figures) -> list[int]:
    """Return how much was parked, least first."""
    return sorted({size for _, size in growth})


def machine() -> str:
    """Return where and when this was measured."""
    load = f"load average {os.getloadavg()[0]:.1f}"
    python = f"Python {platform.python_version()}"
    system = f"{os.cpu_count()} CPUs, {platform.system()} {platform.machine()}"
    return f"{datetime.now(UTC):%Y-%m-%d}, {system}, {python}, {load}."


def beside(key: str, peer: str, limit: float) -> Callable[[Figures, str], str]:
    """Judge a figure by a peer's, at every size."""

    def judge(growth: Figures, subject: str) -> str:
        pairs = [(figure(growth, subject, size, key), figure(growth, peer, size, key)) for size in sizes_of(growth)]
        return verdict([ours / theirs for ours, theirs in pairs if ours and theirs], limit)

    return judge


def below_bytes(limit: float) -> Callable[[Figures, str], str]:
    """Judge the memory of an operation with three keys, where there are many."""

    def judge(growth: Figures, subject: str) -> str:
        used = figure(growth, subject, max(sizes_of(growth)), "bytes_3")
        return verdict([used] if used else [], limit, "{:.0f}")

    return judge


def grows(key: str, limit: float) -> Callable[[Figures, str], str]:
    """Judge how much more it costs with a million parked than with ten thousand."""

    def judge(growth: Figures, subject: str) -> str:
        few, many = (figure(growth, subject, size, key) for size in (10_000, 1_000_000))
        return verdict([many / few] if few and many else [], limit)

    return judge


def figure(growth: Figures, subject: str, size: int, key: str) -> float | None:
    """Return what was measured, None if it was not."""
    return growth.get((subject, size), {}).get(key)


def verdict(ratios: list[float], limit: float, form: str = "{:.2f}x") -> str:
    """Return whether all are within the limit, and from where to where they are."""
    if not ratios:
        return ""
    reached = " to ".join(dict.fromkeys(form.format(end(ratios)) for end in (min, max)))
    return f"{'holds' if max(ratios) <= limit else '**missed**'}: {reached}"


BARS = {
    "add at most 1x of `call_later`": beside("add", "asyncio", 1),
    "cancel at most 1x of `handle.cancel`": beside("cancel", "asyncio", 1),
    "expire cheaper than asyncio, per task": beside("expire", "asyncio", 1),
    "watch under 1 key and complete at most 3x of the warm JVM": beside("keys_1", KAFKA, 3),
    "watch under 3 keys and complete at most 3x of the warm JVM": beside("keys_3", KAFKA, 3),
    "a parked operation with three keys under 500 bytes": below_bytes(500),
    **{
        f"{name} at most 1.3x from 10^4 to 10^6": grows(key, 1.3)
        for key, name in (
            ("add", "add"),
            ("cancel", "cancel"),
            ("expire", "expire"),
            ("keys_1", "watch under 1 key and complete"),
            ("keys_3", "watch under 3 keys and complete"),
        )
    },
}


def label(subject: str) -> str:
    """Return what a subject is called in tables and plots."""
    return {OURS: "purgatory, pure", NATIVE: "purgatory, native", PENDING: "purgatory, native, PendingOperation"}.get(
        subject, subject
    )


def row(cells: list[str], *, rule: bool = False) -> list[str]:
    """Return a line of a table; with `rule` the head of one."""
    row = f"| {' | '.join(cells)} |"
    return [row, f"|---|{'---:|' * (len(cells) - 1)}"] if rule else [row]


def number(value: float | None) -> str:
    """Return a figure as a cell."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def plot(growth: Figures, target: Path) -> None:
    """Draw cost over size, one panel per operation, each subject in one colour."""
    from matplotlib.figure import Figure

    keys = [key for key in WHAT if key != "bytes_3"]
    subjects = list(dict.fromkeys(subject for subject, _ in growth))
    figure = Figure(figsize=(14, 3.8), layout="constrained")
    lines = {}
    for axes, key in zip(figure.subplots(1, len(keys)), keys, strict=True):
        for number, subject in enumerate(subjects):
            points = [
                (size, growth[subject, size][key])
                for size in sizes_of(growth)
                if key in growth.get((subject, size), {})
            ]
            if points:
                (line,) = axes.loglog(*zip(*points, strict=True), marker="o", color=f"C{number}")
                lines[label(subject)] = line
        axes.set_title(WHAT[key].removesuffix(", ns"), fontsize=9)
        axes.set_xlabel("parked")
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("ns")
    names = sorted(lines, key=[label(subject) for subject in subjects].index)
    figure.legend([lines[name] for name in names], names, loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig(target, metadata={"Date": None})
