"""What is known of a share partition's records, as batches that do not overlap.

Mirrors `PersisterStateBatchCombiner`. Of two batches that overlap the one with the higher delivery count
wins, then the one with the higher state. What is left of the other one stays as one or two batches, and
batches next to each other that stand alike become one:

    so far      |---- available, 1 -----------|
    new               |- acknowledged, 1 -|
    combined    |-----|- acknowledged, 1 -|---|
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from broker_sim.share.persister import UNINITIALIZED_START_OFFSET, StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["combine_state_batches"]

_Entry = tuple[int, int, int, int]
"""First and last offset, delivery count and state: in this order batches are sorted."""


def combine_state_batches(
    so_far: Sequence[StateBatch], new: Sequence[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Return both together, by offset, without what is before the start offset; -1 keeps all."""
    waiting = [
        (batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state)
        for batch in _pruned((*so_far, *new), start_offset)
    ]
    heapify(waiting)
    combined: list[_Entry] = []
    while waiting:
        batch = heappop(waiting)
        if waiting and _is_mergeable(batch, waiting[0]):
            for part in _merged(batch, heappop(waiting)):
                heappush(waiting, part)
        else:
            combined.append(batch)
    return tuple(StateBatch(first, last, state, count) for first, last, count, state in combined)


def _pruned(batches: Iterable[StateBatch], start_offset: int) -> Iterator[StateBatch]:
    for batch in batches:
        if start_offset == UNINITIALIZED_START_OFFSET or batch.first_offset >= start_offset:
            yield batch
        elif batch.last_offset >= start_offset:
            yield batch._replace(first_offset=start_offset)


def _is_mergeable(batch: _Entry, following: _Entry) -> bool:
    """Whether they overlap, or stand alike without a gap."""
    _, last, *delivery = batch
    first, _, *other = following
    return first <= last or (first == last + 1 and delivery == other)


def _merged(batch: _Entry, following: _Entry) -> list[_Entry]:
    """Return the parts of two batches, of which the second does not begin before the first."""
    first, last, *delivery = batch
    next_first, next_last, *next_delivery = following
    if delivery == next_delivery:
        return [(first, max(last, next_last), *batch[2:])]
    if next_delivery < delivery:
        # The first one wins: of the second one there is left what goes beyond it.
        parts = [batch]
        if next_last > last:
            parts.append((last + 1, next_last, *following[2:]))
        return parts
    parts = [following]
    if first < next_first:
        parts.append((first, next_first - 1, *batch[2:]))
    if next_last < last:
        parts.append((next_last + 1, last, *batch[2:]))
    return parts
