"""The last requests of clients and their answers, for tests that ask for them; Kafka has no counterpart."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from broker_sim.errors import ErrorCode
from broker_sim.protocol.message import error_codes

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext
    from broker_sim.protocol.api_keys import ApiKey


@dataclass(frozen=True, slots=True)
class RequestStatus:
    """One request of a client, and its answer if it was given by then."""

    received_ms: int
    """Time of arrival in ms since the epoch."""
    broker: int
    api: str
    """Kafka's name, such as `Produce`."""
    api_version: int
    client_id: str | None
    client_host: str
    request: Any
    """The message, with the fields of Kafka's definitions in snake_case."""
    response: Any
    """The response message; None before it, where the connection broke, and for acks=0."""
    elapsed_ms: int | None
    """Time in ms from request to response, None without a response."""

    @property
    def errors(self) -> tuple[ErrorCode, ...]:
        """The different errors in the answer, wherever they stand."""
        return tuple(sorted({ErrorCode(code) for code in error_codes(self.response) if code}))

    def to_json(self) -> dict[str, Any]:
        """Return plain values; messages as texts, in which long bytes are left out."""
        return {
            "received_ms": self.received_ms,
            "broker": self.broker,
            "api": self.api,
            "api_version": self.api_version,
            "client_id": self.client_id,
            "client_host": self.client_host,
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

    __slots__ = ("_begun_ms", "_elapsed_ms", "_log", "_received_ms", "_request", "_response", "context")

    def __init__(self, log: RequestLog, request: Any, context: RequestContext) -> None:
        clock = context.broker.clock
        self._log = log
        self._request = request
        self.context = context
        self._received_ms = clock.wall_clock_ms()
        self._begun_ms = clock.now_ms()
        self._response: Any = None
        self._elapsed_ms: int | None = None

    def note_response(self, message: Any) -> None:
        """Keep the response, and report the request to `RequestLog.on_answer`."""
        self._response = message
        self._elapsed_ms = self.context.broker.clock.now_ms() - self._begun_ms
        if self._log.on_answer is not None:
            self._log.on_answer(self.status())

    def status(self) -> RequestStatus:
        """Return the request as it is now."""
        context = self.context
        return RequestStatus(
            self._received_ms,
            context.broker.broker_id,
            context.api_key.api_name,
            context.api_version,
            context.client_id,
            context.connection.ip,
            self._request,
            self._response,
            self._elapsed_ms,
        )


class RequestLog:
    """The last requests of a cluster; empty until `keep` is called. Thread rule: the cluster's event loop."""

    def __init__(self) -> None:
        self.limit = 0
        """Number of requests that are kept; 0 for none."""
        self.on_answer: Callable[[RequestStatus], object] | None = None
        """Called with each request that is answered while requests are kept."""
        self._entries: deque[LogEntry] = deque()

    def keep(self, count: int) -> None:
        """Forget what is kept, and keep the last `count` requests from now on."""
        self.limit = count
        self._entries = deque(maxlen=count)

    def forget(self) -> None:
        """Forget what is kept, and go on."""
        self._entries.clear()

    def begin(self, request: Any, context: RequestContext) -> LogEntry:
        """Keep a request that has come; return its entry, which is given the response."""
        entry = LogEntry(self, request, context)
        self._entries.append(entry)
        return entry

    def find(self, api: ApiKey | None, client_id: str | None) -> RequestsStatus:
        """Return the requests of an API and a client that are kept, None for any."""
        return RequestsStatus(
            entry.status()
            for entry in self._entries
            if api in (None, entry.context.api_key) and client_id in (None, entry.context.client_id)
        )
