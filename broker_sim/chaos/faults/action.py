"""An action of a schedule: a fault of a cluster or of a program that uses it, as data and as text.

    3200 crash worker-1 for=3000
    8100 error broker-2 for=1000 value=Produce/NOT_LEADER_OR_FOLLOWER
    9000 kill leader for=500

The words are the time in ms, the kind, the targets, the duration in ms, and the value.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

BROKERS: Final = "brokers"
"""All brokers, as the far end of a cut, or for requests to any broker."""
WORKERS: Final = "workers"
"""All workers."""
CONTROLLER: Final = "controller"
"""The controller as an end of a link."""
LEADER: Final = "leader"
"""The leader of partition 0 of the first topic when the action is due."""
FOLLOWER: Final = "follower"
"""The first other replica of that partition."""
THIRD: Final = "third"
"""The second other replica of that partition."""
GROUPS: Final = "groups"
"""The coordinator of the groups."""
TRANSACTIONS: Final = "transactions"
"""The coordinator of the transactions."""

_FOR: Final = "for="
_VALUE: Final = "value="


class ScheduleError(ValueError):
    """A schedule or an action is invalid; the text is one line."""


class Action(NamedTuple):
    """A fault that begins at `at_ms`, and ends `for_ms` later if it lasts.

    `on` has the targets: `worker-1`, `broker-2`, or a role that a broker has at that moment, such as `leader`. For
    kinds and values see `broker_sim.chaos.faults.kinds`.
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
        options = {"for": "0", "value": ""}
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if equals and name not in options:
                raise ScheduleError(f"{line!r}: unknown option {name!r}; allowed: {_FOR}, {_VALUE}")
            if equals:
                options[name] = value
        if not words or not at.isdecimal() or not options["for"].isdecimal():
            raise ScheduleError(f"{line!r}: an action has the form '3200 crash worker-1 for=3000', in ms")
        return cls(int(at), words[0], tuple(on), int(options["for"]), options["value"])

    def describe(self) -> str:
        """Return the action in words, for a time line."""
        value = f" {self.value}" if self.value else ""
        lasts = f" for {self.for_ms / 1000:g} s" if self.for_ms else ""
        return f"{self.kind}{value} {' '.join(self.on)}{lasts}"


def broker_name(broker_id: int) -> str:
    """Return the name of a broker in actions."""
    return f"broker-{broker_id}"


def is_broker(name: str) -> bool:
    """Whether the name is a broker's, such as `broker-2`."""
    stem, _, number = name.partition("-")
    return stem == "broker" and number.isdecimal()


def broker_names(count: int) -> list[str]:
    """Return the names of all brokers of a cluster of `count` brokers."""
    return [broker_name(number) for number in range(1, count + 1)]
