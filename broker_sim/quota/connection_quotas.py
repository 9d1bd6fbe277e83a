"""How many connections are made in a second; mirrors the rates of `ConnectionQuotas`.

    max.connection.creation.rate   the listener stands still: this connection and those behind it wait
    connection_creation_rate of ip    the connection is taken, nothing passes on it, and it is closed

Both for as long as the rate needs to come down, at most one sample (`quota.window.size.seconds`). The
rates of single listeners (`listener.name.*.max.connection.creation.rate`) are not served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.config.definition import MAX_INT
from broker_sim.metadata.quota_entity import IP
from broker_sim.quota.rate import MS_PER_SECOND, Rate, Window

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata.quota_entity import QuotaEntity
    from purgatory import Clock

__all__ = ["ConnectionQuotas"]

_QUOTA: Final = "connection_creation_rate"


class ConnectionQuotas:
    """The rates of one broker and of each address that has a quota."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._sample_ms = config.quota_window_size_seconds * MS_PER_SECOND
        self._window = Window(config.quota_window_num, self._sample_ms)
        self._clock = clock
        self._broker_bound = config.max_connection_creation_rate
        self._broker_rate = Rate(self._window)
        self._bounds: dict[str | None, float] = {}
        self._ip_rates: dict[str, Rate] = {}

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Let these quotas hold from now on."""
        self._bounds = {
            dict(entity)[IP]: values[_QUOTA]
            for entity, values in quotas.items()
            if _QUOTA in values
        }

    def accept(self) -> int:
        """Count a connection; return for how many milliseconds the listener stands still."""
        if self._broker_bound == MAX_INT:
            return 0
        return self._record(self._broker_rate, self._broker_bound)

    def accept_from(self, ip: str) -> int:
        """Count a connection of that address; return after how many milliseconds it is closed.

        One that is refused does not count, neither for its address nor for the broker.
        """
        bound = self._bounds.get(ip, self._bounds.get(None))
        if bound is None:
            return 0
        rate = self._ip_rates.setdefault(ip, Rate(self._window))
        throttle_time_ms = self._record(rate, bound)
        if throttle_time_ms:
            now_ms = self._clock.now_ms()
            rate.record(-1, now_ms)
            if self._broker_bound < MAX_INT:
                self._broker_rate.record(-1, now_ms)
        return throttle_time_ms

    def _record(self, rate: Rate, bound: float) -> int:
        now_ms = self._clock.now_ms()
        rate.record(1, now_ms)
        return min(rate.throttle_time_ms(bound, now_ms), self._sample_ms)
