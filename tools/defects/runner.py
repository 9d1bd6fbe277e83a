"""Runs each defect through its stages until a test catches it.

A catch counts if the test, run alone, passes without the defect; a test that depends on a clock must also fail
again with it. A test that fails anyway, or at random, is left out and the stage goes on.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from tools.defects.run_tests import Failure, RunError, copy_of, copy_project, end_all, run_tests
from tools.defects.tiers import Stage, stages_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.defects.defect import Defect

MOST_NO_CATCHERS: Final = 20


@dataclass(slots=True)
class Result:
    """Results of the stages."""

    digest: str
    caught_by: str | None = None
    tier: str | None = None
    stage: str | None = None
    how: str | None = None
    seconds: float = 0.0
    """Duration of the stages in seconds, up to the failure."""
    passed_stages: list[str] = field(default_factory=list)
    """Stages without a failure; they are not repeated."""
    no_catchers: list[str] = field(default_factory=list)
    """Tests that failed, but not because of the defect."""

    def to_json(self) -> dict[str, object]:
        """Return plain values."""
        return asdict(self)


class Runner:
    """A clean copy of the project, from which each thread gets a copy of its own."""

    def __init__(self, tier: str, *, only_near: bool = False) -> None:
        self._tier = tier
        self._only_near = only_near
        self._directory = Path(tempfile.mkdtemp(prefix="defects-"))
        self._clean = self._directory / "clean"
        self._free_trees: list[Path] = []
        self._made_trees = itertools.count(1)
        self._fails_without: set[str] = set()
        self._passes_without: set[str] = set()

    def __enter__(self) -> Self:
        try:
            copy_project(self._clean)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove all copies."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def run_all(
        self, defects: Sequence[Defect], before: dict[str, Result], jobs: int
    ) -> Iterator[tuple[Defect, Result]]:
        """Run `defects`, `jobs` in parallel; yield each result as it comes."""
        with ThreadPoolExecutor(jobs) as pool:
            running = {pool.submit(self.run, defect, before.get(defect.id)): defect for defect in defects}
            try:
                for done in as_completed(running):
                    yield running[done], done.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                end_all()
                raise

    def run(self, defect: Defect, before: Result | None = None) -> Result:
        """Run the stages that `before` has not passed, until one catches the defect."""
        result = before or Result(defect.digest)
        tree = self._take_tree()
        try:
            defect.put_into(tree)
            for stage in stages_of(defect, tree, self._tier, only_near=self._only_near):
                if stage.name in result.passed_stages:
                    continue
                if failure := self._catch(tree, stage, result):
                    result.caught_by, result.how = failure.test, failure.why
                    result.tier, result.stage = stage.tier, stage.name
                    break
                result.passed_stages.append(stage.name)
        finally:
            shutil.copy2(self._clean / defect.file, tree / defect.file)
            self._free_trees.append(tree)
        return result

    def _take_tree(self) -> Path:
        """Return the current thread's own copy of the project."""
        if self._free_trees:
            return self._free_trees.pop()
        return copy_of(self._clean, self._directory / f"tree-{next(self._made_trees)}")

    def _catch(self, tree: Path, stage: Stage, result: Result) -> Failure | None:
        while True:
            no_catchers = sorted({*self._fails_without, *result.no_catchers})
            ignored = [f"--ignore={path}" for path in stage.without]
            deselected = [f"--deselect={test}" for test in no_catchers]
            arguments = ["-m", stage.markers, *stage.paths, *ignored, *deselected]
            start = time.monotonic()
            failure = run_tests(tree, arguments, limit_s=stage.limit_s, test_limit_s=stage.test_limit_s)
            result.seconds = round(result.seconds + time.monotonic() - start, 1)
            if failure is None or self._is_catch(tree, stage, failure):
                return failure
            result.no_catchers.append(failure.test)
            if len(result.no_catchers) > MOST_NO_CATCHERS:
                raise RunError(f"too many tests fail even without a defect: {result.no_catchers}")

    def _is_catch(self, tree: Path, stage: Stage, failure: Failure) -> bool:
        limits = {"limit_s": stage.limit_s, "test_limit_s": stage.test_limit_s}
        test = failure.test
        if test not in self._passes_without | self._fails_without:
            try:
                fails = run_tests(self._clean, [test], **limits) is not None
            except RunError:  # the test's parameters depend on the defective product
                fails = run_tests(self._clean, [test.partition("[")[0]], **limits) is not None
            (self._fails_without if fails else self._passes_without).add(test)
        if test in self._fails_without:
            return False
        return stage.tier == "fast" or run_tests(tree, [test], **limits) is not None
