"""Facts that members of a random run's groups have learned, which nothing may contradict later.

An assignment counts once the coordinator has answered with it: then it is committed in `__consumer_offsets`, and
every later coordinator must know it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.cluster.virtual.invariants import violated

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker_sim.chaos.random_run.disturbances import Disturbances


class GroupHistory:
    """Owners and commits of one group, in the order in which members learned of them.

    An epoch is a generation of the classic protocol, or the epoch of a member.
    """

    def __init__(self) -> None:
        self.epoch = 0
        """The newest epoch in which a member got its assignment."""
        self.commits = 0
        """Number of acknowledged commits."""
        self.committed: dict[int, int] = {}
        """The highest acknowledged offset of each partition."""
        self._owners: dict[tuple[int, int], str] = {}

    def add_commit(self, partition: int, offset: int) -> None:
        """Add an acknowledged commit."""
        self.commits += 1
        self.committed[partition] = max(self.committed.get(partition, -1), offset)

    def check_committed(self, member: str, epoch: int, partition: int, offset: int) -> None:
        """Raise if the committed offset that an owner has read is behind the acknowledged one."""
        committed = self.committed.get(partition, -1)
        if offset < committed and self._is_owner(member, epoch, partition):
            violated(
                "committed-offsets-stay",
                f"offset {committed} of partition {partition} was committed, and its owner {member} in "
                f"epoch {epoch} finds {offset}",
            )

    def _is_owner(self, member: str, epoch: int, partition: int) -> bool:
        """Whether the member, which owned the partition in that epoch, still does."""
        raise NotImplementedError


class ClassicHistory(GroupHistory):
    """A group of the classic protocol, with one assignment in each generation."""

    def add_owner(self, generation: int, member_id: str, partitions: Collection[int]) -> None:
        """Add the assignment of a member; raise if another member has been assigned the same partition."""
        self.epoch = max(self.epoch, generation)
        for partition in partitions:
            owner = self._owners.setdefault((generation, partition), member_id)
            if owner != member_id:
                violated(
                    "one-owner-per-generation",
                    f"partition {partition} was given to {owner} and to {member_id} in generation {generation}",
                )

    def _is_owner(self, member: str, epoch: int, partition: int) -> bool:  # noqa: ARG002 - of its generation
        # A member of an old generation may still ask a coordinator that does not know that it was deposed.
        return epoch == self.epoch


class Term(NamedTuple):
    """The time for which a member owns a partition that a response has assigned to it."""

    since_ms: int
    """Time of the member's request; if the member was removed since, its ownership has ended."""
    until_ms: int
    """Time before which no coordinator may assign the partition to another member."""


class _Claim(NamedTuple):
    """A member's ownership of a partition."""

    owner: str
    epoch: int
    term: Term


class ModernHistory(GroupHistory):
    """A group whose coordinator assigns: of the consumer protocol (KIP-848), or of streams (KIP-1071).

    A member owns a partition from the response that assigns it until the member reports that it has given it up,
    leaves, is silent for its session timeout, or is removed by an admin client.
    """

    def __init__(self, disturbances: Disturbances) -> None:
        super().__init__()
        self._disturbances = disturbances
        self._claims: dict[int, _Claim] = {}

    def add_owner(self, member: str, epoch: int, partitions: Collection[int], now_ms: int, term: Term) -> None:
        """Add a response that assigns partitions to a member in that epoch; raise if another member owns one."""
        self.epoch = max(self.epoch, epoch)
        for partition in partitions:
            owner = self._owners.setdefault((epoch, partition), member)
            if owner != member:
                violated("one-owner-per-epoch", f"{owner} and {member} own partition {partition} in epoch {epoch}")
            claim = self._claims.get(partition)
            if claim is not None and claim.owner != member:
                if epoch < claim.epoch:
                    continue  # The response took longer than the member's session timeout.
                since_ms, until_ms = claim.term
                if now_ms < until_ms and not self.may_be_removed_since(since_ms):
                    violated(
                        "partitions-are-given-up-first",
                        f"{member} got partition {partition} in epoch {epoch}, which {claim.owner} has "
                        f"owned since epoch {claim.epoch} and has not given up",
                    )
            self._claims[partition] = _Claim(member, epoch, term)

    def may_be_removed_since(self, time_ms: int) -> bool:
        """Whether an admin client may have removed members since then."""
        return self._disturbances.removed_ms >= time_ms

    def give_up(self, member: str, kept: Collection[int] = ()) -> None:
        """Handle a member's report that it owns only these partitions."""
        for partition, claim in list(self._claims.items()):
            if claim.owner == member and partition not in kept:
                del self._claims[partition]

    def _is_owner(self, member: str, epoch: int, partition: int) -> bool:  # noqa: ARG002 - in any epoch
        # A former owner may read an offset from which its successor has not continued.
        claim = self._claims.get(partition)
        return claim is not None and claim.owner == member
