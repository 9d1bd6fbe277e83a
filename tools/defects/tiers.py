"""The order in which tests run: first those near the defect, then more and more.

The expressions are those of the Makefile's `test-fast` and `test`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from tools.defects.defect import Defect

FAST: Final = "not (soak or real_kafka or clients or threads or spark or install)"
TEST: Final = "not soak"
SLOW: Final = f"({TEST}) and {FAST.removeprefix('not ')}"
"""Marker expression of the tests of `make test` that are not fast."""
TIERS: Final = ("fast", "test", "soak")

NEAR: Final = ("module", "room", "slow module", "slow room")
"""The stages of the tests of a defect's own room."""

TREE_TESTS: Final = (
    "tests/broker_sim/config/test_config_page.py",
    "tests/broker_sim/test_api_page.py",
    "tests/documents",
    "tests/purgatory/test_wheel_picture.py",
    "tests/tools",
)
"""Tests that compare the tree with itself: they would catch any change of a text."""


class Stage(NamedTuple):
    """One run of pytest over tests that no earlier stage has run."""

    name: str
    tier: str
    markers: str
    paths: list[str]
    without: list[str]
    limit_s: int
    test_limit_s: int


def stages_of(defect: Defect, tree: Path, tier: str, *, only_near: bool = False) -> list[Stage]:
    """Return the runs for `defect` up to `tier`, the nearest tests first; with `only_near` those of its room only."""
    nearest = defect.module_tests(tree)
    own = [str(defect.tests)] if (tree / defect.tests).exists() else []
    stages = [
        Stage("module", "fast", FAST, nearest, [], 600, 60),
        Stage("room", "fast", FAST, own, nearest, 900, 60),
        Stage("fast", "fast", FAST, ["tests"], [*own, *nearest], 1800, 60),
        Stage("slow module", "test", SLOW, nearest, [], 900, 600),
        Stage("slow room", "test", SLOW, own, nearest, 1800, 600),
        Stage("test", "test", SLOW, ["tests"], [*own, *nearest], 3600, 600),
        Stage("soak", "soak", f"not ({TEST})", ["tests"], [], 10800, 1800),
    ]
    reached = TIERS[: TIERS.index(tier) + 1]
    wanted = NEAR if only_near else [stage.name for stage in stages]
    return [stage for stage in stages if stage.tier in reached and stage.name in wanted and stage.paths]
