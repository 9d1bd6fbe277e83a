"""A schedule: the timed faults of a cluster and its users, as data and as text.

    seed=7 brokers=3 latency_ms=5 duration_ms=20000
    8100 error broker-2 for=1000 value=Produce/NOT_LEADER_OR_FOLLOWER

The first line has the parameters of the run; each further line is one action. `str` writes it, `FaultSchedule.parse`
reads it. Subclasses add the users of the cluster, as fields of the first line.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from broker_sim.chaos.faults.action import Action, ScheduleError, broker_names, is_broker
from broker_sim.errors import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from dataclasses import Field

    from broker_sim.runtime.virtual.task_order import Deviation

_YES_OR_NO: Final = ("no", "yes")


@dataclass(frozen=True, slots=True)
class FaultSchedule:
    """One run: its cluster, and the actions in the order of their time.

    Raises ScheduleError for an action on a broker that does not exist.
    """

    HEAD: ClassVar[tuple[str, ...]] = ("seed", "brokers", "latency_ms", "duration_ms")
    """The fields that are always written, in this order; others are written only if they differ from the default."""
    LINES: ClassVar[tuple[str, ...]] = ("actions",)
    """The fields with one line per item."""
    CHOICES: ClassVar[Mapping[str, Sequence[str]]] = MappingProxyType({})
    """The allowed values of fields that contain words."""

    seed: int
    brokers: int = 3
    latency_ms: int = 0
    """Maximum one-way latency of a message in ms."""
    duration_ms: int = 20_000
    """Duration in ms in which faults happen."""
    actions: tuple[Action, ...] = ()

    def __post_init__(self) -> None:
        names = broker_names(self.brokers)
        for action in self.actions:
            for name in filter(is_broker, action.on):
                if name not in names:
                    raise ScheduleError(f"{action}: unknown broker {name!r}; brokers: {', '.join(names)}")

    def __str__(self) -> str:
        words = [f"{name}={_written(getattr(self, name))}" for name in self.HEAD]
        for name, field in self._head_fields().items():
            value = getattr(self, name)
            if name not in self.HEAD and value != field.default:
                words.append(f"{name}={_written(value)}")
        lines = [str(item) for name in self.LINES for item in getattr(self, name)]
        return "\n".join((" ".join(words), *lines))

    def as_taken(self, deviations: Sequence[Deviation]) -> Self:
        """Return the schedule with the deviations of its run; this kind of schedule has none."""
        del deviations
        return self

    def in_order_of(self, deviations: Sequence[Deviation]) -> Self:
        """Return the schedule with the random order of its run made explicit; this kind has no random order."""
        del deviations
        return self

    def without_order(self) -> Self:
        """Return the schedule in first in, first out order, as all of this kind are."""
        return self

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the schedule of a text, ignoring empty lines and comments after #.

        Raises ScheduleError.
        """
        lines = [line for each in text.splitlines() if (line := each.partition("#")[0].strip())]
        if not lines:
            raise ScheduleError("the schedule is empty; its first line must be seed=N brokers=N ...")
        texts = dict(word.partition("=")[::2] for word in lines[0].split())
        head = cls._head_fields()
        unknown = next((name for name in texts if name not in head), None)
        if unknown is not None:
            hint = did_you_mean(unknown, head)
            raise ScheduleError(f"{lines[0]!r}: unknown option {unknown!r}{hint}; allowed: {', '.join(head)}")
        if "seed" not in texts:
            raise ScheduleError(f"{lines[0]!r}: seed=N is required")
        values = {name: cls._read(head[name], text, lines[0]) for name, text in texts.items()}
        return cls(**values, **cls._read_lines(lines[1:]))

    @classmethod
    def _head_fields(cls) -> dict[str, Field[Any]]:
        return {field.name: field for field in fields(cls) if field.name not in cls.LINES}

    @classmethod
    def _read(cls, field: Field[Any], text: str, line: str) -> Any:
        name, usual = field.name, field.default
        choices = _YES_OR_NO if isinstance(usual, bool) else cls.CHOICES.get(name)
        words = [word for word in text.split(",") if word]
        if choices is not None:
            if not set(words) <= set(choices):
                raise ScheduleError(f"{line!r}: {name} must be one of {', '.join(choices)}")
        elif not all(map(str.isdecimal, words)):
            raise ScheduleError(f"{line!r}: {name} takes whole numbers")
        values = words if choices is not None else [int(word) for word in words]
        if isinstance(usual, tuple):
            return tuple(values)
        if len(values) != 1:
            raise ScheduleError(f"{line!r}: {name} takes exactly one whole number")
        return values[0] == "yes" if isinstance(usual, bool) else values[0]

    @classmethod
    def _read_lines(cls, lines: Sequence[str]) -> dict[str, Any]:
        """Return the fields of `LINES`. Raises ScheduleError."""
        return {"actions": tuple(sorted(map(Action.parse, lines)))}


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return _YES_OR_NO[value] if isinstance(value, bool) else str(value)
