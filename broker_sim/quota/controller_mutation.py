"""Quotas for creating and deleting partitions; mirrors `ControllerMutationQuotaManager` (KIP-599).

A strict quota rejects requests while the bucket is below zero, with THROTTLING_QUOTA_EXCEEDED. A permissive
one, for clients that do not know this error, accepts all. Both return a throttle time. The controller
keeps the buckets, so that a quota applies to the whole cluster.
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, Final

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.quota.client_quota_manager import Sensors
from broker_sim.quota.rate import MS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker_sim_purgatory import Clock

    from broker_sim.metadata.quota_entity import QuotaEntity
    from broker_sim.quota.client_quota_manager import Client, Sensor
    from broker_sim.quota.rate import Window


_HALF: Final = 0.5


class TokenBucket:
    """The token bucket of one client, full at first; mirrors `TokenBucket` of Kafka's metrics.

    Its capacity is the number of tokens added in the whole window. A request may take more tokens than there
    are: the number then is negative, and the next request waits until it no longer is.
    """

    __slots__ = ("_tokens", "_updated_ms", "_window_s")

    def __init__(self, window: Window) -> None:
        self._window_s = window.samples * window.sample_ms / MS_PER_SECOND
        self._tokens = 0.0
        self._updated_ms: int | None = None

    def record(self, tokens: float, per_second: float, now_ms: int) -> None:
        """Take tokens from the bucket."""
        self._tokens = min(self.measure(per_second, now_ms) - tokens, self._window_s * per_second)

    def measure(self, per_second: float, now_ms: int) -> float:
        """Refill the bucket at that rate and return the number of tokens, which may be negative."""
        burst = self._window_s * per_second
        if self._updated_ms is None:
            self._tokens = burst
        else:
            filled = per_second * (now_ms - self._updated_ms) / MS_PER_SECOND
            self._tokens = min(burst, self._tokens + filled)
        self._updated_ms = now_ms
        return self._tokens

    def throttle_time_ms(self, per_second: float, now_ms: int) -> int:
        """Return the time in ms until the number of tokens is back at zero; 0 if it is not negative."""
        tokens = self.measure(per_second, now_ms)
        return floor(-tokens / per_second * MS_PER_SECOND + _HALF) if tokens < 0 else 0


class ControllerMutationQuota:
    """The quota of one request; unlimited without a bucket."""

    __slots__ = ("_bucket", "_clock", "_is_strict", "_recorded_ms", "_throttle_time_ms")

    def __init__(
        self, bucket: Sensor[TokenBucket] | None = None, clock: Clock | None = None, *, is_strict: bool = False
    ) -> None:
        self._bucket = bucket
        self._clock = clock
        self._is_strict = is_strict
        self._throttle_time_ms = 0
        self._recorded_ms = 0

    def record(self, partitions: int) -> None:
        """Record partitions about to be created or deleted. Raises ApiError if a strict quota is exceeded."""
        bucket, clock = self._bucket, self._clock
        if bucket is None or clock is None:
            return
        now_ms = clock.now_ms()
        if not self._is_strict:
            bucket.stat.record(partitions, bucket.bound, now_ms)
        throttle_time_ms = bucket.stat.throttle_time_ms(bucket.bound, now_ms)
        if throttle_time_ms:
            self._throttle_time_ms, self._recorded_ms = throttle_time_ms, now_ms
            if self._is_strict:
                raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        elif self._is_strict:
            bucket.stat.record(partitions, bucket.bound, now_ms)

    @property
    def throttle_time_ms(self) -> int:
        """Remaining throttle time of the client in ms."""
        if self._clock is None:
            return 0
        elapsed_ms = self._clock.now_ms() - self._recorded_ms
        return max(0, self._throttle_time_ms - elapsed_ms)


UNBOUNDED = ControllerMutationQuota()
"""The quota of clients without a limit."""


class ControllerMutationQuotaManager:
    """The token buckets of all clients."""

    def __init__(self, window: Window, clock: Clock) -> None:
        self._clock = clock
        self._sensors = Sensors(lambda: TokenBucket(window), clock)
        self.is_enabled = False
        """Whether any quota of this kind is set."""

    def update(self, quotas: Iterable[tuple[QuotaEntity, float]]) -> None:
        """Replace the quotas."""
        self._sensors.update(quotas)
        self.is_enabled = bool(self._sensors.limits)

    def quota_for(self, client: Client, *, is_strict: bool) -> ControllerMutationQuota:
        """Return the quota for one request of the client."""
        if not self.is_enabled:
            return UNBOUNDED
        return ControllerMutationQuota(self._sensors.find(client), self._clock, is_strict=is_strict)
