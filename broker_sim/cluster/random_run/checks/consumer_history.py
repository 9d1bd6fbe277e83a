"""What the members of a random run's group of the consumer protocol have learned (KIP-848)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.cluster.random_run.checks.group_history import CommitHistory
from broker_sim.cluster.virtual.invariants import violated

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["ConsumerHistory"]


class _Claim(NamedTuple):
    """What the group owes to the owner of a partition."""

    owner: str
    epoch: int
    until_ms: int
    """Before that time no coordinator may give the partition to another one."""


class ConsumerHistory(CommitHistory):
    """Owners and commits, in the order in which members were told of them.

    A member owns a partition from the answer that gives it until it says that it has given it up, leaves,
    or is silent for its session.
    """

    def __init__(self) -> None:
        super().__init__()
        self.epoch = 0
        """The newest epoch in which a member was told of its assignment."""
        self._claims: dict[int, _Claim] = {}
        self._owners: dict[tuple[int, int], str] = {}

    def add_owner(
        self, member: str, epoch: int, partitions: Collection[int], now_ms: int, until_ms: int
    ) -> None:
        """Add an answer to a member, which owns these partitions in that epoch; raise if another one does."""
        self.epoch = max(self.epoch, epoch)
        for partition in partitions:
            owner = self._owners.setdefault((epoch, partition), member)
            if owner != member:
                violated(
                    "one-owner-per-epoch",
                    f"{owner} and {member} own partition {partition} in epoch {epoch}",
                )
            claim = self._claims.get(partition)
            if claim is not None and claim.owner != member:
                if epoch < claim.epoch:
                    continue  # The answer was on its way for longer than its member's session.
                if now_ms < claim.until_ms:
                    violated(
                        "partitions-are-given-up-first",
                        f"{member} got partition {partition} in epoch {epoch}, which {claim.owner} has "
                        f"owned since epoch {claim.epoch} and has not given up",
                    )
            self._claims[partition] = _Claim(member, epoch, until_ms)

    def give_up(self, member: str, kept: Collection[int] = ()) -> None:
        """Take in that the member says that it owns nothing but these partitions."""
        for partition, claim in list(self._claims.items()):
            if claim.owner == member and partition not in kept:
                del self._claims[partition]

    def check_committed(self, member: str, epoch: int, partition: int, offset: int) -> None:
        """Compare what an owner has read; raise if it is behind what was acknowledged.

        Who is not the owner any more may read an offset that its successor has not gone on from.
        """
        claim = self._claims.get(partition)
        committed = self.committed.get(partition, -1)
        if claim is not None and claim.owner == member and offset < committed:
            violated(
                "committed-offsets-stay",
                f"offset {committed} of partition {partition} was committed, and its owner {member} in "
                f"epoch {epoch} finds {offset}",
            )
