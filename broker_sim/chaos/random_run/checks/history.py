"""Facts that producers and consumers of a random run have learned, which nothing may contradict later."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.cluster.virtual.invariants import violated

if TYPE_CHECKING:
    from collections.abc import Iterable


class Acknowledged(NamedTuple):
    """A record that a broker has acknowledged."""

    partition: int
    offset: int
    value: bytes
    acks: int
    leader_epoch: int
    """The leader epoch of the append, or an earlier one, if the leader had lost the record when the response came."""


def lost_text(records: Iterable[Acknowledged]) -> str:
    """Return a text on lost acknowledged records, such as `partition 0: 17 (b'0-9'), 18 (b'0-10')`."""
    by_partition = defaultdict(list)
    for one in sorted(records):
        by_partition[one.partition].append(f"{one.offset} ({one.value!r})")
    return "; ".join(f"partition {partition}: {', '.join(offsets)}" for partition, offsets in by_partition.items())


@dataclass(slots=True)
class History:
    """Responses to producers and reads of consumers, in the order of their arrival.

    `reads_are_final` is whether a record that was read can never change: true without unclean elections.
    """

    reads_are_final: bool
    batches: int = 0
    """Number of acknowledged batches."""
    acknowledged: list[Acknowledged] = field(default_factory=list)
    refused: set[bytes] = field(default_factory=set)
    """Values that a broker refused before appending them."""
    read: dict[tuple[int, int], bytes | None] = field(default_factory=dict)
    """The values of all records that were read, by partition and offset."""
    lost: list[Acknowledged] = field(default_factory=list)
    """Acknowledged records lost in power failures."""

    def add_read(self, partition: int, offset: int, value: bytes | None) -> None:
        """Add a record that a consumer has read; raise if an earlier read returned a different one."""
        before = self.read.setdefault((partition, offset), value)
        if before != value and self.reads_are_final:
            violated(
                "read-records-stay",
                f"offset {offset} of partition {partition} was read as {before!r} and later as {value!r}",
            )


class HighWatermarks:
    """The high watermarks of the leaders of each partition over time."""

    def __init__(self) -> None:
        self._offsets_seen: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)

    def note(self, broker_id: int, partition: int, now_ms: int, high_watermark: int) -> None:
        """Note a leader's current high watermark."""
        offsets = self._offsets_seen[broker_id, partition]
        if not offsets or offsets[-1][1] != high_watermark:
            offsets.append((now_ms, high_watermark))

    def at(self, broker_id: int, partition: int, time_ms: int) -> int:
        """Return the high watermark noted last up to that time; -1 without one."""
        offsets = self._offsets_seen[broker_id, partition]
        place = bisect_right(offsets, time_ms, key=lambda each: each[0])
        return offsets[place - 1][1] if place else -1
