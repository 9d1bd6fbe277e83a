"""The link from a transaction coordinator to the leaders that write its markers.

Deliberate difference: to itself a broker does not speak over a link. In Kafka it does, over a connection
to itself that nothing else shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.broker.environment import BrokerEnvironment
    from broker_sim.protocol import messages

__all__ = ["MarkerLink"]


class MarkerLink:
    """The `MarkerSender` over links."""

    def __init__(
        self,
        broker_id: int,
        environment: BrokerEnvironment,
        complete_actions: Callable[[], object],
    ) -> None:
        """`complete_actions()` runs what an answer has completed, when it has been taken in."""
        self._broker_id = broker_id
        self._links = environment.links
        self._brokers = environment.brokers
        self._complete_actions = complete_actions

    def write_txn_markers(
        self,
        broker_id: int,
        request: messages.WriteTxnMarkersRequest,
        on_response: Callable[[messages.WriteTxnMarkersResponse], object],
        on_failure: Callable[[], object],
    ) -> None:
        """Send WriteTxnMarkers to that broker."""

        def answered(response: messages.WriteTxnMarkersResponse) -> None:
            on_response(response)
            self._complete_actions()

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
