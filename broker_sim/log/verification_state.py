"""Transactions of which a partition asks the coordinator; mirrors `VerificationStateEntry` (KIP-890).

The first batch that a producer writes to a partition in a transaction is appended only when the
coordinator knows that the partition is part of it. The answer may come late, after the transaction has
ended: then nobody would ever end what is appended. So each question has a guard, an object that only
the append after the answer shows, and that is dropped with the next marker or batch of the transaction.
"""

from __future__ import annotations


class VerificationGuard:
    """Stands for one question to the coordinator; equal to nothing but itself."""

    __slots__ = ()


class VerificationStateEntry:
    """The question about one producer, and the lowest sequence that it has tried to write.

    A higher sequence is refused until that one is appended. Otherwise a batch whose verification failed
    could never be retried. `supports_epoch_bump` says that the producer uses transaction version 2.
    """

    __slots__ = ("epoch", "guard", "lowest_sequence", "supports_epoch_bump", "timestamp")

    def __init__(self, timestamp: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> None:
        self.timestamp = timestamp
        self.guard = VerificationGuard()
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump

    def update(self, sequence: int, epoch: int) -> None:
        """Take another batch that needs verification; a higher epoch begins anew."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
