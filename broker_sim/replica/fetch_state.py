"""How far a follower has fetched a partition; mirrors `PartitionFetchState`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.replica.fetch_params import FetchPartition
    from broker_sim.replica.partition import Partition


class FetchState:
    """The position in one followed partition; `fetch` is replaced, never changed.

    `sent` is what the leader's session has of it, `lag` how many records it lacked of those below the leader's
    high watermark when it got some last; None before it has heard.
    """

    __slots__ = ("delayed_until_ms", "fetch", "lag", "partition", "sent")

    def __init__(self, partition: Partition, fetch: FetchPartition) -> None:
        self.partition = partition
        self.fetch = fetch
        self.sent: FetchPartition | None = None
        self.delayed_until_ms = 0
        self.lag: int | None = None

    def is_sent(self) -> bool:
        """Return whether the leader's session has it as it is."""
        return self.fetch is self.sent

    def is_in_sync(self) -> bool:
        """Return whether it has all that it has heard of."""
        return self.lag is not None and self.lag <= 0
