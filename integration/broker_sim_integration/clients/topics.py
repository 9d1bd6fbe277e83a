"""A topic of a scenario, and the description of its partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic by name and id, with the assigned broker ids of each partition."""

    name: str
    topic_id: bytes
    replicas: tuple[tuple[int, ...], ...]

    def preferred(self, partition: int = 0) -> int:
        """Return the broker id of a partition's preferred leader."""
        return self.replicas[partition][0]

    def named_in(self, entry: Entry, *, by_id: bool, name_field: str = "name") -> Entry:
        """Return the entry of a request after setting its topic id or topic name."""
        field, value = ("topic_id", self.topic_id) if by_id else (name_field, self.name)
        setattr(entry, field, value)
        return entry


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """One broker's metadata of a partition; leader -1 means no leader."""

    error_code: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: frozenset[int]
    offline: frozenset[int]
