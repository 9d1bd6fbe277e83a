"""What a broker gives its transactions: configuration, time, metadata, the log, ids, other brokers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig
    from broker_sim.coordinator.storage import CoordinatorStorage
    from broker_sim.metadata import MetadataImage
    from broker_sim.protocol import messages
    from broker_sim.runtime.process import CallLater


class MarkerSender(Protocol):
    """The `InterBrokerSender` of WriteTxnMarkers, to the leaders that write markers."""

    def is_busy(self, receiver: int) -> bool:
        """Whether that broker has not answered the request before."""

    def send(
        self,
        receiver: int,
        request: messages.WriteTxnMarkersRequest,
        on_answer: Callable[[messages.WriteTxnMarkersResponse | None], object],
    ) -> None:
        """Send the markers to the broker; `on_answer(None)` where it does not answer."""


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
    serve: Callable[..., object]
    """Runs a callback with its arguments as a handler, and then what it has completed."""
    image: Callable[[], MetadataImage]
    """Returns the newest metadata that the broker has heard of."""
    storage: CoordinatorStorage
    next_producer_id: Callable[[], int | None]
    """Returns an id that no other producer has; None while none is here."""
    markers: MarkerSender
