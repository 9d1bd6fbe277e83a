"""Counts the seeds until a mutant is found, from several starts."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from tools.defects.defect import ROOT, Defect

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGES: Final = ("broker_sim", "purgatory")
WORKER: Final = Path(__file__).with_name("worker.py")
STEP: Final = 25
"""How far the starts are from one another; a seed that two starts come to is run once."""


class SeedResult(NamedTuple):
    """Which invariant failed, if any, and the processor time."""

    invariant: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Found:
    """How a mutant was found."""

    mutant: str
    seeds: tuple[int, ...]
    """From each start, how many seeds were run up to the one that failed; the limit if none did."""
    limit: int
    invariants: Counter[str]
    seconds: float
    """Processor time of one seed, on average."""

    @property
    def median(self) -> float:
        """The median over the starts; the limit stands for all above it."""
        return statistics.median(self.seeds)

    @property
    def missed(self) -> int:
        """How many starts found nothing within the limit."""
        return sum(each > self.limit for each in self.seeds)


class Tree:
    """A copy of the product with a mutant in it, and a process that runs seeds there."""

    def __init__(self, mutant: Defect | None) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="power-"))
        for package in PACKAGES:
            # Native modules would be taken instead of the patched file.
            shutil.copytree(
                ROOT / package,
                self._directory / package,
                ignore=shutil.ignore_patterns("__pycache__", "*.so"),
            )
        if mutant is not None:
            mutant.put_into(self._directory)
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)],
            cwd=self._directory,
            env=os.environ | {"PYTHONPATH": str(self._directory)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._results: dict[int, SeedResult] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        shutil.rmtree(self._directory, ignore_errors=True)

    def run(self, seed: int) -> SeedResult:
        """Run a seed, or return what it gave before."""
        if seed not in self._results:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(f"{seed}\n")
            self._process.stdin.flush()
            self._results[seed] = SeedResult(*json.loads(self._process.stdout.readline()))
        return self._results[seed]

    @property
    def seconds(self) -> float:
        """Processor time of one seed, on average."""
        return statistics.fmean(each.seconds for each in self._results.values())


def count_seeds(tree: Tree, mutant: str, starts: Sequence[int], limit: int) -> Found:
    """Run seeds from each start on until one fails, at most `limit`."""
    seeds: list[int] = []
    invariants: Counter[str] = Counter()
    for start in starts:
        for number in range(1, limit + 1):
            found = tree.run(start + number - 1).invariant
            if found:
                invariants[found] += 1
                seeds.append(number)
                break
        else:
            seeds.append(limit + 1)
    return Found(mutant, tuple(seeds), limit, invariants, tree.seconds)
