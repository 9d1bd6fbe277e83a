"""The events of a run, moment by moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.chaos.faults.action import Action

FAULT = "FAULT"
ORDER = "ORDER"
WIDEST_NAME = 32
"""Longest name shown whole; of a longer one, as of clients of Kafka Streams, beginning and end are shown."""
BEFORE = 5
"""Number of moments shown before the first fault or deviation."""


class Moment(NamedTuple):
    """Something that happened, at a second of virtual or real time."""

    at_s: float
    who: str
    what: str


class Timeline:
    """The moments of a run, with the time that a clock shows."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.moments: list[Moment] = []
        self.now_s = now_s

    def note(self, who: str, what: str) -> None:
        """Add a moment; a text of several lines becomes one."""
        self.moments.append(Moment(self.now_s(), who, " ".join(what.split())))

    # -- of faults, as their listener -------------------------------------------------------------

    def begun(self, action: Action) -> None:
        """Note that a fault begins."""
        self.note(FAULT, action.describe())

    def ended(self, action: Action) -> None:
        """Note that a fault ends."""
        self.note(FAULT, f"end of {action.kind} {' '.join(action.on)}")

    def not_done(self, action: Action, error: Exception) -> None:
        """Note a fault that does not fit the state of the cluster."""
        self.note(FAULT, f"{action.describe()}: not done, {error}")


def timeline_text(moments: Sequence[Moment], most: int = 60) -> str:
    """Return a table that begins just before the first fault or deviation; repeated lines are folded.

    With more than `most` lines those in the middle are left out, with their number in their place.
    """
    moments = sorted(moments, key=lambda each: each.at_s)
    first = next((index for index, each in enumerate(moments) if each.who in {FAULT, ORDER}), 0)
    folded: list[tuple[Moment, int]] = []
    for moment in moments[max(0, first - BEFORE) :]:
        if folded and folded[-1][0][1:] == moment[1:]:
            folded[-1] = folded[-1][0], folded[-1][1] + 1
        else:
            folded.append((moment, 1))
    width = max((len(_short(moment.who)) for moment, _ in folded), default=3)
    lines = [
        f"{moment.at_s:9.3f}  {_short(moment.who):<{width}}  {moment.what:.160}"
        + (f"  ({count} times)" if count > 1 else "")
        for moment, count in folded
    ]
    if len(lines) > most:
        head, tail = lines[: most // 2], lines[-(most - most // 2) :]
        lines = [*head, f"           ... {len(lines) - most} more lines ...", *tail]
    return "\n".join((f"{'time':>9}  {'who':<{width}}  what", *lines))


def _short(name: str) -> str:
    if len(name) <= WIDEST_NAME:
        return name
    half = (WIDEST_NAME - 3) // 2
    return f"{name[:half]}...{name[half - WIDEST_NAME + 3 :]}"
