"""What tests may say about their clusters: the checked arguments of the markers of both plugins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, get_args

import pytest

from broker_sim.cluster.listeners.security_arguments import read_security
from broker_sim.cluster.topic_text import parse_topic
from broker_sim.config import BrokerConfig, to_texts
from broker_sim.errors import ConfigError
from broker_sim.protocol.release import find_release
from broker_sim.runtime.virtual.loop import DAY_S, Order
from broker_sim.runtime.virtual.task_order import Deviation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.config import GivenValue

Options = TypeVar("Options", bound="ClusterOptions")

FOR_TESTS: Final[Mapping[str, GivenValue]] = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
}
"""A new group does not wait 3 s for more members, and Kafka's own topics are small."""
SHARE_GROUPS_FOR_TESTS: Final[Mapping[str, GivenValue]] = {
    "group.share.min.heartbeat.interval.ms": 200,
    "group.share.heartbeat.interval.ms": 200,
    "group.share.min.assignment.interval.ms": 0,
    "group.share.assignment.interval.ms": 0,
}
"""A member of a share group hears of its assignment with a later heartbeat, the second of which comes after 5 s in Kafka.

They fit each other only together, so a test that sets one of them gets none of these.
"""


class BadOptionError(ValueError):
    """An argument of a marker is wrong; the text is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The arguments of the marker `kafka`, which that of virtual time takes too. Raises BadOptionError."""

    brokers: int = 3
    configs: Mapping[str, GivenValue] | None = None
    topics: Sequence[str] = ()
    """The topics that a test finds, each as NAME:PARTITIONS:RF:KEY=VALUE."""
    security: str | None = None
    users: Mapping[str, str] | None = field(default=None, repr=False)
    """Passwords by name."""

    @classmethod
    def from_marker(cls, args: tuple[object, ...], kwargs: Mapping[str, Any]) -> Self:
        """Return the options of a marker with these arguments. Raises BadOptionError."""
        if args:
            raise BadOptionError(f"it takes keyword arguments only, not {args[0]!r}")
        allowed = [each.name for each in fields(cls)]
        for name in kwargs:
            if name not in allowed:
                raise BadOptionError(f"there is no argument {name!r}, only {', '.join(allowed)}")
        return cls(**kwargs)

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise BadOptionError for what no cluster can have."""
        check_count("brokers", self.brokers)
        _check_configs("configs", self.configs or {})
        if isinstance(self.topics, str):
            raise BadOptionError(f"topics={self.topics!r}: give a list of topics")
        try:
            for topic in self.topics:
                parse_topic(topic)
        except (TypeError, ValueError) as error:
            raise BadOptionError(f"topics={self.topics!r}: {error}") from error
        try:
            read_security(self.security, self.users)
        except ConfigError as error:
            raise BadOptionError(str(error)) from error

    def configs_for_tests(self) -> dict[str, str]:
        """Return the configurations of a cluster in real time, as Kafka writes them."""
        own = self.configs or {}
        is_quick = own.keys().isdisjoint(SHARE_GROUPS_FOR_TESTS)
        share_groups = SHARE_GROUPS_FOR_TESTS if is_quick else {}
        return to_texts({**FOR_TESTS, **share_groups, **own})


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualTimeOptions(ClusterOptions):
    """The checked arguments of one marker `virtual_time`. Raises BadOptionError."""

    seeds: int = 1
    """The test runs with the seeds 0 to `seeds` - 1."""
    order: Order = "fifo"
    deviations: str | None = None
    """Where it deviates from first in, first out, as a report has printed it."""
    latency_ms: float | tuple[float, float] = 0
    """How long a message takes one way: fixed, or drawn from (lowest, highest)."""
    limit_s: float | None = DAY_S
    trace_steps: bool = False
    broker_configs: Mapping[int, Mapping[str, GivenValue]] | None = None
    as_version: str | None = None
    check_invariants: bool = True

    def check(self) -> None:
        """Raise BadOptionError for what no run can have."""
        ClusterOptions.check(self)  # a class with slots is made anew, which `super()` does not know
        check_count("seeds", self.seeds)
        if self.order not in get_args(Order):
            raise BadOptionError(f"order={self.order!r}: choose 'fifo' or 'seeded'")
        try:
            self.given_deviations()
        except (AttributeError, ValueError) as error:
            raise BadOptionError(f"deviations: {error}") from error
        if not _is_latency(self.latency_ms):
            raise BadOptionError(f"latency_ms={self.latency_ms!r}: give milliseconds or (lowest, highest)")
        if self.limit_s is not None and not (_is_number(self.limit_s) and self.limit_s > 0):
            raise BadOptionError(f"limit_s={self.limit_s!r}: give seconds of virtual time, or None")
        if not isinstance(self.broker_configs or {}, Mapping):
            raise BadOptionError(f"broker_configs={self.broker_configs!r}: give them by broker id")
        for broker_id, configs in (self.broker_configs or {}).items():
            if broker_id not in range(1, self.brokers + 1):
                raise BadOptionError(f"broker_configs: no broker {broker_id!r} of {self.brokers}")
            _check_configs(f"broker_configs[{broker_id}]", configs)
        try:
            if self.as_version is not None:
                find_release(self.as_version)
        except ConfigError as error:
            raise BadOptionError(str(error)) from error

    def given_deviations(self) -> list[Deviation] | None:
        """Return the deviations; None if none are given. Raises ValueError."""
        if self.deviations is None:
            return None
        return [Deviation.parse(line) for line in self.deviations.strip().splitlines()]

    def range_ms(self) -> tuple[float, float]:
        """Return the lowest and the highest latency."""
        if isinstance(self.latency_ms, tuple):
            return self.latency_ms
        return self.latency_ms, self.latency_ms


def options_of(item: pytest.Item, marker: str, kind: type[Options]) -> Options:
    """Return what the closest marker of that name says, the defaults if there is none.

    What is wrong with it is the error of the test, in one line.
    """
    found = item.get_closest_marker(marker)
    if found is None:
        return kind()
    try:
        return kind.from_marker(found.args, found.kwargs)
    except BadOptionError as error:
        wrong = str(error)
    # Out here the report is this line, and not the error's own too.
    pytest.fail(f"{item.name}: @pytest.mark.{marker}: {wrong}", pytrace=False)


def check_count(name: str, value: object) -> None:
    """Raise BadOptionError unless the value is a whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadOptionError(f"{name}={value!r}: give a whole number of at least 1")


def _check_configs(name: str, configs: object) -> None:
    if not isinstance(configs, Mapping):
        raise BadOptionError(f"{name}={configs!r}: give configurations by name")
    try:
        BrokerConfig.from_mapping(configs)
    except ConfigError as error:
        raise BadOptionError(str(error)) from error


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_latency(value: object) -> bool:
    """Whether it is a number that is not negative, or two in order."""
    if isinstance(value, tuple):
        return len(value) == 2 and all(map(_is_number, value)) and 0 <= value[0] <= value[1]
    return _is_number(value) and value >= 0  # type: ignore[operator]
