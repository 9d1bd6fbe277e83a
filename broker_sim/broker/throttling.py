"""Throttles clients that exceed their quotas; mirrors `RequestHandlerHelper`.

The response is sent at once and has the throttle time. The broker does not rely on the client: it mutes the
connection for the same time (KIP-219). The quotas count

    Produce             the bytes of the request, and the request time; for acks=0 the bytes only
    Fetch               the bytes of the response, and the request time; above the quota the response is
                        empty, and its bytes do not count. Fetches of followers are exempt
    WriteTxnMarkers     exempt
    changes of topics   the throttle time from the controller, and the request time
    all others          the request time

Of two throttle times the longer one applies. Deliberate differences: the request time is that of the handler,
in whole milliseconds of the broker's clock, so it is 0 in virtual time; time in the network and the controller
is not measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol.api_keys import ApiKey
from broker_sim.quota import Client
from broker_sim.runtime.delayed_request import DelayedRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import Clock, DelayedOperationPurgatory

    from broker_sim.handlers.context import RequestContext
    from broker_sim.quota import QuotaManagers

_PERCENT_PER_MS: Final = 100 / 1_000
"""Percent of one second per millisecond."""
_PRODUCE: Final = ApiKey.PRODUCE
_MARKERS: Final = ApiKey.WRITE_TXN_MARKERS


class ThrottledChannel(DelayedRequest):
    """Keeps one connection muted for `delay_ms`; mirrors `ThrottledChannel`.

    Kafka keeps these in one `DelayQueue` per kind of quota, which a thread reads (`ThrottledChannelReaper`).
    Deliberate difference: here they are delayed operations in the purgatory `ThrottledChannel`, so that they
    are visible like all other waiting operations. They complete only by expiring.
    """

    __slots__ = ("_end_throttling",)

    api = "ThrottledChannel"

    def __init__(self, delay_ms: int, end_throttling: Callable[[], object], client_id: str | None = None) -> None:
        super().__init__(delay_ms, client_id)
        self._end_throttling = end_throttling

    def try_complete(self) -> bool:
        """Return False: this operation can only expire."""
        return False

    def on_complete(self) -> None:
        """Unmute the connection."""
        self._end_throttling()

    def on_expiration(self) -> None:
        """Do nothing: `on_complete` has unmuted the connection."""


class Throttling:
    """Applies the quotas of one broker to its requests."""

    def __init__(
        self, quotas: QuotaManagers, purgatory: DelayedOperationPurgatory[ThrottledChannel], clock: Clock
    ) -> None:
        self.quotas = quotas
        self._purgatory = purgatory
        self._clock = clock

    def begin(self, context: RequestContext, request_bytes: int = 0) -> ThrottledRequest:
        """Start measuring a request."""
        throttled = ThrottledRequest(self.quotas, context, request_bytes, self._clock, self._throttle)
        context.throttle = throttled
        return throttled

    def _throttle(self, context: RequestContext, throttle_time_ms: int) -> None:
        """Mute the connection for that time."""
        connection = context.connection
        connection.start_throttling()
        channel = ThrottledChannel(throttle_time_ms, connection.end_throttling, context.client_id)
        self._purgatory.try_complete_else_watch(channel, [connection.peer])


class ThrottledRequest:
    """Measures one request, until `settle` is given its response; the `RequestThrottle` of its handler."""

    __slots__ = (
        "_begun_ms",
        "_client",
        "_clock",
        "_context",
        "_is_measured",
        "_quotas",
        "_request_bytes",
        "_throttle",
        "_throttle_time_ms",
        "_took_ms",
    )

    def __init__(
        self,
        quotas: QuotaManagers,
        context: RequestContext,
        request_bytes: int,
        clock: Clock,
        throttle: Callable[[RequestContext, int], None],
    ) -> None:
        self._quotas = quotas
        self._context = context
        self._client = Client(context.principal.name, context.client_id or "")
        self._request_bytes = request_bytes
        self._clock = clock
        self._begun_ms = clock.now_ms()
        self._throttle = throttle
        self._throttle_time_ms = 0
        self._is_measured = False
        self._took_ms: int | None = None

    def leave_handler(self) -> None:
        """Stop measuring the request time; a later response adds nothing."""
        if self._took_ms is None:
            self._took_ms = self._clock.now_ms() - self._begun_ms

    def hold_up(self, throttle_time_ms: int) -> None:
        """Throttle the client for at least `throttle_time_ms`."""
        self._throttle_time_ms = throttle_time_ms

    def max_fetch_bytes(self) -> float | None:
        """Return the maximum number of bytes a fetch may read without an empty response; None for no limit."""
        return self._quotas.fetch.max_value_in_quota_window(self._client)

    def refuses_fetch(self, response_bytes: int) -> bool:
        """Record a fetch response of `response_bytes`; return whether it must be empty instead."""
        fetch = self._quotas.fetch
        time_ms = self._record_time()
        bandwidth_ms = fetch.record_and_get_throttle_time_ms(self._client, response_bytes)
        self._throttle_time_ms = max(self._throttle_time_ms, time_ms, bandwidth_ms)
        self._is_measured = True
        if self._throttle_time_ms:
            fetch.unrecord(self._client, response_bytes)
        return self._throttle_time_ms > 0

    def exempt(self) -> None:
        """Exempt this request from quotas."""
        self._is_measured = True

    def settle(self, message: Any) -> None:
        """Write the throttle time into the response, and mute the connection if the client exceeded a quota."""
        if not self._is_measured:
            self._throttle_time_ms = max(self._throttle_time_ms, self._measure(message))
        throttle_time_ms = max(self._throttle_time_ms, getattr(message, "throttle_time_ms", 0))
        if throttle_time_ms:
            if hasattr(message, "throttle_time_ms"):
                message.throttle_time_ms = throttle_time_ms
            self._throttle(self._context, throttle_time_ms)

    def _measure(self, message: Any) -> int:
        api_key = self._context.api_key
        if api_key is _MARKERS:
            return 0
        if api_key is not _PRODUCE:
            return self._record_time()
        produce = self._quotas.produce
        bandwidth_ms = produce.record_and_get_throttle_time_ms(self._client, self._request_bytes)
        return bandwidth_ms if message is None else max(bandwidth_ms, self._record_time())

    def _record_time(self) -> int:
        request = self._quotas.request
        if not request.is_enabled:
            return 0
        self.leave_handler()
        time = (self._took_ms or 0) * _PERCENT_PER_MS
        return request.record_and_get_throttle_time_ms(self._client, time)
