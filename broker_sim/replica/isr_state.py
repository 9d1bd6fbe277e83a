"""The in-sync replicas of a partition, committed or with a change in flight to the controller.

Mirrors `kafka.cluster.PartitionState` (KIP-497, KIP-841). While a change is in flight, the high
watermark uses the *maximal* ISR: it includes members that are joining and members that are leaving.
So, whatever the controller decides, every record that consumers have seen is on all members of the
new ISR.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class CommittedIsr:
    """The ISR that the controller has confirmed."""

    isr: frozenset[int]
    is_inflight: ClassVar[bool] = False

    @property
    def maximal_isr(self) -> frozenset[int]:
        """The confirmed ISR itself."""
        return self.isr


@dataclass(frozen=True, slots=True, eq=False)
class PendingIsr:
    """A change of the ISR that the controller has not answered yet."""

    proposed_epochs: Mapping[int, int]
    """The proposed members, each with the broker epoch of its last fetch; -1 for the leader."""
    last_committed: CommittedIsr
    leader_epoch: int
    partition_epoch: int
    is_inflight: ClassVar[bool] = True
    """No other change may start."""

    @property
    def proposed_isr(self) -> frozenset[int]:
        """The members without their epochs."""
        return frozenset(self.proposed_epochs)

    @property
    def isr(self) -> frozenset[int]:
        """The committed ISR, which still holds."""
        return self.last_committed.isr

    @property
    def maximal_isr(self) -> frozenset[int]:
        """All members of the committed and of the proposed ISR."""
        return self.last_committed.isr | self.proposed_isr


IsrState = CommittedIsr | PendingIsr
