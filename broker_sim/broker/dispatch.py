"""From a frame to its handler and back to bytes; mirrors `KafkaApis.handle`.

The way of a request: header, API table, decode, injected faults, quotas, handler, delayed actions; and
from `respond` the quotas, the encoder and the connection.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ErrorCode
from broker_sim.handlers.context import RequestContext
from broker_sim.handlers.faults import error_answer
from broker_sim.protocol.api_keys import ApiKey, request_class
from broker_sim.protocol.codec import decode
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.headers import RequestHeader, decode_request_header, encode_response
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.broker.throttling import ThrottledRequest, Throttling
    from broker_sim.handlers import ApiTable, BrokerServices, ClientConnection
    from broker_sim.handlers.context import Handler, Respond
    from broker_sim.handlers.faults import FaultInjector
    from broker_sim.handlers.request_log import RequestLog
    from broker_sim.network import SendResponse
    from broker_sim.protocol.message import Chunk
    from broker_sim.runtime.action_queue import ActionQueue

log = get_logger(__name__)

DOCUMENT: Final = "docs/differences.md"
"""Where users read what is not served, and why."""


class RequestDispatcher:
    """Hands one broker's requests to their handlers; runs on the broker's process."""

    def __init__(
        self,
        broker: BrokerServices,
        api_table: ApiTable,
        faults: FaultInjector,
        requests: RequestLog,
        actions: ActionQueue,
        throttling: Throttling,
        call_later: Callable[..., object],
    ) -> None:
        self._broker = broker
        self._api_table = api_table
        self._faults = faults
        self._requests = requests
        self._actions = actions
        self._quotas = throttling.quotas
        self._throttling = throttling
        self._call_later = call_later

    def dispatch(self, frame: memoryview, connection: ClientConnection, send_response: SendResponse) -> None:
        """Handle one request; its response goes to `send_response`, now or later.

        Raises ProtocolError (a ValueError) where Kafka closes the connection: an unknown API, a
        version that is not served, or bytes that do not decode as the request they claim to be.
        """
        header, offset = decode_request_header(frame)
        api_key, api_version = header.api_key, header.api_version
        api = self._api_table.find(api_key, api_version)
        if api is None:
            send_response(self._encode_unsupported_version(header))
            return
        request: Any = decode(request_class(api_key), api_version, frame, offset)
        context = RequestContext(self._broker, connection, api_key, api_version, header.client_id)
        correlation_id = header.correlation_id

        def respond(message: Any) -> None:
            if message is None:
                send_response(None)
                return
            chunks: list[Chunk] | None
            try:
                chunks = encode_response(api_key, api_version, correlation_id, message)
            except ProtocolError as error:
                chunks = self._encode_unfit(header, request, connection, error)
            send_response(chunks)

        answer: Respond = respond
        if self._requests.limit:
            answer = self._requests.begin(request, context, respond)
        handler = api.handler
        if self._faults.injected:
            handler = partial(self._handle_admitted, handler)
        if self._quotas.is_enabled:
            throttled = self._throttling.begin(context, answer, len(frame))
            self._actions.serve(_handle_measured, handler, request, context, throttled)
        else:
            self._actions.serve(handler, request, context, answer)

    def _handle_admitted(self, handler: Handler, request: Any, context: RequestContext, respond: Respond) -> None:
        """Handle a request that may be hit by injected faults; some of them end it at this gate."""
        faults = self._faults.hit(request, context)
        if faults is None:
            handler(request, context, respond)
            return
        context.faults = faults
        if faults.throttle_ms:
            respond = self._throttling.hold_up(context, respond, faults.throttle_ms)
        admitted = faults.admit(request, context, respond, self._call_later)
        if admitted is not None:
            handler(request, context, admitted)

    def _encode_unfit(
        self, header: RequestHeader, request: Any, connection: ClientConnection, error: ProtocolError
    ) -> list[Chunk] | None:
        """Return the answer where the right one cannot be encoded, such as a message that repeats a long name.

        Mirrors `RequestHandlerHelper.handleError`. The connection is closed where that cannot be encoded either.
        """
        api_key, api_version, correlation_id, _ = header
        log.bind(self._broker.clock, node=f"broker-{self._broker.broker_id}").error(
            "answer_unfit", api=api_key.api_name, peer=connection.peer, reason=str(error)
        )
        answer = error_answer(api_key, request, api_version, ErrorCode.UNKNOWN_SERVER_ERROR)
        if answer is not None:
            with suppress(ProtocolError):
                return encode_response(api_key, api_version, correlation_id, answer)
        connection.close(str(error))
        return None

    def _encode_unsupported_version(self, header: RequestHeader) -> list[Chunk]:
        """Return the answer to an ApiVersions request that is too new (KIP-511), or raise."""
        if self._api_table.get(header.api_key) is None:
            raise ProtocolError(
                f"{header.api_key.api_name} of client {header.client_id!r} is not served, see {DOCUMENT}"
            )
        if header.api_key is not ApiKey.API_VERSIONS:
            raise ProtocolError(
                f"{header.api_key.name} version {header.api_version} is not served; "
                f"client {header.client_id!r} should ask ApiVersions first"
            )
        response = self._api_table.unsupported_version(ErrorCode.UNSUPPORTED_VERSION)
        return encode_response(header.api_key, 0, header.correlation_id, response)


def _handle_measured(handler: Handler, request: Any, context: RequestContext, throttled: ThrottledRequest) -> None:
    try:
        handler(request, context, throttled.respond)
    finally:
        throttled.leave_handler()
