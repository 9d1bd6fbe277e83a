"""Producer ids in blocks from the controller; mirrors `RPCProducerIdManager` (KIP-730)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.controller import ProducerIdsBlock
    from broker_sim.controller.controller_link import ControllerLink
    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.errors import ApiError

PREFETCH_THRESHOLD = 0.9
RETRY_BACKOFF_MS = 50


class ProducerIds:
    """Allocates producer ids. The next block is requested when a tenth of the current block or less is left."""

    def __init__(self, broker: BrokerContext, controller: ControllerLink) -> None:
        self._broker = broker
        self._controller = controller
        self._next_id = 0
        self._end_id = 0
        self._prefetch_id = -1
        self._next_block: ProducerIdsBlock | None = None
        self._is_requested = False
        self._retry_ms = 0

    def next_id(self) -> int | None:
        """Return an unused producer id, or None while there is no block."""
        if self._next_id == self._end_id:
            if self._next_block is None:
                self._maybe_request_block()
                return None
            self._begin_block(self._next_block)
        producer_id = self._next_id
        self._next_id += 1
        if producer_id == self._prefetch_id:
            self._maybe_request_block()
        return producer_id

    def _begin_block(self, block: ProducerIdsBlock) -> None:
        self._next_block = None
        self._next_id = block.first_producer_id
        self._end_id = block.first_producer_id + block.size
        self._prefetch_id = block.first_producer_id + int(block.size * PREFETCH_THRESHOLD)

    def _maybe_request_block(self) -> None:
        if self._is_requested or self._next_block or self._broker.clock.now_ms() < self._retry_ms:
            return
        self._is_requested = True

        self._controller.call(
            lambda active: active.allocate_producer_ids(self._broker.broker_id, self._broker.broker_epoch()),
            self._take_block,
            self._take_refusal,
        )

    def _take_block(self, block: ProducerIdsBlock) -> None:
        self._is_requested = False
        self._next_block = block

    def _take_refusal(self, _error: ApiError) -> None:
        """Retry after `RETRY_BACKOFF_MS`: the controller refuses a broker that has not (re-)registered yet."""
        self._is_requested = False
        self._retry_ms = self._broker.clock.now_ms() + RETRY_BACKOFF_MS
