"""Sends ISR changes to the controller in batches; mirrors `DefaultAlterPartitionManager`.

One request is in flight at a time; later proposals go with the next request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from broker_sim.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.replica.isr_state import PendingIsr
    from broker_sim.replica.partition import Partition
    from broker_sim.runtime.process import Process

RETRY_BACKOFF_MS = 50


class IsrProposal(NamedTuple):
    """A partition and the ISR that its leader proposes."""

    partition: Partition
    pending: PendingIsr


class IsrDecision(NamedTuple):
    """The controller's answer to one proposal; after an error the other fields mean nothing."""

    error_code: ErrorCode
    isr: frozenset[int] = frozenset()
    leader_epoch: int = -1
    partition_epoch: int = -1


class AlterPartitionManager:
    """Collects proposals, and passes the controller's decisions to the partitions."""

    def __init__(
        self,
        process: Process,
        send: Callable[[Sequence[IsrProposal], Callable[[ErrorCode, Sequence[IsrDecision]], None]], None],
    ) -> None:
        self._process = process
        self._send = send
        self._unsent: list[IsrProposal] = []
        self._inflight = False
        self.isr_shrinks = 0
        """Shrinks that the controller accepted from this broker, as in `IsrShrinksPerSec`."""
        self.isr_expands = 0
        """Expansions that the controller accepted, as in `IsrExpandsPerSec`."""
        self.failed_isr_updates = 0
        """Refusals by the controller, as in `FailedIsrUpdatesPerSec`."""

    def submit(self, partition: Partition, pending: PendingIsr) -> None:
        """Propose `pending`; the partition gets the decision."""
        self._unsent.append(IsrProposal(partition, pending))
        self._maybe_send()

    def _maybe_send(self) -> None:
        if self._inflight or not self._unsent:
            return
        self._inflight = True
        batch, self._unsent = self._unsent, []
        self._send(batch, lambda error_code, decisions: self._on_answer(batch, error_code, decisions))

    def _on_answer(self, batch: Sequence[IsrProposal], error_code: ErrorCode, decisions: Sequence[IsrDecision]) -> None:
        self._inflight = False
        if error_code is not ErrorCode.NONE:
            self._unsent[:0] = batch
            self._process.call_later(RETRY_BACKOFF_MS, self._maybe_send)
            return
        retry: list[IsrProposal] = []
        for proposal, decision in zip(batch, decisions, strict=True):
            partition, pending = proposal
            if decision.error_code is ErrorCode.NONE:
                self._count(pending)
                partition.complete_alter_partition(
                    pending, decision.isr, decision.leader_epoch, decision.partition_epoch
                )
                continue
            self.failed_isr_updates += 1
            if partition.fail_alter_partition(pending, decision.error_code):
                retry.append(proposal)
        if retry:
            self._unsent[:0] = retry
            self._process.call_later(RETRY_BACKOFF_MS, self._maybe_send)
        else:
            self._maybe_send()

    def _count(self, decided: PendingIsr) -> None:
        if len(decided.proposed_isr) < len(decided.isr):
            self.isr_shrinks += 1
        else:
            self.isr_expands += 1
