"""A partition of a fetch session; mirrors `FetchSession.CachedPartition`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.replica import FetchPartition, FetchPartitionData

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

    def has_news(self, data: FetchPartitionData) -> bool:
        """Whether the fetcher must be told of what is known now.

        It must be told of records, of a high watermark or log start that has moved, of another
        replica to read from, of an error and of a diverging epoch. After an error it is told again,
        even if nothing has moved.
        """
        return (
            data.size_bytes > 0
            or self.high_watermark != data.high_watermark
            or self.log_start_offset != data.log_start_offset
            or data.error_code != 0
            or data.preferred_read_replica >= 0
            or data.diverging_epoch is not None
        )

    def update_response_data(self, data: FetchPartitionData) -> bool:
        """Take what is known now; return whether the fetcher must be told."""
        has_news = self.has_news(data)
        self.high_watermark = -1 if data.error_code else data.high_watermark
        self.log_start_offset = data.log_start_offset
        return has_news
