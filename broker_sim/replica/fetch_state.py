"""How far a follower has fetched a partition; mirrors `PartitionFetchState`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.replica.fetch_params import FetchPartition
    from broker_sim.replica.partition import Partition

__all__ = ["FetchState"]


class FetchState:
    """The position in one followed partition; `fetch` is replaced, never changed.

    `sent` is what the leader's session has of it.
    """

    __slots__ = ("delayed_until_ms", "fetch", "partition", "sent")

    def __init__(self, partition: Partition, fetch: FetchPartition) -> None:
        self.partition = partition
        self.fetch = fetch
        self.sent: FetchPartition | None = None
        self.delayed_until_ms = 0

    def is_sent(self) -> bool:
        """Return whether the leader's session has it as it is."""
        return self.fetch is self.sent
