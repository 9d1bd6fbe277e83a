"""The checked arguments of the markers `kafka` and `virtual_time`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, TypeVar, get_args

import pytest

from broker_sim.cluster.arguments import ClusterOptions, broker_ids, check_configs, check_count
from broker_sim.config import to_texts
from broker_sim.errors import ApiError, ConfigError
from broker_sim.protocol.release import find_release
from broker_sim.runtime.virtual.loop import DAY_S, Order
from broker_sim.runtime.virtual.task_order import Deviation
from broker_sim.testing import CHAOS_MARKER, VIRTUAL_MARKER

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.config import GivenValue

T = TypeVar("T")
Options = TypeVar("Options", bound="ClusterOptions")

FOR_TESTS: Final[Mapping[str, GivenValue]] = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
}
"""Configurations for tests: new groups do not wait 3 s for more members, and Kafka's own topics are small."""
SHARE_GROUPS_FOR_TESTS: Final[Mapping[str, GivenValue]] = {
    "group.share.min.heartbeat.interval.ms": 200,
    "group.share.heartbeat.interval.ms": 200,
    "group.share.min.assignment.interval.ms": 0,
    "group.share.assignment.interval.ms": 0,
}
"""Configurations for quick share groups: members get their assignment with a heartbeat, in Kafka after 5 s.

They are valid only together, so a test that sets one of them gets none of these.
"""


def configs_for_tests(options: ClusterOptions) -> dict[str, str]:
    """Return the configurations of a cluster in real time, as Kafka writes them."""
    own = options.configs or {}
    is_quick = own.keys().isdisjoint(SHARE_GROUPS_FOR_TESTS)
    share_groups = SHARE_GROUPS_FOR_TESTS if is_quick else {}
    return to_texts({**FOR_TESTS, **share_groups, **own})


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualTimeOptions(ClusterOptions):
    """The checked arguments of one marker `virtual_time`. Raises ConfigError."""

    seeds: int = 1
    """The test runs with the seeds 0 to `seeds` - 1."""
    order: Order = "fifo"
    deviations: str | None = None
    """Points at which tasks do not run first in, first out, as lines from a report."""
    latency_ms: float | tuple[float, float] = 0
    """One-way latency of a message in ms: fixed, or drawn from (lowest, highest)."""
    limit_s: float | None = DAY_S
    trace_steps: bool = False
    broker_configs: Mapping[int, Mapping[str, GivenValue]] | None = None
    as_version: str | None = None
    check_invariants: bool = True

    def check(self) -> None:
        """Raise ConfigError if no run can have these options."""
        ClusterOptions.check(self)  # `super()` does not work: a dataclass with slots is a new class
        check_count("seeds", self.seeds)
        if self.order not in get_args(Order):
            raise ConfigError(f"order={self.order!r}: choose 'fifo' or 'seeded'")
        try:
            self.given_deviations()
        except (AttributeError, ValueError) as error:
            raise ConfigError(f"deviations: {error}") from error
        if not _is_latency(self.latency_ms):
            raise ConfigError(f"latency_ms={self.latency_ms!r}: pass milliseconds or (lowest, highest)")
        if self.limit_s is not None and not (_is_number(self.limit_s) and self.limit_s > 0):
            raise ConfigError(f"limit_s={self.limit_s!r}: pass seconds of virtual time, or None")
        if not isinstance(self.broker_configs or {}, Mapping):
            raise ConfigError(f"broker_configs={self.broker_configs!r}: pass a mapping by broker id")
        for broker_id, configs in (self.broker_configs or {}).items():
            if broker_id not in broker_ids(self.brokers, self.first_broker_id):
                raise ConfigError(
                    f"broker_configs: unknown broker {broker_id!r}; the cluster has {self.brokers} brokers"
                )
            check_configs(f"broker_configs[{broker_id}]", configs)
        if self.as_version is not None:
            find_release(self.as_version)

    def given_deviations(self) -> list[Deviation] | None:
        """Return the parsed deviations, None without any. Raises ValueError."""
        if self.deviations is None:
            return None
        return [Deviation.parse(line) for line in self.deviations.strip().splitlines()]

    def range_ms(self) -> tuple[float, float]:
        """Return the lowest and the highest latency."""
        if isinstance(self.latency_ms, tuple):
            return self.latency_ms
        return self.latency_ms, self.latency_ms


def options_of(item: pytest.Item, marker: str, kind: type[Options]) -> Options:
    """Return the options of the closest marker of that name, the defaults without one.

    Fails the test with one line if the marker is invalid.
    """
    mark = item.get_closest_marker(marker)
    if mark is None:
        return kind()
    return as_marked(item, marker, lambda: kind.from_marker(mark.args, mark.kwargs))


def as_marked(item: pytest.Item, marker: str, make: Callable[[], T]) -> T:
    """Return `make()`, such as the cluster of a marker.

    Fails the test with one line that names the marker if that raises ApiError or ConfigError.
    """
    try:
        return make()
    except (ApiError, ConfigError) as error:
        message = str(error)
        # Outside of `except`, so that the report is this line without the error's traceback.
    pytest.fail(f"{item.name}: @pytest.mark.{marker}: {message}", pytrace=False)


def signatures() -> dict[str, str]:
    """Return each marker with its arguments and defaults, as `pytest --markers` shows them."""
    from broker_sim.chaos.settings import Settings  # noqa: PLC0415 - only for tests under chaos

    kinds = {"kafka": ClusterOptions, VIRTUAL_MARKER: VirtualTimeOptions, CHAOS_MARKER: Settings}
    return {
        marker: f"{marker}({', '.join(f'{each.name}={each.default!r}' for each in fields(kind) if each.init)})"
        for marker, kind in kinds.items()
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_latency(value: object) -> bool:
    """Whether the value is a non-negative number, or a pair (lowest, highest) of them."""
    if isinstance(value, tuple):
        return len(value) == 2 and all(map(_is_number, value)) and 0 <= value[0] <= value[1]
    return _is_number(value) and value >= 0  # type: ignore[operator]
