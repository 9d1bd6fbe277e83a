"""Facts the members of a random run's groups have learned; nothing may contradict them later.

An assignment counts once the coordinator has answered with it: then it is committed in
`__consumer_offsets`, and no later coordinator may know less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.cluster.virtual.invariants import violated

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker_sim.chaos.random_run.disturbances import Disturbances


class GroupHistory:
    """Owners and commits of one group, in the order in which members were told of them.

    An epoch is a generation of the classic protocol, or the epoch of a member.
    """

    def __init__(self) -> None:
        self.epoch = 0
        """The newest epoch in which a member was told of its assignment."""
        self.commits = 0
        """Number of commits that were acknowledged."""
        self.committed: dict[int, int] = {}
        """The highest acknowledged offset of each partition."""
        self._owners: dict[tuple[int, int], str] = {}

    def add_commit(self, partition: int, offset: int) -> None:
        """Add a commit that was acknowledged."""
        self.commits += 1
        self.committed[partition] = max(self.committed.get(partition, -1), offset)

    def check_committed(self, member: str, epoch: int, partition: int, offset: int) -> None:
        """Compare what an owner has read; raise if it is behind what was acknowledged."""
        committed = self.committed.get(partition, -1)
        if offset < committed and self._is_owner(member, epoch, partition):
            violated(
                "committed-offsets-stay",
                f"offset {committed} of partition {partition} was committed, and its owner {member} in "
                f"epoch {epoch} finds {offset}",
            )

    def _is_owner(self, member: str, epoch: int, partition: int) -> bool:
        """Whether the member, which has owned the partition in that epoch, still does."""
        raise NotImplementedError


class ClassicHistory(GroupHistory):
    """A group of the classic protocol, which has one assignment in each generation."""

    def add_owner(self, generation: int, member_id: str, partitions: Collection[int]) -> None:
        """Add what a member was given; raise if another one has been given the same."""
        self.epoch = max(self.epoch, generation)
        for partition in partitions:
            owner = self._owners.setdefault((generation, partition), member_id)
            if owner != member_id:
                violated(
                    "one-owner-per-generation",
                    f"partition {partition} was given to {owner} and to {member_id} in generation {generation}",
                )

    def _is_owner(self, member: str, epoch: int, partition: int) -> bool:  # noqa: ARG002 - of its generation
        # A member of an old generation may still ask a coordinator that does not know that it is none.
        return epoch == self.epoch


class Term(NamedTuple):
    """The time for which a member owns a partition that an answer gave it."""

    since_ms: int
    """Time of the member's request: if it was removed since, the group owes it nothing."""
    until_ms: int
    """Before that time no coordinator may give it to another one."""


class _Claim(NamedTuple):
    """The claim of an owner to its partition."""

    owner: str
    epoch: int
    term: Term


class ModernHistory(GroupHistory):
    """A group whose coordinator assigns: of the consumer protocol (KIP-848), or of streams (KIP-1071).

    A member owns a partition from the answer that gives it until it says that it has given it up, leaves,
    is silent for its session, or is removed by an admin client.
    """

    def __init__(self, disturbances: Disturbances) -> None:
        super().__init__()
        self._disturbances = disturbances
        self._claims: dict[int, _Claim] = {}

    def add_owner(self, member: str, epoch: int, partitions: Collection[int], now_ms: int, term: Term) -> None:
        """Add an answer to a member, which owns these partitions in that epoch; raise if another one does."""
        self.epoch = max(self.epoch, epoch)
        for partition in partitions:
            owner = self._owners.setdefault((epoch, partition), member)
            if owner != member:
                violated("one-owner-per-epoch", f"{owner} and {member} own partition {partition} in epoch {epoch}")
            claim = self._claims.get(partition)
            if claim is not None and claim.owner != member:
                if epoch < claim.epoch:
                    continue  # The answer was on its way for longer than its member's session.
                since_ms, until_ms = claim.term
                if now_ms < until_ms and not self.may_be_removed_since(since_ms):
                    violated(
                        "partitions-are-given-up-first",
                        f"{member} got partition {partition} in epoch {epoch}, which {claim.owner} has "
                        f"owned since epoch {claim.epoch} and has not given up",
                    )
            self._claims[partition] = _Claim(member, epoch, term)

    def may_be_removed_since(self, time_ms: int) -> bool:
        """Whether members were removed since then."""
        return self._disturbances.removed_ms >= time_ms

    def give_up(self, member: str, kept: Collection[int] = ()) -> None:
        """Take in that the member says that it owns nothing but these partitions."""
        for partition, claim in list(self._claims.items()):
            if claim.owner == member and partition not in kept:
                del self._claims[partition]

    def _is_owner(self, member: str, epoch: int, partition: int) -> bool:  # noqa: ARG002 - in any epoch
        # Who is not the owner any more may read an offset that its successor has not gone on from.
        claim = self._claims.get(partition)
        return claim is not None and claim.owner == member
