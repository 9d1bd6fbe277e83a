"""What the members of a random run's group have learned, and what may not be contradicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.cluster.virtual.invariants import violated

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CommitHistory", "GroupHistory"]


class CommitHistory:
    """The commits that a group has acknowledged."""

    def __init__(self) -> None:
        self.commits = 0
        """How many commits were acknowledged."""
        self._committed: dict[int, int] = {}

    @property
    def committed(self) -> dict[int, int]:
        """The highest acknowledged offset of each partition."""
        return dict(self._committed)

    def add_commit(self, partition: int, offset: int) -> None:
        """Add a commit that was acknowledged."""
        self.commits += 1
        self._committed[partition] = max(self._committed.get(partition, -1), offset)


class GroupHistory(CommitHistory):
    """Generations, owners and commits, in the order in which members were told of them.

    An assignment counts once the coordinator has answered with it: then it is committed in
    `__consumer_offsets`, and no later coordinator may know less.
    """

    def __init__(self) -> None:
        super().__init__()
        self.generation = -1
        """The newest generation in which somebody was given an assignment."""
        self._owners: dict[tuple[int, int], str] = {}

    def add_owner(self, generation: int, member_id: str, partitions: Iterable[int]) -> None:
        """Add what a member was given; raise if another one has been given the same."""
        self.generation = max(self.generation, generation)
        for partition in partitions:
            owner = self._owners.setdefault((generation, partition), member_id)
            if owner != member_id:
                violated(
                    "one-owner-per-generation",
                    f"partition {partition} was given to {owner} and to {member_id} in generation "
                    f"{generation}",
                )

    def check_committed(self, member: str, generation: int, partition: int, offset: int) -> None:
        """Compare what an owner has read; raise if it is behind what was acknowledged.

        A member of an old generation may still ask a coordinator that does not know that it is none.
        """
        committed = self._committed.get(partition, -1)
        if generation == self.generation and offset < committed:
            violated(
                "committed-offsets-stay",
                f"offset {committed} of partition {partition} was committed, and its owner {member} in "
                f"generation {generation} finds {offset}",
            )
