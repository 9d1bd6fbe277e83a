"""Requests forwarded to the controller; mirrors `ForwardingManager` and `ControllerApis`.

A request's timeout is a deadline for the controller to begin. Here it begins at once, so only a
timeout of 0 or less expires: as in Kafka, the whole request then fails with REQUEST_TIMED_OUT and
changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from broker_sim.controller import Outcome
from broker_sim.errors import ErrorCode
from broker_sim.quota import Client

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.controller import Controller
    from broker_sim.handlers.context import BrokerServices, RequestContext
    from broker_sim.quota import ControllerMutationQuota

Result = TypeVar("Result")


def forward(
    broker: BrokerServices,
    timeout_ms: int,
    verb: Callable[[Controller], Result],
    on_result: Callable[[Result], None],
    on_refusal: Callable[[Outcome], None],
) -> None:
    """Run `verb(controller)` at the controller and `on_result` here with its result.

    `on_refusal` runs instead if the request as a whole times out or fails at the controller.
    """
    if timeout_ms <= 0:
        on_refusal(Outcome(ErrorCode.REQUEST_TIMED_OUT))
        return

    broker.controller.call(verb, on_result, lambda error: on_refusal(Outcome(error.error_code, str(error))))


def mutation_quota(context: RequestContext, strict_since_version: int) -> ControllerMutationQuota:
    """Return the quota; requests below `strict_since_version` are throttled, but never refused."""
    return context.broker.controller_quotas.quota_for(
        Client(context.principal.name, context.client_id or ""), is_strict=context.api_version >= strict_since_version
    )
