"""How soon chaos finds the bugs of examples/chaos, and how fast it runs them.

Each bug is looked for from twenty starting seeds: how many seeds it takes, in the middle and at worst. Each
application and its mended twin: seeds a second of processor time. Changes to faults, to their weights and to the
defaults of a run are judged by it.
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from options import Options
from report import OURS, Report

from broker_sim.chaos.search import NamedTest

SUITE = "chaos_power"
EXAMPLES = Path(__file__).parents[2] / "examples" / "chaos"
APART = 10_000
"""Between two starting seeds."""
MOST = 100
"""After so many seeds a bug counts as not found."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    starts: int
    twins: int
    """Seeds of each mended twin."""
    examples: int | None
    """Number of examples, None for all."""


FULL = Sizes(starts=20, twins=20, examples=None)
TINY = Sizes(starts=1, twins=1, examples=2)


def run(options: Options, report: Report) -> None:
    """Look for the bug of each example."""
    sys.path.insert(0, str(EXAMPLES))
    sizes = options.choose(FULL, TINY)
    names = sorted(path.stem for path in EXAMPLES.glob("*_*.py"))[: sizes.examples]
    for name in names:
        _measure(name, sizes, report)
    report.print_suite(SUITE)
    for name in names:
        report.bar_below(SUITE, _median(name), 5.5)


def _median(name: str) -> str:
    return f"{name}: seeds until found, median"


def _measure(name: str, sizes: Sizes, report: Report) -> None:
    wrong, mended = (NamedTest.of(f"{name}:test_{which}") for which in ("wrong", "mended"))
    before_s = time.process_time()
    counts = [_seeds_until_found(wrong, start * APART) for start in range(sizes.starts)]
    found_s = time.process_time()
    failed = sum(mended.run(mended.draw(seed)).invariant is not None for seed in range(sizes.twins))
    ended_s = time.process_time()

    def add(what: str, unit: str, value: float, *, lower: bool = True) -> None:
        report.add(SUITE, what, unit, OURS, value, lower=lower)

    add(_median(name), "seeds", median(counts))
    add(f"{name}: seeds until found, worst", "seeds", max(counts))
    add(f"{name}: speed", "seeds/s", sum(counts) / (found_s - before_s), lower=False)
    add(f"{name}, mended: speed", "seeds/s", sizes.twins / (ended_s - found_s), lower=False)
    add(f"{name}, mended: failed", "seeds", failed)


def _seeds_until_found(test: NamedTest, start: int) -> int:
    for count in range(MOST):
        if test.run(test.draw(start + count)).invariant is not None:
            return count + 1
    return MOST
