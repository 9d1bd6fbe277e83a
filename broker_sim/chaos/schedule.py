"""What is done to a cluster and to the workers beside it, and when: as data, and as text.

    seed=7 brokers=3 workers=2 latency_ms=5 duration_ms=20000
    3200 crash worker-1 for=3000
    8100 error broker-2 for=1000 value=Produce/NOT_LEADER_OR_FOLLOWER

The first line says what the run is made of; each line below it is one action: when it begins, its
kind, on whom, for how long, and with what. `str` writes it, `Schedule.parse` reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple, Self

__all__ = ["DEFAULT_DURATION_MS", "Action", "Schedule", "ScheduleError"]

DEFAULT_DURATION_MS: Final = 20_000
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

    def __str__(self) -> str:
        head = " ".join(f"{name}={getattr(self, name)}" for name in _numbers())
        return "\n".join((head, *map(str, self.actions)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the schedule of a text; empty lines and what follows a # are left out.

        Raises ScheduleError.
        """
        lines = [line for each in text.splitlines() if (line := each.partition("#")[0].strip())]
        if not lines:
            raise ScheduleError("an empty schedule: its first line is seed=N brokers=N workers=N")
        numbers = dict(word.partition("=")[::2] for word in lines[0].split())
        wrong = [name for name in numbers if name not in _numbers()]
        if wrong or "seed" not in numbers or not all(map(str.isdecimal, numbers.values())):
            wanted = ", ".join(_numbers())
            raise ScheduleError(f"{lines[0]!r}: give numbers for seed and the rest of {wanted}")
        given: dict[str, Any] = {name: int(value) for name, value in numbers.items()}
        return cls(**given, actions=tuple(sorted(map(Action.parse, lines[1:]))))


def _numbers() -> list[str]:
    return [field.name for field in fields(Schedule) if field.name != "actions"]
