"""Groups ids by partition of `__consumer_offsets`, in the order of Kafka's responses.

Kafka collects them in a `HashMap<TopicPartition, List<String>>`, whose bucket order is visible to clients.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.hash_order.hash_codes import INT_MASK, java_hash_code
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

G = TypeVar("G")

_FIRST_BUCKETS: Final = 16
_LOAD_FACTOR: Final = 0.75


def groups_by_partition(group_ids: Iterable[str], partition_for: Callable[[str], int]) -> list[list[str]]:
    """Return the group ids of each partition, in Kafka's partition order."""
    partitions: dict[int, list[str]] = {}
    for group_id in group_ids:
        partitions.setdefault(partition_for(group_id), []).append(group_id)
    buckets = _FIRST_BUCKETS
    while len(partitions) > buckets * _LOAD_FACTOR:
        buckets *= 2
    order = sorted(partitions, key=lambda partition: _spread_hash(partition) % buckets)
    return [partitions[partition] for partition in order]


def describe_each(
    group_ids: Sequence[str],
    partition_for: Callable[[str], int],
    describe: Callable[[str], G],
    failed: Callable[[ErrorCode, str | None, str], G],
    texts: Mapping[ErrorCode, str] | None = None,
) -> list[G]:
    """Return `describe(group_id)` for each group; empty ids come first, with INVALID_GROUP_ID.

    If it raises `ApiError`, the result is `failed(...)`; `texts` are the messages of errors without one.
    """
    described = [failed(ErrorCode.INVALID_GROUP_ID, None, group_id) for group_id in group_ids if not group_id]
    for group_id in chain.from_iterable(groups_by_partition(filter(None, group_ids), partition_for)):
        try:
            described.append(describe(group_id))
        except ApiError as error:
            text = error.error_message or (texts or {}).get(error.error_code)
            described.append(failed(error.error_code, text, group_id))
    return described


def _spread_hash(partition: int) -> int:
    """Return `HashMap.hash` of the partition's `TopicPartition.hashCode`."""
    value = (31 * (31 + partition) + java_hash_code(GROUP_METADATA_TOPIC)) & INT_MASK
    return value ^ value >> 16
