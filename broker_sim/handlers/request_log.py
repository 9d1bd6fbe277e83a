"""The last client requests and their responses, for tests that ask for them; Kafka has no counterpart."""

from __future__ import annotations

from collections import Counter, deque
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.errors import ErrorCode
from broker_sim.protocol.message import error_codes

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext
    from broker_sim.protocol.api_keys import ApiKey


LOOK_LASTS_MS: Final = 60_000
"""Time in ms for which requests are counted after the last `look`."""
MAX_ROWS: Final = 1_000
"""Maximum number of pairs of API and client that are counted."""


class RequestStatus(NamedTuple):
    """One request of a client, and its response if there is one yet."""

    number: int
    """Position in the order in which handlers got the requests of the cluster, whatever the clocks of brokers say."""
    received_ms: int
    """Time of arrival in ms since the epoch."""
    broker: int
    api: str
    """Kafka's name of the API, such as `Produce`."""
    api_version: int
    client_id: str | None
    client_host: str
    client_port: int
    request: Any
    """The message, with the fields of Kafka's definitions in snake_case."""
    response: Any
    """The response message; None before the response, after a broken connection, and for acks=0."""
    elapsed_ms: int | None
    """Time in ms from request to response, None without a response."""

    @property
    def errors(self) -> tuple[ErrorCode, ...]:
        """The distinct errors anywhere in the response."""
        return tuple(sorted({ErrorCode(code) for code in error_codes(self.response) if code}))

    def to_json(self) -> dict[str, Any]:
        """Return plain values; messages become texts without long byte strings."""
        return {
            "number": self.number,
            "received_ms": self.received_ms,
            "broker": self.broker,
            "api": self.api,
            "api_version": self.api_version,
            "client_id": self.client_id,
            "client_host": self.client_host,
            "client_port": self.client_port,
            "request": repr(self.request),
            "response": None if self.response is None else repr(self.response),
            "elapsed_ms": self.elapsed_ms,
            "errors": [error.name for error in self.errors],
        }


class RequestsStatus(tuple[RequestStatus, ...]):
    """Requests in the order in which they came."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"requests": [request.to_json() for request in self]}


class LogEntry:
    """One request in the log, and its response once there is one."""

    __slots__ = ("_begun_ms", "_elapsed_ms", "_log", "_number", "_received_ms", "_request", "_response", "context")

    def __init__(self, log: RequestLog, request: Any, context: RequestContext) -> None:
        clock = context.broker.clock
        self._log = log
        self._number = log.next_number()
        self._request = request
        self.context = context
        self._received_ms = clock.wall_clock_ms()
        self._begun_ms = clock.now_ms()
        self._response: Any = None
        self._elapsed_ms: int | None = None

    def note_release(self) -> None:
        """Record that the handler gets the request now, which a fault has held."""
        self._number = self._log.next_number()

    def note_response(self, message: Any) -> None:
        """Record the response, and pass the request to `RequestLog.on_answer`."""
        self._response = message
        self._elapsed_ms = self.context.broker.clock.now_ms() - self._begun_ms
        log = self._log
        if log.tally is not None:
            log.count(self.context, self._begun_ms, self._elapsed_ms, message)
        if log.limit and log.on_answer is not None:
            log.on_answer(self.status())

    def status(self) -> RequestStatus:
        """Return the request as it is now."""
        context = self.context
        return RequestStatus(
            self._number,
            self._received_ms,
            context.broker.broker_id,
            context.api_key.api_name,
            context.api_version,
            context.client_id,
            context.connection.ip,
            context.connection.port,
            self._request,
            self._response,
            self._elapsed_ms,
        )


class RequestTally:
    """Counts answered requests by API and client while `look` is called, as by the page.

    Counting begins with the first call, and ends a minute after the last one.
    """

    def __init__(self) -> None:
        self._until_ms = -1
        self._rows: dict[tuple[str, str | None], dict[str, Any]] = {}

    def look(self, now_ms: int) -> list[dict[str, Any]]:
        """Return the rows since the first call, and count for another minute."""
        self._until_ms = now_ms + LOOK_LASTS_MS
        return [{**row, "errors": dict(row["errors"])} for row in self._rows.values()]

    def is_over(self, now_ms: int) -> bool:
        """Return whether the last call of `look` is more than a minute ago."""
        return now_ms > self._until_ms

    def add(self, api: str, client_id: str | None, elapsed_ms: int, response: Any) -> None:
        """Count one request."""
        row = self._rows.get((api, client_id))
        if row is None:
            if len(self._rows) >= MAX_ROWS:
                return
            row = {"api": api, "client_id": client_id, "count": 0, "elapsed_ms": 0, "errors": Counter()}
            self._rows[api, client_id] = row
        row["count"] += 1
        row["elapsed_ms"] += elapsed_ms
        for code in error_codes(response):
            if code:
                row["errors"][ErrorCode(code).name] += 1


class RequestLog:
    """The last requests of a cluster; empty until `keep` is called. Thread rule: the cluster's event loop."""

    def __init__(self) -> None:
        self.limit = 0
        """Maximum number of requests that are kept; 0 for none."""
        self.is_on = False
        """Whether requests are kept or counted."""
        self.tally: RequestTally | None = None
        self.on_answer: Callable[[RequestStatus], object] | None = None
        """Called with each request that is answered while requests are kept."""
        self._entries: deque[LogEntry] = deque()
        self._numbers = count(1)

    def keep(self, count: int) -> None:
        """Drop the kept requests, and keep the last `count` requests from now on."""
        self.limit = count
        self._entries = deque(maxlen=count)
        self._switch()

    def look(self, now_ms: int) -> list[dict[str, Any]]:
        """Return the number of requests by API and client; see `RequestTally.look`."""
        if self.tally is None:
            self.tally = RequestTally()
            self._switch()
        return self.tally.look(now_ms)

    def count(self, context: RequestContext, begun_ms: int, elapsed_ms: int, response: Any) -> None:
        """Count an answered request, if counting is on."""
        assert self.tally is not None
        if self.tally.is_over(begun_ms + elapsed_ms):
            self.tally = None
            self._switch()
        else:
            self.tally.add(context.api_key.api_name, context.client_id, elapsed_ms, response)

    def _switch(self) -> None:
        self.is_on = self.limit > 0 or self.tally is not None

    def forget(self) -> None:
        """Drop the kept requests, and keep recording."""
        self._entries.clear()

    def begin(self, request: Any, context: RequestContext) -> LogEntry:
        """Record a request that has arrived; return its entry, which later gets the response."""
        entry = LogEntry(self, request, context)
        if self.limit:
            self._entries.append(entry)
        return entry

    def next_number(self) -> int:
        """Return the number of the next request that is handled."""
        return next(self._numbers)

    def find(self, api: ApiKey | None, client_id: str | None) -> RequestsStatus:
        """Return the kept requests of an API and a client; None matches any."""
        return RequestsStatus(
            entry.status()
            for entry in self._entries
            if api in (None, entry.context.api_key) and client_id in (None, entry.context.client_id)
        )
