"""Combines the delivery states of a share partition's records into batches that do not overlap.

Mirrors `PersisterStateBatchCombiner`. Of two overlapping batches the one with the higher delivery count
wins, then the one with the higher state. The rest of the other stays as one or two batches, and adjacent
batches with the same state and count are merged:

    current     |---- available, 1 -----------|
    new               |- acknowledged, 1 -|
    combined    |-----|- acknowledged, 1 -|---|
"""

from __future__ import annotations

from heapq import heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from broker_sim.share.share_state import UNINITIALIZED_START_OFFSET, StateBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_Entry = tuple[int, int, int, int]
"""First offset, last offset, delivery count and state: the sort order of batches."""

_entry: Final = itemgetter(0, 1, 3, 2)


def combine_state_batches(
    current: Sequence[StateBatch], new: Sequence[StateBatch], start_offset: int
) -> tuple[StateBatch, ...]:
    """Return both combined and sorted, without records before the start offset; -1 keeps all.

    Most batches do not overlap and are copied; only the parts of overlapping ones go through a heap.
    """
    # Sorting two concatenated sorted lists takes linear time.
    waiting = sorted(_pruned((*current, *new), start_offset), key=_entry, reverse=True)
    combined: list[StateBatch] = []
    parts: list[_Entry] = []
    while waiting or parts:
        batch = _next(waiting, parts)
        while waiting or parts:
            following = _next(waiting, parts)
            if not _is_mergeable(batch, following):
                waiting.append(following)
                combined.append(batch)
                break
            if batch[2:] != following[2:]:
                for part in _merged(_entry(batch), _entry(following)):
                    heappush(parts, part)
                break
            # The extended batch is still the first one.
            if following.last_offset > batch.last_offset:
                batch = batch._replace(last_offset=following.last_offset)
        else:
            combined.append(batch)
    return tuple(combined)


def _next(waiting: list[StateBatch], parts: list[_Entry]) -> StateBatch:
    """Remove and return the first of all waiting batches (sorted in reverse) and parts."""
    if parts and (not waiting or parts[0] < _entry(waiting[-1])):
        return _batch(heappop(parts))
    return waiting.pop()


def _batch(entry: _Entry) -> StateBatch:
    first, last, count, state = entry
    return StateBatch(first, last, state, count)


def _pruned(batches: Iterable[StateBatch], start_offset: int) -> Iterator[StateBatch]:
    for batch in batches:
        if start_offset == UNINITIALIZED_START_OFFSET or batch.first_offset >= start_offset:
            yield batch
        elif batch.last_offset >= start_offset:
            yield batch._replace(first_offset=start_offset)


def _is_mergeable(batch: StateBatch, following: StateBatch) -> bool:
    """Whether the batches overlap, or are adjacent with the same state and count."""
    last, first = batch.last_offset, following.first_offset
    return first <= last or (first == last + 1 and batch[2:] == following[2:])


def _merged(batch: _Entry, following: _Entry) -> list[_Entry]:
    """Return the parts of two overlapping batches; the second does not begin before the first."""
    first, last, *delivery = batch
    next_first, next_last, *next_delivery = following
    if delivery == next_delivery:
        return [(first, max(last, next_last), *batch[2:])]
    if next_delivery < delivery:
        # The first batch wins: only the end of the second one remains.
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
