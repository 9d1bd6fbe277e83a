"""The states of a classic group, and the ways between them; mirrors `ClassicGroupState`."""

from __future__ import annotations

from enum import Enum
from typing import Final


class ClassicGroupState(Enum):
    """A state by the name that ListGroups and DescribeGroups show."""

    EMPTY = "Empty"
    """No members, but perhaps offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are joining the next generation."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All have joined; the leader's assignment is awaited."""
    STABLE = "Stable"
    """All have their assignments."""
    DEAD = "Dead"
    """No longer on this coordinator."""

    # Each is there once. Enum hashes the name instead, by a call in Python, and joins look states up.
    __hash__ = object.__hash__

    def can_follow(self, state: ClassicGroupState) -> bool:
        """Return whether a group may come from `state` to this one."""
        return state in _PREVIOUS[self]


_PREVIOUS: Final = {
    ClassicGroupState.EMPTY: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.PREPARING_REBALANCE: frozenset(
        {ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.EMPTY}
    ),
    ClassicGroupState.COMPLETING_REBALANCE: frozenset({ClassicGroupState.PREPARING_REBALANCE}),
    ClassicGroupState.STABLE: frozenset({ClassicGroupState.COMPLETING_REBALANCE}),
    ClassicGroupState.DEAD: frozenset(ClassicGroupState),
}
