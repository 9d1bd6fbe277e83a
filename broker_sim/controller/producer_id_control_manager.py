"""Blocks of producer ids; mirrors `ProducerIdControlManager` (KIP-730)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.controller.requests import ProducerIdsBlock
from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

PRODUCER_IDS_BLOCK_SIZE: Final = 1_000


class ProducerIdControlManager:
    """Allocates each producer id once. Thread rule: the controller's thread."""

    def __init__(self, next_producer_id: int = 0, keep: Callable[[int], object] | None = None) -> None:
        """Begin at that id; `keep(next_producer_id)` is called before a block is allocated."""
        self.next_producer_id = next_producer_id
        self._keep = keep

    def skip(self, producer_id: int) -> None:
        """Never allocate this id or a lower one: they are in use."""
        self.next_producer_id = max(self.next_producer_id, producer_id + 1)

    def next_block(self) -> ProducerIdsBlock:
        """Return the next block. Raises ApiError UNKNOWN_SERVER_ERROR if no ids are left."""
        block = ProducerIdsBlock(self.next_producer_id, PRODUCER_IDS_BLOCK_SIZE)
        if block.first_producer_id + block.size >= 1 << 63:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Exhausted all producerIds.")
        self.next_producer_id += block.size
        if self._keep is not None:
            self._keep(self.next_producer_id)
        return block
