"""The link from a transaction coordinator to the leaders that write its markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.broker.environment import BrokerEnvironment
    from broker_sim.protocol import messages

__all__ = ["MarkerLink"]


class MarkerLink:
    """The `MarkerSender` over links."""

    def __init__(self, broker_id: int, environment: BrokerEnvironment) -> None:
        self._broker_id = broker_id
        self._links = environment.links
        self._brokers = environment.brokers

    def write_txn_markers(
        self,
        broker_id: int,
        request: messages.WriteTxnMarkersRequest,
        on_response: Callable[[messages.WriteTxnMarkersResponse], object],
        on_failure: Callable[[], object],
    ) -> None:
        """Send WriteTxnMarkers to that broker."""
        self._links.call(
            self._broker_id,
            broker_id,
            lambda send_result: self._brokers[broker_id].write_txn_markers(request, send_result),
            on_response,
            on_failure,
        )
