"""How the bytes of a share fetch are shared out among partitions; mirrors `PartitionMaxBytesStrategy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from broker_sim.metadata.topic_partition import TopicIdPartition


def uniform_max_bytes(
    request_max_bytes: int, partitions: Sequence[TopicIdPartition], acquired_count: int, rng: random.Random
) -> dict[TopicIdPartition, int]:
    """Return the bytes of each of these partitions, which are some of the `acquired_count` that are fetched.

    All get the same, one of them the rest too. With fewer bytes than partitions, as many as there are bytes get
    one. Raises ApiError with UNKNOWN_SERVER_ERROR, as Kafka does, for a limit that is not positive.
    """
    if request_max_bytes <= 0:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Request max bytes must be greater than 0")
    count = len(partitions)
    if request_max_bytes < count:
        first = rng.randrange(count)
        return {
            partition: int((index - first) % count < request_max_bytes) for index, partition in enumerate(partitions)
        }
    shares = acquired_count if request_max_bytes >= acquired_count else count
    each, rest = divmod(request_max_bytes, shares)
    max_bytes = dict.fromkeys(partitions, each)
    if rest:
        max_bytes[partitions[rng.randrange(count)]] += rest
    return max_bytes
