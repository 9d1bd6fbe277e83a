"""The link from a transaction coordinator to the leaders that write its markers.

Deliberate difference: to itself a broker does not speak over a link. In Kafka it does, over a connection
to itself that nothing else shares.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.broker.environment import BrokerEnvironment
    from broker_sim.protocol import messages
    from broker_sim.runtime.process import Process

__all__ = ["MarkerLink"]


class MarkerLink:
    """The `MarkerSender` over links."""

    def __init__(self, broker_id: int, environment: BrokerEnvironment, process: Process) -> None:
        self._broker_id = broker_id
        self._links = environment.links
        self._brokers = environment.brokers
        self._serve = process.actions.serve

    def write_txn_markers(
        self,
        broker_id: int,
        request: messages.WriteTxnMarkersRequest,
        on_response: Callable[[messages.WriteTxnMarkersResponse], object],
        on_failure: Callable[[], object],
    ) -> None:
        """Send WriteTxnMarkers to that broker."""
        answered = partial(self._serve, on_response)
        if broker_id == self._broker_id:
            self._brokers[broker_id].write_txn_markers(request, answered)
            return
        self._links.call(
            self._broker_id,
            broker_id,
            lambda send_result: self._brokers[broker_id].write_txn_markers(request, send_result),
            answered,
            on_failure,
        )
