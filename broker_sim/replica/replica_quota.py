"""Quotas on replication traffic; mirrors `ReplicaQuota`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.fetch_params import FetchPartitionData

_RESPONSE_BYTES: Final = 16
_PARTITION_BYTES: Final = 56
"""Bytes of a follower's fetch response besides the records, in the newest version with one partition of a topic."""


class ReplicaQuota(Protocol):
    """Quota on the bytes of throttled replicas, of a leader or of a follower (KIP-73)."""

    def is_throttled(self, topic_partition: TopicPartition) -> bool:
        """Whether this broker's replica of the partition is throttled."""

    def is_quota_exceeded(self) -> bool:
        """Whether the quota is exceeded, so that replicas that are not in sync have to wait."""

    def record(self, value: int) -> None:
        """Count the bytes of a throttled replica."""


def record_response(quota: ReplicaQuota, results: Sequence[tuple[TopicPartition, FetchPartitionData]]) -> None:
    """Count the bytes that a follower gets of throttled partitions, in sync or not.

    Mirrors `sizeOfThrottledPartitions`. As in Kafka, a response without such partitions counts a little too, so
    that a rate is measured from the first fetch on.
    """
    size_bytes = _RESPONSE_BYTES
    for topic_partition, data in results:
        if data.size_bytes and quota.is_throttled(topic_partition):
            size_bytes += _PARTITION_BYTES + data.size_bytes
    quota.record(size_bytes)
