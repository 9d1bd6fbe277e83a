"""The arguments and outcomes of persister calls for many share partitions, in the order of Kafka's responses.

Mirrors `DefaultStatePersister`, which has a hash map of topics, each with a hash map of partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from broker_sim.hash_order.hash_codes import integer_hash, uuid_hash
from broker_sim.hash_order.java_order import HashTable
from broker_sim.share.share_state import SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from broker_sim.errors import ErrorCode
    from broker_sim.group.share.state_partitions import Numbers
    from broker_sim.share.share_state import StateOutcome

K = TypeVar("K", bound="Hashable")


def keys_of(group_id: str, numbers: Numbers) -> list[SharePartitionKey]:
    """Return the keys of a group's share partitions, given by topic id and partition."""
    return [
        SharePartitionKey(group_id, topic_id, number)
        for topic_id, partitions in numbers.items()
        for number in partitions
    ]


def is_refused(group_id: str, numbers: Numbers) -> bool:
    """Whether Kafka's persister would reject the whole call for these share partitions."""
    return not group_id or any(not partitions or min(partitions) < 0 for partitions in numbers.values())


def topics_in_order(topic_ids: Iterable[bytes]) -> list[bytes]:
    """Return the distinct topic ids in the order of the persister's hash map."""
    return _in_order(topic_ids, uuid_hash)


def partitions_in_order(numbers: Iterable[int]) -> list[int]:
    """Return the distinct partitions in the order of the persister's hash map."""
    return _in_order(numbers, integer_hash)


def _in_order(keys: Iterable[K], hash_code: Callable[[K], int]) -> list[K]:
    table: HashTable[K, None] = HashTable(hash_code)
    for key in keys:
        if key not in table:
            table.add(key, None)
    return table.in_order()


def errors_by_topic(outcomes: Mapping[SharePartitionKey, StateOutcome]) -> dict[bytes, ErrorCode]:
    """Return the first error of each failed topic."""
    errors: dict[bytes, ErrorCode] = {}
    for key, outcome in outcomes.items():
        if outcome.error_code:
            errors.setdefault(key.topic_id, outcome.error_code)
    return errors
