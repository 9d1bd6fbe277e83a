"""Figures of the simulator beside those of its peers: as tables with ratios, and as JSON."""

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

OURS = "simulator"


@dataclass
class Metric:
    """One thing that was measured, by who it was measured on."""

    suite: str
    name: str
    unit: str
    lower_is_better: bool
    values: dict[str, float] = field(default_factory=dict)

    def advantage(self, peer: str) -> float | None:
        """Return how many times better the simulator is than `peer`; below 1 it is worse."""
        ours, theirs = self.values.get(OURS), self.values.get(peer)
        if not ours or not theirs:
            return None
        return theirs / ours if self.lower_is_better else ours / theirs


@dataclass
class Bar:
    """What the simulator wants to reach, and what it has reached."""

    claim: str
    reached: str
    holds: bool


class Report:
    """Collects what suites measure and prints a suite when it is done."""

    def __init__(self, *, tiny: bool) -> None:
        self.tiny = tiny
        self.metrics: dict[tuple[str, str], Metric] = {}
        self.bars: list[Bar] = []
        self.console = Console(width=None if os.isatty(1) else 160, highlight=False)

    def add(self, suite: str, name: str, unit: str, subject: str, value: float, *, lower: bool = False) -> None:
        """Note a figure; `lower` says that less is better."""
        metric = self.metrics.setdefault((suite, name), Metric(suite, name, unit, lower))
        metric.values[subject] = value

    def value(self, suite: str, name: str, subject: str = OURS) -> float | None:
        """Return a figure, None if it was not measured."""
        metric = self.metrics.get((suite, name))
        return None if metric is None else metric.values.get(subject)

    def bar_below(self, suite: str, name: str, limit: float) -> None:
        """Judge a figure that must be below a fixed limit."""
        ours = self.value(suite, name)
        if ours is not None:
            claim = f"{name} < {limit:g} {self.metrics[suite, name].unit}"
            self.bars.append(Bar(claim, _number(ours), ours < limit))

    def bar_ratio(
        self, suite: str, name: str, peer: str, peer_name: str, *, at_most: float = 0.0, at_least: float = 1.0
    ) -> None:
        """Judge ours / theirs: at most `at_most`, or at least `at_least` where more is better."""
        theirs = self.value(suite, peer_name, peer)
        wanted = f"at most {at_most:g} x" if at_most else f"at least {at_least:g} x"
        ours = self.value(suite, name)
        if ours and theirs:
            ratio = ours / theirs
            holds = ratio <= at_most if at_most else ratio >= at_least
            self.bars.append(Bar(f"{name}: {wanted} {peer}'s {peer_name}", f"{ratio:.2f} x", holds))

    def bar_unmoved(self, suite: str, name: str, before: str, *, at_most: float) -> None:
        """Judge a figure of the simulator beside another one of it."""
        ours, limit = self.value(suite, name), self.value(suite, before)
        if ours and limit:
            ratio = ours / limit
            self.bars.append(Bar(f"{name}: at most {at_most:g} x {before}", f"{ratio:.2f} x", ratio <= at_most))

    def say(self, text: str) -> None:
        """Print one line, such as that a peer is missing."""
        self.console.print(text, markup=False)

    def print_suite(self, suite: str) -> None:
        """Print the suite's table: figures, and how many times better the simulator is."""
        metrics = [metric for metric in self.metrics.values() if metric.suite == suite]
        subjects = list(dict.fromkeys(name for metric in metrics for name in metric.values))
        subjects.sort(key=lambda subject: subject != OURS)
        table = Table(title=f"{suite} (in brackets: how many times better the simulator is)")
        table.add_column("what", no_wrap=True)
        table.add_column("unit", no_wrap=True)
        for subject in subjects:
            table.add_column(subject, justify="right")
        for metric in metrics:
            cells = [_cell(metric, subject) for subject in subjects]
            table.add_row(escape(metric.name), metric.unit, *cells)
        self.console.print(table)

    def print_bars(self) -> None:
        """Print what was to be reached, if any of it was measured."""
        if not self.bars:
            return
        table = Table("bar", "reached", "", title="Bars")
        for bar in self.bars:
            verdict = "[green]holds[/]" if bar.holds else "[red]missed[/]"
            table.add_row(escape(bar.claim), bar.reached, verdict)
        self.console.print(table)

    def write_json(self, path: Path) -> None:
        """Write everything, with the machine that it was measured on."""
        machine = {
            "cpus": os.cpu_count(),
            "machine": platform.machine(),
            "system": platform.system(),
            "python": platform.python_version(),
            "load_average": os.getloadavg()[0],
        }
        figures = [asdict(metric) for metric in self.metrics.values()]
        bars = [asdict(bar) for bar in self.bars]
        document = {"tiny": self.tiny, "machine": machine, "metrics": figures, "bars": bars}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _cell(metric: Metric, subject: str) -> str:
    value = metric.values.get(subject)
    if value is None:
        return "-"
    advantage = None if subject == OURS else metric.advantage(subject)
    if advantage is None:
        return _number(value)
    colour = "green" if advantage >= 1 else "yellow"
    return f"{_number(value)} [{colour}]({advantage:.2f})[/]"


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"
