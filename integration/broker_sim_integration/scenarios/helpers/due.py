"""Due times of responses: after a cause, or the usual time of an API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.protocol import messages
from broker_sim_integration.clients.stopwatch import Moment
from broker_sim_integration.observations import Timing, at_once, on_event, untimed
from broker_sim_integration.scenarios.helpers.mechanisms import committed

if TYPE_CHECKING:
    from broker_sim_integration.clients.raw_client import Pending, Reply

CHANGES: Final = (
    messages.AlterConfigsResponse,
    messages.AlterPartitionReassignmentsResponse,
    messages.CreatePartitionsResponse,
    messages.CreateTopicsResponse,
    messages.DeleteTopicsResponse,
    messages.ElectLeadersResponse,
    messages.IncrementalAlterConfigsResponse,
)
"""Responses to requests that change the metadata log."""
CONNECTS: Final = untimed("the client connects before it sends its first record")


def after(
    reply: Reply[Any] | Pending[Any],
    cause: float | Reply[Any],
    *,
    since: float | None = None,
    spread_ms: float = 0.0,
    reason: str = "",
) -> Timing:
    """Return the timing of a response that is due at the time of its cause, in ms, or at the cause's own response.

    A response before the cause was sent or begun is too early; `since` overrides that time.
    `spread_ms` and `reason` are those of `on_event`.
    """
    due_ms = cause if isinstance(cause, float) else cause.answered_ms
    if since is None:
        match cause:
            case Moment():
                since = cause.began_ms
            case float():
                since = cause
            case _:
                since = cause.sent_ms
    return on_event(due_ms - reply.sent_ms, earliest_ms=since - reply.sent_ms, spread_ms=spread_ms, reason=reason)


def usual_timing(reply: Reply[Any]) -> Timing:
    """Return the timing of a request that never waits: at once, or when a change of metadata is committed."""
    return committed() if isinstance(reply.message, CHANGES) else at_once()
