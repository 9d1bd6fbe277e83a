"""SaslHandshake (key 17), versions 0-1, and SaslAuthenticate (key 36), versions 0-2, after the login.

Mirrors `KafkaApis.handleSaslHandshakeRequest` and `handleSaslAuthenticateRequest`.

Behaviour:
* `broker_sim.network.login` serves logins; one that arrives here is too late, or on a listener without
  SASL: ILLEGAL_SASL_STATE
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.handlers.context import RequestContext


def handle_sasl_handshake(
    _request: messages.SaslHandshakeRequest,
    _context: RequestContext,
    respond: Callable[[messages.SaslHandshakeResponse], None],
) -> None:
    """Refuse it."""
    respond(messages.SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))


def handle_sasl_authenticate(
    _request: messages.SaslAuthenticateRequest,
    _context: RequestContext,
    respond: Callable[[messages.SaslAuthenticateResponse], None],
) -> None:
    """Refuse it."""
    respond(
        messages.SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    )
