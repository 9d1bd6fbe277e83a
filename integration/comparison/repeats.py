"""One repeat of a scenario: both sides play it, and again when it was only out of time.

An answer out of its window tells that the broker waited for something else, or that the machine had
something else to do. The first is so every time, the second now and then on a busy machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from integration.comparison.differences import KnownDifference
    from integration.comparison.playing import Playing
    from integration.comparison.verdict import ScenarioResult

__all__ = ["PLAYS", "play_repeat"]

PLAYS: Final = 3


def play_repeat(
    result: ScenarioResult,
    play: Callable[[int], tuple[Playing, Playing]],
    known: Sequence[KnownDifference],
) -> None:
    """Add to ``result`` what ``play`` shows of both sides, given a number that was not used yet.

    A repeat that was late and nothing else is played again, up to `PLAYS` times in all. Every one of
    them is kept, and its answers count among the distributions of lateness.
    """
    for _ in range(PLAYS):
        were_late = result.late
        result.add(*play(len(result.kafka) + 1), known)
        if result.late == were_late:
            break
