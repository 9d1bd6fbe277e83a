"""What is done to a cluster and to the workers beside it, and when: as data, and as text.

    seed=7 brokers=3 workers=2 latency_ms=5 duration_ms=20000
    3200 crash worker-1 for=3000
    8100 error broker-2 for=1000 value=Produce/NOT_LEADER_OR_FOLLOWER
    4100.5 order 3 1

The first line says what the run is made of; each line below it is one action: when it begins, its
kind, on whom, for how long, and with what. A line `order` says where the run deviates from first in,
first out: at that time, counted from the start of the run, after 3 callbacks, the next one is not the
oldest but the one behind it. A third number says that so many of its process run then.
A line `arrival` says the same of messages between brokers. `str` writes a schedule, `Schedule.parse` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self, get_args

from broker_sim.runtime.virtual.loop import Order
from broker_sim.runtime.virtual.task_order import ARRIVAL, ORDER, Deviation

__all__ = ["DEFAULT_DURATION_MS", "Action", "Schedule", "ScheduleError"]

DEFAULT_DURATION_MS: Final = 20_000
_NUMBERS: Final = ("seed", "brokers", "workers", "latency_ms", "duration_ms")
_FOR: Final = "for="
_VALUE: Final = "value="


class ScheduleError(ValueError):
    """A schedule or an action cannot be read; the text is one line."""


class Action(NamedTuple):
    """Something that is done at `at_ms`, and undone `for_ms` later if it lasts.

    `on` names who it concerns: `worker-1`, `broker-2`, `controller`. For kinds and values see
    `broker_sim.chaos.kinds`.
    """

    at_ms: int
    kind: str
    on: tuple[str, ...] = ()
    for_ms: int = 0
    value: str = ""

    def __str__(self) -> str:
        words = [str(self.at_ms), self.kind, *self.on]
        if self.for_ms:
            words.append(f"{_FOR}{self.for_ms}")
        if self.value:
            words.append(f"{_VALUE}{self.value}")
        return " ".join(words)

    @classmethod
    def parse(cls, line: str) -> Self:
        """Return the action of a line. Raises ScheduleError."""
        at, *words = line.split()
        on = [word for word in words[1:] if "=" not in word]
        given = {"for": "0", "value": ""}
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if equals and name not in given:
                raise ScheduleError(f"{line!r}: there is {_FOR} and {_VALUE}, but no {name!r}")
            if equals:
                given[name] = value
        if not words or not at.isdecimal() or not given["for"].isdecimal():
            raise ScheduleError(
                f"{line!r}: write an action as '3200 crash worker-1 for=3000', in ms"
            )
        return cls(int(at), words[0], tuple(on), int(given["for"]), given["value"])

    def describe(self) -> str:
        """Return what it does, for a time line."""
        value = f" {self.value}" if self.value else ""
        lasts = f" for {self.for_ms / 1000:g} s" if self.for_ms else ""
        return f"{self.kind}{value} {' '.join(self.on)}{lasts}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """One run: its cluster and its workers, and the actions in the order of their time."""

    seed: int
    brokers: int = 3
    workers: int = 2
    latency_ms: int = 0
    """How long a message takes at most, one way."""
    duration_ms: int = DEFAULT_DURATION_MS
    """In this time faults happen, from the call of `faults_over`."""
    actions: tuple[Action, ...] = ()
    order: Order = "fifo"
    """With "seeded" chance chooses among the tasks that are ready."""
    deviations: tuple[Deviation, ...] = ()
    """Where a run that is not seeded runs another callback than the oldest."""

    def __str__(self) -> str:
        head = " ".join(f"{name}={getattr(self, name)}" for name in _NUMBERS)
        if self.order != "fifo":
            head += f" {ORDER}={self.order}"
        return "\n".join((head, *map(str, self.actions), *map(str, self.deviations)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the schedule of a text; empty lines and what follows a # are left out.

        Raises ScheduleError.
        """
        lines = [line for each in text.splitlines() if (line := each.partition("#")[0].strip())]
        if not lines:
            raise ScheduleError("an empty schedule: its first line is seed=N brokers=N workers=N")
        given: dict[str, Any] = dict(word.partition("=")[::2] for word in lines[0].split())
        order = given.pop(ORDER, "fifo")
        wrong = [name for name in given if name not in _NUMBERS]
        if wrong or "seed" not in given or not all(map(str.isdecimal, given.values())):
            wanted = ", ".join(_NUMBERS)
            raise ScheduleError(f"{lines[0]!r}: give numbers for seed and the rest of {wanted}")
        if order not in get_args(Order):
            raise ScheduleError(f"{lines[0]!r}: order is one of {', '.join(get_args(Order))}")
        actions, deviations = [], []
        for line in lines[1:]:
            if line.split()[1:2] in ([ORDER], [ARRIVAL]):
                deviations.append(_parse_deviation(line))
            else:
                actions.append(Action.parse(line))
        return cls(
            **{name: int(value) for name, value in given.items()},
            actions=tuple(sorted(actions)),
            order=order,
            deviations=tuple(sorted(deviations)),
        )


def _parse_deviation(line: str) -> Deviation:
    try:
        return Deviation.parse(line)
    except ValueError as error:
        raise ScheduleError(str(error)) from None
