"""A partition of a fetch session; mirrors `FetchSession.CachedPartition`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.replica import FetchPartition, FetchPartitionData

__all__ = ["CachedPartition", "PartitionKey"]

PartitionKey = tuple[bytes | str, int]
"""The topic's id or, in a session of a version before 13, its name; and the partition's number."""


class CachedPartition:
    """What a fetcher asks of a partition, and what it was last told of it.

    `topic` is empty while no name is known for the topic's id. `fetch` is replaced, never changed.
    """

    __slots__ = ("fetch", "high_watermark", "key", "log_start_offset", "topic")

    def __init__(self, key: PartitionKey, topic: str, fetch: FetchPartition) -> None:
        self.key = key
        self.topic = topic
        self.fetch = fetch
        self.high_watermark = -1
        self.log_start_offset = -1

    def update_response_data(self, data: FetchPartitionData) -> bool:
        """Take what is known now; return whether the fetcher must be told.

        It must be told of records, of a high watermark or log start that has moved, of another
        replica to read from, of an error and of a diverging epoch. After an error it is told again,
        even if nothing has moved.
        """
        must_respond = data.size_bytes > 0
        if self.high_watermark != data.high_watermark:
            must_respond = True
            self.high_watermark = data.high_watermark
        if self.log_start_offset != data.log_start_offset:
            must_respond = True
            self.log_start_offset = data.log_start_offset
        if data.error_code:
            self.high_watermark = -1
            return True
        return must_respond or data.preferred_read_replica >= 0 or data.diverging_epoch is not None
