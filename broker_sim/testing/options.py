"""What a test in virtual time may say about its runs: the arguments of the marker `virtual_time`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self, get_args

from broker_sim.config import BrokerConfig
from broker_sim.errors import ConfigError
from broker_sim.protocol.release import find_release
from broker_sim.runtime.virtual.loop import DAY_S, Order

if TYPE_CHECKING:
    from broker_sim.config import GivenValue

__all__ = ["BadOptionError", "VirtualTimeOptions"]


class BadOptionError(ValueError):
    """An argument of the marker is wrong; the text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualTimeOptions:
    """The checked arguments of one marker. Raises BadOptionError."""

    seeds: int = 1
    """The test runs with the seeds 0 to `seeds` - 1."""
    order: Order = "fifo"
    latency_ms: float | tuple[float, float] = 0
    """How long a message takes one way: fixed, or drawn from (lowest, highest)."""
    limit_s: float | None = DAY_S
    trace_steps: bool = False
    brokers: int = 3
    configs: Mapping[str, GivenValue] | None = None
    broker_configs: Mapping[int, Mapping[str, GivenValue]] | None = None
    as_version: str | None = None
    check_invariants: bool = True

    @classmethod
    def from_marker(cls, args: tuple[object, ...], kwargs: Mapping[str, Any]) -> Self:
        """Return the options of a marker with these arguments. Raises BadOptionError."""
        if args:
            raise BadOptionError(f"it takes keyword arguments only, not {args[0]!r}")
        allowed = [field.name for field in fields(cls)]
        for name in kwargs:
            if name not in allowed:
                raise BadOptionError(f"there is no argument {name!r}, only {', '.join(allowed)}")
        return cls(**kwargs)

    def __post_init__(self) -> None:
        for name in ("seeds", "brokers"):
            value = getattr(self, name)
            if not _is_whole(value) or value < 1:
                raise BadOptionError(f"{name}={value!r}: give a whole number of at least 1")
        if self.order not in get_args(Order):
            raise BadOptionError(f"order={self.order!r}: choose 'fifo' or 'seeded'")
        if not _is_latency(self.latency_ms):
            raise BadOptionError(
                f"latency_ms={self.latency_ms!r}: give milliseconds or (lowest, highest)"
            )
        if self.limit_s is not None and not (_is_number(self.limit_s) and self.limit_s > 0):
            raise BadOptionError(f"limit_s={self.limit_s!r}: give seconds of virtual time, or None")
        self._check_configs()

    def _check_configs(self) -> None:
        if not isinstance(self.broker_configs or {}, Mapping):
            raise BadOptionError(f"broker_configs={self.broker_configs!r}: give them by broker id")
        given: dict[str, Any] = {"configs": self.configs or {}}
        for broker_id, configs in (self.broker_configs or {}).items():
            if broker_id not in range(1, self.brokers + 1):
                raise BadOptionError(f"broker_configs: no broker {broker_id!r} of {self.brokers}")
            given[f"broker_configs[{broker_id}]"] = configs
        for name, configs in given.items():
            if not isinstance(configs, Mapping):
                raise BadOptionError(f"{name}={configs!r}: give configurations by name")
        try:
            for configs in given.values():
                BrokerConfig.from_mapping(configs)
            if self.as_version is not None:
                find_release(self.as_version)
        except ConfigError as error:
            raise BadOptionError(str(error)) from error

    def range_ms(self) -> tuple[float, float]:
        """Return the lowest and the highest latency."""
        if isinstance(self.latency_ms, tuple):
            return self.latency_ms
        return self.latency_ms, self.latency_ms


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_latency(value: object) -> bool:
    """Whether it is a number that is not negative, or two in order."""
    if isinstance(value, tuple):
        return len(value) == 2 and all(map(_is_number, value)) and 0 <= value[0] <= value[1]
    return _is_number(value) and value >= 0  # type: ignore[operator]
