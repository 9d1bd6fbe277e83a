"""Keys that share fetches are watched by; mirrors `DelayedShareFetchGroupKey` and `DelayedShareFetchPartitionKey`."""

from __future__ import annotations

import base64
from typing import NamedTuple


class DelayedShareFetchGroupKey(NamedTuple):
    """Key of a share partition, whose records may become available again."""

    group_id: str
    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        return f"groupId={self.group_id}, topicId={_text(self.topic_id)}, partition={self.partition}"


class DelayedShareFetchPartitionKey(NamedTuple):
    """Key of a partition for all share groups, whose high watermark may move."""

    topic_id: bytes
    partition: int

    def __str__(self) -> str:
        return f"topicId={_text(self.topic_id)}, partition={self.partition}"


def _text(topic_id: bytes) -> str:
    """Return the topic id as Kafka prints it."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
