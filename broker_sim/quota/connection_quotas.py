"""Limits on a broker's open connections and connection rates; mirrors `ConnectionQuotas`.

    max.connections                broker: all listeners but the inter-broker one stop accepting
    max.connections                listener: this listener stops accepting
    max.connection.creation.rate   broker or listener: as above, until the rate has fallen
    connection_creation_rate       IP: the connection is accepted, left idle for its throttle time, and closed
    max.connections.per.ip         IP: the connection is closed at once

While a listener does not accept, new connections wait in its backlog. The broker's values are also the
defaults of its listeners. A wait for a rate lasts one sample (`quota.window.size.seconds`) at most. All
limits may change while the broker runs.

The inter-broker listener is protected if there are others: its connections count, but do not wait for the
broker's limits. If they exceed `max.connections`, connections of other listeners are closed (`closing`).

Deliberate difference: host names in `max.connections.per.ip.overrides` are not resolved, except `localhost`.
"""

from __future__ import annotations

from collections import Counter
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from broker_sim.config import CONNECTION_LIMITS, listener_values, parse_overrides
from broker_sim.metadata.quota_entity import IP
from broker_sim.quota.rate import MS_PER_SECOND, Rate, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig
    from broker_sim.metadata.quota_entity import QuotaEntity

_QUOTA: Final = "connection_creation_rate"


class _Listener:
    """The open connections, connection rate and limits of one listener."""

    __slots__ = ("count", "max_connections", "max_rate", "rate")

    def __init__(self, window: Window) -> None:
        self.count = 0
        self.rate = Rate(window)
        self.max_connections = 0
        self.max_rate = 0


class ConnectionQuotas:
    """The connection limits of one broker, its listeners and IP addresses."""

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        self._sample_ms = config.quota_window_size_seconds * MS_PER_SECOND
        self._window = Window(config.quota_window_num, self._sample_ms)
        self._clock = clock
        self._static = config
        self._dynamic: Mapping[str, str] = {}
        self._config = config
        self._overrides: dict[str, int] = {}
        self._rate = Rate(self._window)
        self._count = 0
        self._counts: Counter[str] = Counter()
        """Number of open connections by address."""
        self._inter_broker = ""
        self._listeners: dict[str, _Listener] = {}
        self._ip_bounds: dict[str | None, float] = {}
        self._ip_rates: dict[str, Rate] = {}
        self.on_change: Callable[[], object] = lambda: None
        """Called when limits may have changed."""
        self._apply_configs()

    def listen(self, listeners: Iterable[str], inter_broker: str = "") -> None:
        """Set the names of all listeners and of the inter-broker one."""
        self._inter_broker = inter_broker
        self._listeners = {name: _Listener(self._window) for name in listeners}
        self._apply_configs()

    def reconfigure(self, dynamic: Mapping[str, str]) -> None:
        """Apply the broker's dynamic configurations."""
        self._dynamic = dynamic
        self._apply_configs()
        self.on_change()

    def _apply_configs(self) -> None:
        config = self._config = self._static.with_dynamic(self._dynamic)
        overrides = parse_overrides(config.max_connections_per_ip_overrides)
        self._overrides = {_address(host): limit for host, limit in overrides.items()}
        texts = {**self._static.originals, **self._dynamic}
        for name, listener in self._listeners.items():
            values = listener_values(texts, name)
            own = config.with_dynamic({limit: values[limit] for limit in CONNECTION_LIMITS & values.keys()})
            listener.max_connections = own.max_connections
            listener.max_rate = own.max_connection_creation_rate

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Replace the quotas of IP addresses."""
        self._ip_bounds = {dict(entity)[IP]: values[_QUOTA] for entity, values in quotas.items() if _QUOTA in values}

    # -- a new connection -----------------------------------------------------------------------

    def accept(self, listener: str) -> int:
        """Record a new connection; return for how many ms its listener must stop accepting."""
        counters = self._listeners[listener]
        throttle_time_ms = self._record(counters.rate, counters.max_rate)
        if self.is_protected(listener):
            return throttle_time_ms
        bound = self._config.max_connection_creation_rate
        return max(throttle_time_ms, self._record(self._rate, bound))

    def has_slot(self, listener: str) -> bool:
        """Whether the listener may accept one more connection."""
        counters = self._listeners[listener]
        return counters.count < counters.max_connections and (
            self.is_protected(listener) or self._count < self._config.max_connections
        )

    def accept_from(self, listener: str, ip: str) -> int:
        """Record a new connection of an address; return its throttle time in ms, after which it is closed, or 0.

        A throttled connection does not count in the rates of its address, listener and broker.
        """
        bound = self._ip_bounds.get(ip, self._ip_bounds.get(None))
        if bound is None:
            return 0
        rate = self._ip_rates.setdefault(ip, Rate(self._window))
        throttle_time_ms = self._record(rate, bound)
        if throttle_time_ms:
            now_ms = self._clock.now_ms()
            rate.record(-1, now_ms)
            self._listeners[listener].rate.record(-1, now_ms)
            if not self.is_protected(listener):
                self._rate.record(-1, now_ms)
        return throttle_time_ms

    def _record(self, rate: Rate, bound: float) -> int:
        now_ms = self._clock.now_ms()
        rate.record(1, now_ms)
        return min(rate.throttle_time_ms(bound, now_ms), self._sample_ms)

    # -- open connections -----------------------------------------------------------------------

    def limit_reached(self, ip: str) -> int | None:
        """Return the address's connection limit if it is reached, otherwise None."""
        limit = self._overrides.get(ip, self._config.max_connections_per_ip)
        return limit if self._counts[ip] >= limit else None

    def inc(self, listener: str, ip: str) -> None:
        """Count an open connection."""
        self._count += 1
        self._counts[ip] += 1
        self._listeners[listener].count += 1

    def dec(self, listener: str, ip: str) -> None:
        """Count a closed connection."""
        self._count -= 1
        self._listeners[listener].count -= 1
        self._counts[ip] -= 1
        if not self._counts[ip]:
            del self._counts[ip]

    @property
    def closing(self) -> int:
        """Number of connections above `max.connections`, which must be closed on unprotected listeners."""
        return max(0, self._count - self._config.max_connections)

    def is_protected(self, listener: str) -> bool:
        """Whether the listener is exempt from the broker's limit."""
        return listener == self._inter_broker and len(self._listeners) > 1


def _address(host: str) -> str:
    """Return the address in the form in which connections report it."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        return str(ip_address(host))
    except ValueError:
        return host
