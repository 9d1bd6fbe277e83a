"""A waiting client request: a delayed operation that knows its API and its client.

Kafka has no counterpart; traces and `broker-sim ctl purgatory` show it.

Deliberate difference to Kafka: a broker tries and expires its operations on one thread, so they have no
lock (`one_thread`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_purgatory import DelayedOperation

from broker_sim.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable


class DelayedRequest(DelayedOperation):
    """Parks the answer to a request of `api` (Kafka's name) by the client `client_id`."""

    __slots__ = ("client_id",)

    api: str

    def __init__(self, delay_ms: int, client_id: str | None = None) -> None:
        super().__init__(delay_ms, one_thread=True)
        self.client_id = client_id

    @property
    def error_code(self) -> ErrorCode | None:
        """The first error of the answer once the request is completed; NONE if it has none, None if unknown."""
        return None


def first_error(error_codes: Iterable[ErrorCode]) -> ErrorCode:
    """Return the first code that is not NONE, or NONE."""
    return next(filter(None, error_codes), ErrorCode.NONE)
