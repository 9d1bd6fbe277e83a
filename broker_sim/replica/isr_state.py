"""The in-sync replicas of a partition and changes of them on their way to the controller.

Mirrors `kafka.cluster.PartitionState` with its committed and pending forms (KIP-497, KIP-841).
While a change is under way the *maximal* ISR counts for the high watermark: with the new member
already, or with the leaving one still. So whatever the controller decides, nothing was exposed that
a member of the decided ISR may lack.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - native code looks the types of fields up
from dataclasses import dataclass

__all__ = ["CommittedIsr", "IsrState", "PendingIsr"]


@dataclass(frozen=True, slots=True)
class CommittedIsr:
    """The ISR that the controller has confirmed."""

    isr: frozenset[int]

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The confirmed ISR itself."""
        return self.isr

    @property
    def is_inflight(self) -> bool:
        """No change is under way."""
        return False


@dataclass(frozen=True, slots=True, eq=False)
class PendingIsr:
    """A change of the ISR that was sent to the controller and not answered yet."""

    proposed_epochs: Mapping[int, int]
    """The proposed members with the broker epochs in which they fetched; -1 for the leader."""
    last_committed: CommittedIsr
    leader_epoch: int
    partition_epoch: int

    @property
    def proposed_isr(self) -> frozenset[int]:
        """The members without their epochs."""
        return frozenset(self.proposed_epochs)

    @property
    def isr(self) -> frozenset[int]:
        """The ISR that is still in force."""
        return self.last_committed.isr

    @property
    def maximal_isr(self) -> frozenset[int]:
        """Everyone who is, or is about to be, in sync."""
        return self.last_committed.isr | self.proposed_isr

    @property
    def is_inflight(self) -> bool:
        """A change is under way; no other may start."""
        return True


IsrState = CommittedIsr | PendingIsr
