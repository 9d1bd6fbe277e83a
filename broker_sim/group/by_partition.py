"""Groups ids by partition of `__consumer_offsets`, in the order of Kafka's responses.

Kafka collects them in a `HashMap<TopicPartition, List<String>>`, whose bucket order is visible to clients.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.hash_order.hash_codes import topic_partition_hash
from broker_sim.hash_order.java_order import hash_order
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

G = TypeVar("G")

offsets_partition_hash: Final = partial(topic_partition_hash, GROUP_METADATA_TOPIC)
"""The hash code of a partition of `__consumer_offsets`, by number."""


def groups_by_partition(group_ids: Iterable[str], partition_for: Callable[[str], int]) -> list[list[str]]:
    """Return the group ids of each partition, in Kafka's partition order."""
    partitions: dict[int, list[str]] = {}
    for group_id in group_ids:
        partitions.setdefault(partition_for(group_id), []).append(group_id)
    return [partitions[partition] for partition in hash_order(partitions, offsets_partition_hash)]


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
