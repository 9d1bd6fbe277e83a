"""Calls about many share partitions at once, and the orders in which Kafka answers for them.

Mirrors `DefaultStatePersister`, which has a hash map of topics with a hash map of partitions each.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from broker_sim.hash_order.hash_codes import integer_hash, uuid_hash
from broker_sim.hash_order.java_order import HashTable
from broker_sim.share.share_state import SharePartitionKey

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from broker_sim.errors import ErrorCode
    from broker_sim.group.share.state_partitions import Numbers
    from broker_sim.share.share_state import StateOutcome

A = TypeVar("A")
K = TypeVar("K", bound="Hashable")


def keys_of(group_id: str, numbers: Numbers) -> list[SharePartitionKey]:
    """Return the share partitions of a group with these numbers."""
    return [
        SharePartitionKey(group_id, topic_id, number)
        for topic_id, partitions in numbers.items()
        for number in partitions
    ]


def is_refused(group_id: str, numbers: Numbers) -> bool:
    """Whether Kafka's persister refuses a call about these share partitions, all of it."""
    return not group_id or any(not partitions or min(partitions) < 0 for partitions in numbers.values())


def topics_in_order(topic_ids: Iterable[bytes]) -> list[bytes]:
    """Return topic ids, each once, in the order of the hash map of what the persister is asked."""
    return _in_order(topic_ids, uuid_hash)


def partitions_in_order(numbers: Iterable[int]) -> list[int]:
    """Return partitions, each once, in the order of such a map."""
    return _in_order(numbers, integer_hash)


def _in_order(keys: Iterable[K], hash_code: Callable[[K], int]) -> list[K]:
    table: HashTable[K, None] = HashTable(hash_code)
    for key in keys:
        if key not in table:
            table.add(key, None)
    return table.in_order()


def ask_all(
    keys: Iterable[SharePartitionKey],
    ask: Callable[[SharePartitionKey, Callable[[A], object]], object],
    on_all: Callable[[Mapping[SharePartitionKey, A]], object],
) -> None:
    """Ask the persister about each share partition, and tell of all of them at once."""
    unique_keys = list(dict.fromkeys(keys))
    answers: dict[SharePartitionKey, A] = {}

    def take(key: SharePartitionKey, answer: A) -> None:
        answers[key] = answer
        if len(answers) == len(unique_keys):
            on_all({each: answers[each] for each in unique_keys})

    if not unique_keys:
        on_all(answers)
    for key in unique_keys:
        ask(key, partial(take, key))


def errors_by_topic(outcomes: Mapping[SharePartitionKey, StateOutcome]) -> dict[bytes, ErrorCode]:
    """Return the first error of each topic that has one."""
    errors: dict[bytes, ErrorCode] = {}
    for key, outcome in outcomes.items():
        if outcome.error_code:
            errors.setdefault(key.topic_id, outcome.error_code)
    return errors
