"""What the clients of a random run have learned, and what may not be contradicted later."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from broker_sim.cluster.virtual.invariants import violated

__all__ = ["Acknowledged", "History"]


class Acknowledged(NamedTuple):
    """One record that a broker has acknowledged at that offset."""

    partition: int
    offset: int
    value: bytes
    acks: int
    leader_epoch: int
    """The leader epoch in which it was appended, or one before, if its leader had lost it when the
    answer came."""


@dataclass(slots=True)
class History:
    """Answers to producers and reads of consumers, in the order of their arrival.

    `reads_are_final` is whether a record that was read stays: true without unclean elections.
    """

    reads_are_final: bool
    acknowledged: list[Acknowledged] = field(default_factory=list)
    refused: set[bytes] = field(default_factory=set)
    """Values that a broker has refused before it would have appended them."""
    read: dict[tuple[int, int], bytes | None] = field(default_factory=dict)
    """The value of every record that was read, by partition and offset."""
    lost: list[Acknowledged] = field(default_factory=list)
    """What was acknowledged and is gone, because brokers lost their power."""
    outcomes: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("acknowledged", "timed_out", "refused", "disconnected", "abandoned"), 0
        )
    )

    def count(self, outcome: str) -> None:
        """Count one answer to a producer."""
        self.outcomes[outcome] += 1

    def add_read(self, partition: int, offset: int, value: bytes | None) -> None:
        """Add a record that a consumer has read; raise if another read has shown another one."""
        before = self.read.setdefault((partition, offset), value)
        if before != value and self.reads_are_final:
            violated(
                "read-records-stay",
                f"offset {offset} of partition {partition} was read as {before!r} and later as {value!r}",
            )
