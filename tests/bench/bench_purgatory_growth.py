"""How the costs of timers grow with what is parked, under load, and how late they are.

Every figure comes from a process of its own, nanoseconds are processor time of its thread. The
simulator is what this Python has installed; a native build beside it (`make compiled`) takes part.
`out/bench/purgatory.svg` is the plot, `out/bench/purgatory.md` the table.
"""

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from options import Options
from report import OURS, Report

from integration.reference.errors import ReferenceUnavailableError
from integration.reference.jars import kafka_jars
from integration.reference.jvm import find_java

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
WORK = HERE / "purgatory_work.py"
JAVA_WORK = HERE / "java" / "PurgatoryWork.java"
OUT = ROOT / "out" / "bench"
COMPILED_PYTHON = ROOT / ".venv-compiled" / "bin" / "python"

SUITE = "purgatory growth"
SIZES = (1_000, 10_000, 100_000, 1_000_000)
MAX_SIZES = {"sched": 10_000, "threading.Timer": 1_000}
NATIVE, KAFKA = "native", "Kafka"
PEERS = ("asyncio", "heapq", "sched", "threading.Timer")
WHAT = {
    "add": "timer: add, ns",
    "cancel": "timer: cancel, ns",
    "expire": "timer: expire, ns",
    "keys_1": "watch under 1 key, complete, ns",
    "keys_3": "watch under 3 keys, complete, ns",
    "bytes_3": "bytes per parked operation, 3 keys",
}
TIMEOUT_S = 600

Figures = dict[tuple[str, int], dict[str, float]]
"""(subject, size) -> figures by the keys of `WHAT`."""


def run(options: Options, report: Report) -> None:
    """Measure, report, and write the plot and the table."""
    del options  # every process takes a median itself
    growth: Figures = {}
    for size in SIZES:
        for subject in (OURS, NATIVE, *PEERS, KAFKA):
            if size <= MAX_SIZES.get(subject, size):
                found = measure(report, subject, "growth", size)
                if found is not None:
                    growth[subject, size] = found
    others = {
        (what, subject): found
        for what, subjects in (
            ("workload", (OURS, NATIVE, KAFKA)),
            ("precision", (OURS, NATIVE, "LoopTimer", "asyncio", KAFKA)),
        )
        for subject in subjects
        if (found := measure(report, subject, what)) is not None
    }
    for (subject, size), found in growth.items():
        for key, name in WHAT.items():
            if key in found and (key != "bytes_3" or size == max(SIZES)):
                report.add(SUITE, f"{name} at {size:,}", "", subject, found[key], lower=True)
    report.print_suite(SUITE)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "purgatory.md").write_text(as_markdown(growth, others), encoding="utf-8")
    plot(growth, OUT / "purgatory.svg")
    report.say(f"table and plot: {OUT}/purgatory.md, purgatory.svg")


def measure(
    report: Report, subject: str, what: str, size: int | None = None
) -> dict[str, float] | None:
    """Run the work in a process; None, with a line about it, if that cannot be done here."""
    try:
        command = _command(subject, what)
    except ReferenceUnavailableError as missing:
        report.say(f"without {subject}: {missing}")
        return None
    arguments = [] if size is None else [str(size)]
    done = subprocess.run(
        [*command, *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        report.say(f"without {subject}, {what}: {lines[-1]}")
        return None
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _command(subject: str, what: str) -> list[str]:
    if subject == KAFKA:
        return [find_java(), "-Xmx4g", "-cp", f"{kafka_jars()}/*", str(JAVA_WORK), what]
    python = sys.executable
    if subject == NATIVE:
        if not COMPILED_PYTHON.exists():
            raise ReferenceUnavailableError("make compiled builds it")
        python = str(COMPILED_PYTHON)
    name = "purgatory" if subject in {OURS, NATIVE} else subject
    return [python, "-P", str(WORK), what, name]


def as_markdown(growth: Figures, others: dict[tuple[str, str], dict[str, float]]) -> str:
    """Return the tables of docs/benchmarks.md."""
    subjects = list(dict.fromkeys(subject for subject, _ in growth))
    machine = f"{os.cpu_count()} CPUs, {platform.system()} {platform.machine()}"
    load = f"load average {os.getloadavg()[0]:.1f} with other work beside it"
    python = f"Python {platform.python_version()}"
    lines = [f"{datetime.now(UTC):%Y-%m-%d}, {machine}, {python}, {load}.", ""]
    for key, name in WHAT.items():
        sizes = [size for size in SIZES if key != "bytes_3" or size >= 100_000]
        lines += _row([name, *(f"{size:,}" for size in sizes)], rule=True)
        for subject in subjects:
            cells = [growth.get((subject, size), {}).get(key) for size in sizes]
            if any(cell is not None for cell in cells):
                lines += _row([_label(subject), *map(_number, cells)])
        lines.append("")
    for what in ("workload", "precision"):
        rows = {subject: found for (kind, subject), found in others.items() if kind == what}
        names = [name for name in next(iter(rows.values()), {}) if name != "compiled"]
        lines += _row([what, *names], rule=True)
        for subject, found in rows.items():
            lines += _row([_label(subject), *(_number(found.get(name)) for name in names)])
        lines.append("")
    return "\n".join(lines)


def _label(subject: str) -> str:
    return {OURS: "purgatory, pure", NATIVE: "purgatory, native"}.get(subject, subject)


def _row(cells: list[str], *, rule: bool = False) -> list[str]:
    row = f"| {' | '.join(cells)} |"
    return [row, f"|---|{'---:|' * (len(cells) - 1)}"] if rule else [row]


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def plot(growth: Figures, target: Path) -> None:
    """Draw cost over size, one panel per operation."""
    from matplotlib.figure import Figure

    keys = [key for key in WHAT if key != "bytes_3"]
    figure = Figure(figsize=(14, 3.4), layout="constrained")
    for axes, key in zip(figure.subplots(1, len(keys)), keys, strict=True):
        for subject in dict.fromkeys(subject for subject, _ in growth):
            points = [
                (size, growth[subject, size][key])
                for size in SIZES
                if key in growth.get((subject, size), {})
            ]
            if points:
                axes.loglog(*zip(*points, strict=True), marker="o", label=_label(subject))
        axes.set_title(WHAT[key].removesuffix(", ns"), fontsize=9)
        axes.set_xlabel("parked")
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("ns")
    figure.axes[0].legend(fontsize=7)
    figure.savefig(target, metadata={"Date": None})
