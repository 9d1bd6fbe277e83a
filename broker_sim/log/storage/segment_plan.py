"""How the segments of a log are opened, decided before any of them is looked at; part of `LogLoader`.

ends       the index files and the ends of the `.log` say what the log needs: see `unread_segment`
whole      every batch is looked at; all of them were on the disk, so damage takes the log offline
recover    every batch is looked at with its CRC; what follows a torn one is cut off, as in Kafka
"""

from __future__ import annotations

from enum import Enum
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from broker_sim.log.storage.batch_scan import MAX_RELATIVE_OFFSET

if TYPE_CHECKING:
    from collections.abc import Sequence


class HowToOpen(Enum):
    """What is looked at of a segment."""

    ENDS = "ends"
    WHOLE = "whole"
    RECOVER = "recover"


class SegmentPlan(NamedTuple):
    """How one segment is opened."""

    base_offset: int
    upper_bound_offset: int
    """All batches end at or before this: where the next segment begins, or the most that an index can name."""
    how: HowToOpen


def plan_segments(
    bases: Sequence[int], *, was_closed: bool, recovery_point: int, needs_no_batches: bool
) -> list[SegmentPlan]:
    """Return the plans of the segments that begin there, the oldest first.

    After a kill (not `was_closed`) the last segment is recovered, and those that do not end at or below
    the recovery point. With `needs_no_batches` epochs and transactions are known already.
    """
    plans = []
    for base_offset, next_base in zip_longest(bases, bases[1:]):
        recovers = not was_closed and (next_base is None or next_base > recovery_point)
        known = HowToOpen.ENDS if needs_no_batches else HowToOpen.WHOLE
        upper_bound = base_offset + MAX_RELATIVE_OFFSET if next_base is None else next_base
        plans.append(SegmentPlan(base_offset, upper_bound, HowToOpen.RECOVER if recovers else known))
    return plans
