"""The path of a request from its frame to its handler, and back to bytes; mirrors `KafkaApis.handle`.

The steps of a request: header, API table, decode, injected faults, handler, delayed actions. The response goes
through `PendingResponse`.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.api_table import last_release_with
from broker_sim.handlers.context import RequestContext
from broker_sim.handlers.error_answers import UNSUPPORTED_API_VERSIONS, whole_answer
from broker_sim.handlers.faults import Loss
from broker_sim.protocol.api_keys import ApiKey, request_class
from broker_sim.protocol.codec import decode
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.headers import RequestHeader, decode_request_header, encode_response
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.broker.throttling import ThrottledRequest, Throttling
    from broker_sim.handlers import ApiTable, BrokerServices, ClientConnection
    from broker_sim.handlers.context import Handler
    from broker_sim.handlers.faults import FaultInjector, RequestFaults
    from broker_sim.handlers.request_log import LogEntry, RequestLog
    from broker_sim.network import SendResponse
    from broker_sim.protocol.message import Chunk
    from broker_sim.runtime.process import Process

log = get_logger(__name__)

INJECTED: Final = "injected fault"
"""Reason in the log line when an injected fault closes a connection."""
DOCUMENT: Final = "docs/reference/differences.md"
"""The documentation page about APIs that are not served."""
VERSIONS: Final = "docs/reference/apis.md"
"""The documentation page about the versions of APIs."""


class RequestDispatcher:
    """Passes one broker's requests to their handlers; runs in the broker's process."""

    def __init__(
        self,
        broker: BrokerServices,
        api_table: ApiTable,
        faults: FaultInjector,
        requests: RequestLog,
        process: Process,
        throttling: Throttling,
    ) -> None:
        self._broker = broker
        self._api_table = api_table
        self._is_limited = api_table.release.is_at_least("4.4")
        self._faults = faults
        self._requests = requests
        self._process = process
        self._actions = process.actions
        self._quotas = throttling.quotas
        self._throttling = throttling

    def handle_frame(self, frame: memoryview, connection: ClientConnection, send_response: SendResponse) -> None:
        """Handle one request; its response goes to `send_response`, now or later.

        Raises ProtocolError (a ValueError) where Kafka closes the connection: for an unknown API, a
        version that is not served, or bytes that do not decode as the request in the header.
        """
        header, offset = decode_request_header(frame, limited=self._is_limited)
        connection.last_request = header
        api = self._api_table.find(header.api_key, header.api_version)
        if api is None:
            send_response(self._encode_unsupported_version(header))
        else:
            api_key, api_version = header.api_key, header.api_version
            request: Any = decode(request_class(api_key), api_version, frame, offset, limited=self._is_limited)
            context = RequestContext(self._broker, connection, api_key, api_version, header.client_id)
            pending = PendingResponse(header, request, context, send_response, self._process.call_later)
            if self._requests.is_on:
                pending.log_entry = self._requests.begin(request, context)
            if self._quotas.is_enabled:
                pending.throttled = self._throttling.begin(context, len(frame))
                self._actions.serve(self._handle_measured, api.handler, pending, pending.throttled)
            elif self._faults.injected:
                self._actions.serve(self._handle, api.handler, pending)
            else:
                self._actions.serve(api.handler, request, context, pending.respond)
        if self._process.on_turn is not None:
            self._process.on_turn()

    def _handle_measured(self, handler: Handler, pending: PendingResponse, throttled: ThrottledRequest) -> None:
        """Handle a request whose handler time counts against a quota."""
        try:
            self._handle(handler, pending)
        finally:
            throttled.leave_handler()

    def _handle(self, handler: Handler, pending: PendingResponse) -> None:
        """Call the handler, unless an injected fault holds, loses or answers the request here."""
        faults = self._faults.hit(pending.request, pending.context) if self._faults.injected else None
        if faults is None:
            handler(pending.request, pending.context, pending.respond)
        elif faults.hold is not None:
            release = partial(self._release, faults, handler, pending)
            faults.hold(partial(self._process.call_soon_threadsafe, self._actions.serve, release))
        else:
            self._apply(faults, handler, pending)

    def _release(self, faults: RequestFaults, handler: Handler, pending: PendingResponse) -> None:
        """Go on with a request that a fault has held."""
        if pending.log_entry is not None:
            pending.log_entry.note_release()
        self._apply(faults, handler, pending)

    def _apply(self, faults: RequestFaults, handler: Handler, pending: PendingResponse) -> None:
        """Apply the faults to a request, and call the handler unless they lose or answer it."""
        context = pending.context
        context.faults = pending.faults = faults
        if faults.loss is Loss.REQUEST:
            context.connection.close(INJECTED)
            return
        answer = faults.answer(pending.request)
        if faults.throttle_ms:
            if pending.throttled is None:
                pending.throttled = self._throttling.begin(context)
            pending.throttled.hold_up(faults.throttle_ms)
        if answer is None:
            handler(pending.request, context, pending.respond)
        elif answer.message is None:
            context.connection.close(INJECTED)
        else:
            pending.respond(answer.message, answer.api_version)

    def _encode_unsupported_version(self, header: RequestHeader) -> list[Chunk]:
        """Return the response to an ApiVersions request that is too new (KIP-511); raise for other APIs."""
        served = self._api_table.get(header.api_key)
        if served is None:
            raise ProtocolError(
                f"{header.api_key.api_name} of client {header.client_id!r} is not served, see {DOCUMENT}"
            )
        if header.api_key is not ApiKey.API_VERSIONS:
            if header.api_version > served.max_version:
                remedy = "should send ApiVersions first"
            elif (older := last_release_with(header.api_key, header.api_version)) is None:
                remedy = f"must use version {served.min_version} or newer, see {VERSIONS}"
            else:
                remedy = f"needs a cluster with as_version={older.name!r} or older"
            version = f"{header.api_key.name} version {header.api_version}"
            raise ProtocolError(f"{version} is not served; client {header.client_id!r} {remedy}")
        response = self._api_table.unsupported_version(ErrorCode.UNSUPPORTED_VERSION)
        return encode_response(header.api_key, UNSUPPORTED_API_VERSIONS, header.correlation_id, response)


class PendingResponse:
    """The path of one response to its connection; the handler calls `respond`.

    A message goes through these steps, in most cases only the last one:

    1. an injected fault loses or delays it
    2. quotas measure the request, and throttle the client
    3. the request log records it
    4. it is encoded and sent
    """

    __slots__ = (
        "_call_later", "_header", "_send_response", "context", "faults", "log_entry", "request", "throttled",
    )  # fmt: skip

    def __init__(
        self,
        header: RequestHeader,
        request: Any,
        context: RequestContext,
        send_response: SendResponse,
        call_later: Callable[..., object],
    ) -> None:
        self._header = header
        self._send_response = send_response
        self._call_later = call_later
        self.request = request
        self.context = context
        self.faults: RequestFaults | None = None
        """The injected faults that lose or delay the response, None if there are none."""
        self.throttled: ThrottledRequest | None = None
        self.log_entry: LogEntry | None = None

    def respond(self, message: Any, api_version: int | None = None) -> None:
        """Send the response, now or later; None ends a request that has no response (acks=0).

        `api_version` is the version in which it is encoded, None for that of the request.
        """
        faults = self.faults
        if faults is None:
            self._send(message, api_version)
            return
        if faults.loss:
            self.context.connection.close(INJECTED)
            return
        faults.damage(message)
        if delay_ms := faults.delay_ms:
            self._call_later(delay_ms, self._send, message, api_version)
        else:
            self._send(message, api_version)

    def _send(self, message: Any, api_version: int | None) -> None:
        if self.throttled is not None:
            self.throttled.settle(message)
        if self.log_entry is not None:
            self.log_entry.note_response(message)
        chunks: list[Chunk] | None = None
        if message is not None:
            api_key, version, correlation_id, _ = self._header
            try:
                chunks = encode_response(
                    api_key, version if api_version is None else api_version, correlation_id, message
                )
            except ProtocolError as error:
                chunks = self._encode_unfit(error)
        self._send_response(chunks)

    def _encode_unfit(self, error: ProtocolError) -> list[Chunk] | None:
        """Return an error response if the response cannot be encoded, such as a message that repeats a long name.

        Mirrors `RequestHandlerHelper.handleError`. Closes the connection if the error cannot be encoded either.
        """
        api_key, api_version, correlation_id, _ = self._header
        broker, connection = self.context.broker, self.context.connection
        log.bind(broker.clock, node=f"broker-{broker.broker_id}").error(
            "answer_unfit", api=api_key.api_name, peer=connection.peer, reason=str(error)
        )
        answer = whole_answer(api_key, self.request, api_version, ErrorCode.UNKNOWN_SERVER_ERROR)
        if answer is not None:
            with suppress(ProtocolError):
                return encode_response(api_key, api_version, correlation_id, answer)
        connection.close(str(error))
        return None
