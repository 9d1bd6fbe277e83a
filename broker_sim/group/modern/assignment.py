"""Which partitions belong to a member: as a target, and as what it owns since when.

Mirrors `org.apache.kafka.coordinator.group.modern.Assignment` and the maps of partitions with epochs
of `ConsumerGroupMember`. Topics and partitions of a target stand in the order in which Kafka's tables
hand them out, because assignors walk over them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from broker_sim.hash_order.hash_codes import integer_hash, uuid_hash
from broker_sim.hash_order.java_order import copied_capacity, hash_order

if TYPE_CHECKING:
    from collections.abc import Iterable

Partitions: TypeAlias = Mapping[bytes, Sequence[int]]
"""Partitions by topic id; no topic is without partitions."""

Epochs: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""By topic id and partition the member epoch at which the partition was assigned."""


class AssignorError(Exception):
    """A target that cannot be computed; mirrors `PartitionAssignorException` and `TaskAssignorException`."""


NO_PARTITIONS: Final[Partitions] = {}
NO_EPOCHS: Final[Epochs] = {}


def same_partitions(left: Partitions, right: Partitions) -> bool:
    """Return whether both have the same partitions, in whatever order."""
    return left.keys() == right.keys() and all(
        left[topic] is right[topic] or set(left[topic]) == set(right[topic]) for topic in left
    )


def target_from_record(stored: Iterable[tuple[bytes, Sequence[int]]]) -> Partitions:
    """Return a target as Kafka holds it when it has taken it from its record."""
    target = dict(stored)
    return {
        topic: tuple(hash_order(target[topic], integer_hash, copied_capacity(len(target[topic]))))
        for topic in hash_order(target, uuid_hash)
    }


def epochs_in_order(epochs: Epochs) -> list[tuple[bytes, list[int]]]:
    """Return topics and partitions as the nested `HashMap`s iterate over them."""
    return [(topic, hash_order(epochs[topic], integer_hash)) for topic in hash_order(epochs, uuid_hash)]
