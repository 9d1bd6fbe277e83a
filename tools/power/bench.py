"""Counts the seeds until a mutant is found, from several starts."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from tools.defects.defect import ROOT, Defect, read_defects
from tools.defects.run_tests import python_path
from tools.power.worker import POWER_LOSS

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDERS: Final = ("broker_sim", "purgatory")
MUTANTS: Final = Path(__file__).with_name("mutants.toml")
UNCOUNTED: Final = Path(__file__).with_name("uncounted.toml")
WITH_POWER_LOSS: Final = Path(__file__).with_name("power_loss.toml")
ONLY: Final = Path(__file__).with_name("only.toml")
"""Defects that only one invariant detects."""
ALONE: Final = Path(__file__).with_name("alone.toml")
"""For each invariant the mutant that only it finds, or the reason why there is none."""
WORKER: Final = Path(__file__).with_name("worker.py")
MOST_TRIES_ALONE: Final = 3
"""Number of failing seeds of an invariant that are run again without it."""
STEP: Final = 25
"""Distance between starts; a seed that two starts reach is run only once."""


def read_mutants() -> dict[str, Defect]:
    """Return all mutants by name."""
    return {each.id: each for each in read_defects([MUTANTS, WITH_POWER_LOSS, UNCOUNTED, ONLY])}


@cache
def counted() -> frozenset[str]:
    """Return the mutants that must be found by few seeds."""
    return frozenset(each.id for each in read_defects([MUTANTS]))


def read_alone() -> dict[str, dict[str, str]]:
    """Return for each invariant its `mutant`, or `why_none`."""
    return tomllib.loads(ALONE.read_text())


@cache
def loses_power() -> frozenset[str]:
    """Return the mutants that are run with power losses."""
    return frozenset(each.id for each in read_defects([WITH_POWER_LOSS]))


class SeedResult(NamedTuple):
    """The failed invariant, empty without one, and the CPU time."""

    invariant: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Finding:
    """The seeds that find a mutant, and the invariants that fail in these runs."""

    mutant: str
    seeds: tuple[int, ...]
    """For each start the number of seeds up to the failing one; more than the limit if none failed."""
    limit: int
    invariants: dict[str, int]
    """Number of failures by invariant, most frequent first."""
    alone: dict[str, int]
    """Invariants without which a failing seed passes: nothing else finds the mutant there."""
    seconds: float
    """Average CPU time of one seed."""

    @property
    def median(self) -> float:
        """The median over the starts; values above the limit count as the limit."""
        return statistics.median(self.seeds)

    @property
    def missed(self) -> int:
        """Number of starts that found nothing within the limit."""
        return sum(each > self.limit for each in self.seeds)


class Tree:
    """A copy of the product with a mutant, and a process that runs seeds in it."""

    def __init__(self, mutant: Defect) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="power-"))
        for folder in FOLDERS:
            # Native modules would be imported instead of the patched file.
            shutil.copytree(
                ROOT / folder, self._directory / folder, ignore=shutil.ignore_patterns("__pycache__", "*.so")
            )
        mutant.put_into(self._directory)
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER), *([POWER_LOSS] if mutant.id in loses_power() else [])],
            cwd=self._directory,
            env=os.environ | {"PYTHONPATH": python_path(self._directory)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._results: dict[tuple[int, str], SeedResult] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        shutil.rmtree(self._directory, ignore_errors=True)

    def run(self, seed: int, without: str = "") -> SeedResult:
        """Run a seed, maybe without an invariant, and return the result; a repeated call returns the stored one."""
        key = (seed, without)
        if key not in self._results:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(f"{seed} {without}\n")
            self._process.stdin.flush()
            self._results[key] = SeedResult(*json.loads(self._process.stdout.readline()))
        return self._results[key]

    @property
    def seconds(self) -> float:
        """Average CPU time of one seed."""
        return statistics.fmean(each.seconds for each in self._results.values())


def count_seeds(tree: Tree, mutant: str, starts: Sequence[int], limit: int) -> Finding:
    """Run seeds from each start on until one fails, at most `limit`."""
    seeds: list[int] = []
    invariants: Counter[str] = Counter()
    alone: dict[str, int] = {}
    for start in starts:
        for number in range(1, limit + 1):
            seed = start + number - 1
            invariant = tree.run(seed).invariant
            if invariant:
                invariants[invariant] += 1
                is_tried = invariant in alone or invariants[invariant] > MOST_TRIES_ALONE
                if not (is_tried or tree.run(seed, invariant).invariant):
                    alone[invariant] = seed
                seeds.append(number)
                break
        else:
            seeds.append(limit + 1)
    most_first = dict(invariants.most_common())
    return Finding(mutant, tuple(seeds), limit, most_first, alone, tree.seconds)


def found_alone(tree: Tree, invariant: str, seeds: Sequence[int]) -> int | None:
    """Return the first seed that fails with the invariant and passes without it, None without one."""
    for seed in seeds:
        if tree.run(seed).invariant == invariant and not tree.run(seed, invariant).invariant:
            return seed
    return None
