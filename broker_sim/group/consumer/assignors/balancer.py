"""Who takes the next partition and who gives it, among the subscribers of one topic.

Mirrors `MemberAssignmentBalancer` of `UniformHeterogeneousAssignmentBuilder`. Members are sorted by
the number of their partitions. One range of them grows from the left and takes, one grows from the
right and gives; within a range all had the same number when it last grew, and each member's turn
changes that by one:

    partitions   .       #
                 .     ###   <- the most loaded range gives
                 ## ######
                 ^^ the least loaded range takes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Balancer:
    """Two ranges over the members, which `sizes` has the partitions of; `start` before each topic."""

    __slots__ = (
        "_least_count",
        "_least_end",
        "_members",
        "_most_count",
        "_most_end",
        "_most_start",
        "_next_least",
        "_next_most",
        "_sizes",
    )

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._members: list[int] = []
        self._least_end = self._next_least = 0
        self._most_start = self._most_end = self._next_most = 0
        self._least_count = self._most_count = 0

    def start(self, members: Sequence[int]) -> int:
        """Take these members; returns how many partitions more the first of them has than the last."""
        sizes = self._sizes
        self._members = sorted(members, key=lambda member: (sizes[member], member))
        lowest, highest = sizes[self._members[0]], sizes[self._members[-1]]
        self._least_end = self._next_least = 0
        self._least_count = lowest - 1
        self._most_start = self._most_end = len(members)
        self._most_count = highest + 1
        self._next_most = len(members) - 1
        return highest - lowest

    @property
    def is_balanced(self) -> bool:
        """Whether a move from one range to the other would make nothing more even."""
        return self._most_count - self._least_count <= 1

    def next_least_loaded(self) -> int:
        """Return the member that takes the next partition."""
        if self._next_least >= self._least_end:
            self._least_count += 1
            while (
                self._least_end < len(self._members)
                and self._sizes[self._members[self._least_end]] == self._least_count
            ):
                self._least_end += 1
            self._next_least = 0
        member = self._members[self._next_least]
        self._next_least += 1
        return member

    def next_most_loaded(self) -> int | None:
        """Return the member that gives the next partition, None when there is none left."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # All of the range had nothing to give: go on with those that have fewer.
                self._most_count = self._sizes[self._members[self._most_start - 1]]
            else:
                self._most_count -= 1
            while self._most_start > 0 and self._sizes[self._members[self._most_start - 1]] == self._most_count:
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        member = self._members[self._next_most]
        self._next_most -= 1
        return member

    def exclude_most_loaded(self) -> None:
        """Leave the member out that `next_most_loaded` has just returned: it has nothing to give."""
        at, last = self._next_most + 1, self._most_end - 1
        self._members[at], self._members[last] = self._members[last], self._members[at]
        self._most_end -= 1
