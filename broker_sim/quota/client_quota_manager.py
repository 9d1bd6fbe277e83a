"""The measured rates of all clients for one kind of quota; mirrors `ClientQuotaManager`.

As in Kafka, a value is recorded first and then compared with the bound; the client is throttled for as
long as its rate needs to fall to the bound. Sensors of clients idle for an hour are removed. Nothing is
recorded while no quota of the kind is set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from broker_sim.quota.quota_limits import QuotaLimits
from broker_sim.quota.rate import Rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker_sim_purgatory import Clock

    from broker_sim.metadata.quota_entity import QuotaEntity
    from broker_sim.quota.quota_limits import Tags
    from broker_sim.quota.rate import Window

INACTIVE_MS: Final = 3_600_000
UNLIMITED: Final = float(2**63 - 1)

Stat = TypeVar("Stat")


class Client(NamedTuple):
    """A client, as quotas identify it: the name of its principal, and its client id or an empty string."""

    user: str
    client_id: str


class Sensor(Generic[Stat]):
    """The measured value of one client, and the bound of its quota."""

    __slots__ = ("bound", "last_used_ms", "stat")

    def __init__(self, stat: Stat, bound: float) -> None:
        self.stat = stat
        self.bound = bound
        self.last_used_ms = 0


class Sensors(Generic[Stat]):
    """The sensors of all recently active clients."""

    def __init__(self, make: Callable[[], Stat], clock: Clock) -> None:
        self._make = make
        self._clock = clock
        self._sensors: dict[Tags, Sensor[Stat]] = {}
        self.limits = QuotaLimits(())

    def __len__(self) -> int:
        return len(self._sensors)

    def update(self, quotas: Iterable[tuple[QuotaEntity, float]]) -> None:
        """Replace the quotas; measured values are kept."""
        self.limits = QuotaLimits(quotas)
        for tags, sensor in self._sensors.items():
            sensor.bound = self._bound(tags)

    def _bound(self, tags: Tags) -> float:
        limit = self.limits.limit(tags)
        return UNLIMITED if limit is None else limit

    def find(self, client: Client) -> Sensor[Stat]:
        """Return the client's sensor; create it if there is none."""
        tags = self.limits.tags(*client)
        now_ms = self._clock.now_ms()
        sensor = self._sensors.get(tags)
        if sensor is None:
            self._remove_inactive(now_ms)
            sensor = self._sensors[tags] = Sensor(self._make(), self._bound(tags))
        sensor.last_used_ms = now_ms
        return sensor

    def _remove_inactive(self, now_ms: int) -> None:
        sensors = self._sensors.items()
        inactive = [tags for tags, sensor in sensors if now_ms - sensor.last_used_ms >= INACTIVE_MS]
        for tags in inactive:
            del self._sensors[tags]


class ClientQuotaManager:
    """Measures produced bytes, fetched bytes or request time of each client, and throttles clients."""

    def __init__(self, window: Window, clock: Clock, *, max_throttle_time_ms: int | None = None) -> None:
        self._window = window
        self._clock = clock
        self._max_throttle_time_ms = max_throttle_time_ms
        self._sensors = Sensors(lambda: Rate(window), clock)
        self.is_enabled = False
        """Whether any quota of this kind is set."""

    def update(self, quotas: Iterable[tuple[QuotaEntity, float]]) -> None:
        """Replace the quotas."""
        self._sensors.update(quotas)
        self.is_enabled = bool(self._sensors.limits)

    def record_and_get_throttle_time_ms(self, client: Client, value: float) -> int:
        """Record a value for the client; return its throttle time in ms, 0 if it is within its quota."""
        if not self.is_enabled:
            return 0
        now_ms = self._clock.now_ms()
        sensor = self._sensors.find(client)
        sensor.stat.record(value, now_ms)
        time_ms = sensor.stat.throttle_time_ms(sensor.bound, now_ms)
        limit_ms = self._max_throttle_time_ms
        return time_ms if limit_ms is None else min(time_ms, limit_ms)

    def unrecord(self, client: Client, value: float) -> None:
        """Undo the recording of a value whose response is not sent."""
        if self.is_enabled:
            self._sensors.find(client).stat.record(-value, self._clock.now_ms())

    def max_value_in_quota_window(self, client: Client) -> float | None:
        """Return the largest value that an idle client may record without being throttled, None if unlimited.

        Any larger value is throttled even if nothing was recorded before.
        """
        if not self.is_enabled:
            return None
        limit = self._sensors.limits.limit(self._sensors.limits.tags(*client))
        return None if limit is None else limit * self._window.whole_samples_s
