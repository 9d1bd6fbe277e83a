"""Which protocol a generation uses: each member votes; mirrors `ClassicGroup.selectProtocol`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from broker_sim.hash_order.hash_codes import string_hash
from broker_sim.hash_order.java_order import hash_order

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from broker_sim.group.classic.classic_member import ClassicMember, MemberProtocol


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

    Where several have as many votes, Kafka takes the first in the order of a Java hash map; so does
    this.
    """
    votes = Counter(member.vote(candidates) for member in members)
    most = max(votes.values())
    return next(name for name in hash_order(votes, string_hash) if votes[name] == most)
