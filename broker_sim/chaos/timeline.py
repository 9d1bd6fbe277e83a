"""The events of a run, moment by moment."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from broker_sim.chaos.faults.action import Action

FAULT = "FAULT"
ORDER = "ORDER"
WIDEST_NAME = 32
"""Maximum length of a name; longer ones, as of Kafka Streams clients, are shortened in the middle."""
BEFORE = 5
"""Number of moments shown before the first fault or deviation."""
MAX_LINES: Final = 60
"""Maximum number of lines of a time line without errors."""
HOW_TO_SEE_ALL: Final = "--full shows them, and --json FILE has them"
"""Advice of commands on how to see omitted lines."""
LONGEST_BLOCK: Final = 4
"""Maximum number of lines in a block of repeated lines that is folded, such as a request and its error."""


class Moment(NamedTuple):
    """An event, with its second of virtual or real time."""

    at_s: float
    who: str
    what: str
    error: str = ""
    """The error of the event, as `TypeError: its text`; a line with an error is never omitted."""


class Timeline:
    """The moments of a run, with their times by the clock `now_s`."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.moments: list[Moment] = []
        self.now_s = now_s

    def note(self, who: str, what: str, error: str = "") -> None:
        """Add a moment, with its error if any; a text of several lines becomes one line."""
        self.moments.append(Moment(self.now_s(), who, " ".join(what.split()), error))

    # -- of faults, as their listener -------------------------------------------------------------

    def begun(self, action: Action) -> None:
        """Note that a fault begins."""
        self.note(FAULT, action.describe())

    def ended(self, action: Action) -> None:
        """Note that a fault ends."""
        self.note(FAULT, f"end of {action.kind} {' '.join(action.on)}")

    def not_done(self, action: Action, error: Exception) -> None:
        """Note a fault that did not happen."""
        self.note(FAULT, f"{action.describe()}: not done, {error}")


def timeline_text(moments: Sequence[Moment], most: int | None = MAX_LINES, advice: str = "") -> str:
    """Return a table that begins just before the first fault or deviation; repeated lines are folded.

    Of more than `most` lines (None: no limit) those in the middle are omitted, except the first of equal errors, and
    replaced by their number and the advice how to see them.
    """
    moments = sorted(moments, key=lambda each: each.at_s)
    first = next((index for index, each in enumerate(moments) if each.who in {FAULT, ORDER}), 0)
    folded = [*_folded(moments[max(0, first - BEFORE) :])]
    width = max((len(_short(moment.who)) for moment, _ in folded), default=3)
    lines = [f"{moment.at_s:9.3f}  {_short(moment.who):<{width}}  {_what(moment)}{times}" for moment, times in folded]
    if most is not None and len(lines) > most:
        first_errors = _first_errors([moment for moment, _ in folded])
        is_shown = [
            index < most // 2 or len(lines) - index <= most - most // 2 or index in first_errors
            for index in range(len(lines))
        ]
        lines = [*_without(lines, is_shown, advice)]
    return "\n".join((f"{'time':>9}  {'who':<{width}}  what", *lines))


def _first_errors(moments: Sequence[Moment]) -> set[int]:
    """Return the index of the first moment of each error, by who and what."""
    first: dict[tuple[str, str], int] = {}
    for index, moment in enumerate(moments):
        if moment.error:
            first.setdefault((moment.who, moment.what), index)
    return {*first.values()}


def as_json(moments: Sequence[Moment]) -> list[dict[str, Any]]:
    """Return plain values, for tools."""
    return [moment._asdict() for moment in moments]


def _what(moment: Moment) -> str:
    what = f"{moment.what:.160}"
    return what if moment.error.partition(":")[0] in what else f"{what} [{moment.error:.160}]"


def _folded(moments: Sequence[Moment]) -> Iterator[tuple[Moment, str]]:
    """Yield moments without repetitions, and texts with the number of repetitions of a moment or a block."""
    index = 0
    while index < len(moments):
        size, times = _repeated(moments[index:])
        block = moments[index : index + size]
        index += size * times
        for moment in block[:-1]:
            yield moment, ""
        lines = "" if size == 1 else f"the last {size} lines "
        yield block[-1], f"  ({lines}{times} times)" if times > 1 else ""


def _repeated(moments: Sequence[Moment]) -> tuple[int, int]:
    """Return the size of the repeated block at the beginning and its number of repetitions; (1, 1) without one."""
    keys = [moment[1:] for moment in moments[: 2 * LONGEST_BLOCK]]
    for size in range(1, LONGEST_BLOCK + 1):
        if len(keys) < 2 * size or keys[:size] != keys[size : 2 * size]:
            continue
        times = 2
        while [each[1:] for each in moments[times * size : (times + 1) * size]] == keys[:size]:
            times += 1
        return size, times
    return 1, 1


def _without(lines: Sequence[str], is_shown: Sequence[bool], advice: str) -> Iterator[str]:
    """Yield the shown lines, and the number of omitted lines in their place."""
    for shown, group in groupby(zip(lines, is_shown, strict=True), key=lambda each: each[1]):
        group_lines = [line for line, _ in group]
        if shown:
            yield from group_lines
        else:
            plural = "s" if len(group_lines) > 1 else ""
            yield f"           ... {len(group_lines)} more line{plural}{advice and ': ' + advice} ..."


def _short(name: str) -> str:
    if len(name) <= WIDEST_NAME:
        return name
    half = (WIDEST_NAME - 3) // 2
    return f"{name[:half]}...{name[half - WIDEST_NAME + 3 :]}"
