"""Which protocol a generation uses: each member votes; mirrors `ClassicGroup.selectProtocol`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from broker_sim.group.classic.classic_member import ClassicMember, MemberProtocol

__all__ = ["ProtocolSupporters", "choose_protocol"]

_BUCKETS = 16
_INT_MASK = 0xFFFF_FFFF


class ProtocolSupporters:
    """How many members know each protocol, so that no join has to ask them all."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, protocols: Iterable[MemberProtocol]) -> None:
        """Count a member's protocols."""
        for protocol in protocols:
            self._counts[protocol.name] += 1

    def remove(self, protocols: Iterable[MemberProtocol]) -> None:
        """Count them no longer."""
        for protocol in protocols:
            self._counts[protocol.name] -= 1

    def are_all(self, name: str, member_count: int) -> bool:
        """Return whether all members know the protocol."""
        return self._counts[name] == member_count

    def candidates(self, member_count: int) -> set[str]:
        """Return the protocols that all members know."""
        return {name for name, count in self._counts.items() if count == member_count}


def choose_protocol(members: Iterable[ClassicMember], candidates: Container[str]) -> str:
    """Return the candidate that most members name first; all must name one of them.

    Where several have as many votes, Kafka takes the first in the order of a Java hash map of 16
    buckets; so does this.
    """
    votes = Counter(member.vote(candidates) for member in members)
    most = max(votes.values())
    return min((name for name, count in votes.items() if count == most), key=_bucket)


def _bucket(name: str) -> int:
    """Return the bucket of a string in a `java.util.HashMap` of 16."""
    code = 0
    units = name.encode("utf-16-be")
    for index in range(0, len(units), 2):
        code = (31 * code + (units[index] << 8 | units[index + 1])) & _INT_MASK
    return (code ^ code >> 16) & _BUCKETS - 1
