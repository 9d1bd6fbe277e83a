"""What a broker gives its transactions: configuration, time, metadata, the log, ids, other brokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.config import BrokerConfig
    from broker_sim.coordinator.storage import CoordinatorStorage
    from broker_sim.metadata import MetadataImage
    from broker_sim.protocol import messages
    from broker_sim.runtime.process import CallLater
    from purgatory import Clock

__all__ = ["MarkerSender", "TransactionEnvironment"]


class MarkerSender(Protocol):
    """The link to the leaders that write markers."""

    def write_txn_markers(
        self,
        broker_id: int,
        request: messages.WriteTxnMarkersRequest,
        on_response: Callable[[messages.WriteTxnMarkersResponse], object],
        on_failure: Callable[[], object],
    ) -> None:
        """Send the markers to the broker; `on_failure()` where the connection is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionEnvironment:
    """The same for all transactions of a broker."""

    broker_id: int
    config: BrokerConfig
    clock: Clock
    """`now_ms` for waits, `wall_clock_ms` for what is written into records."""
    call_later: CallLater
    after_handler: Callable[[Callable[[], object]], object]
    """Runs a callback when the running handler has returned, before the next request is read."""
    image: Callable[[], MetadataImage]
    """Returns the newest metadata that the broker has heard of."""
    storage: CoordinatorStorage
    next_producer_id: Callable[[], int | None]
    """Returns an id that no other producer has; None while none is here."""
    markers: MarkerSender
