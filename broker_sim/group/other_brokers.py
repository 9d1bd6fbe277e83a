"""The counters of a broker's groups, and their questions to other brokers: transactions and latest offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker_sim.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from broker_sim.log import VerificationGuard
    from broker_sim.metadata.topic_partition import TopicPartition


@dataclass(slots=True)
class GroupCounters:
    """Counts of the group coordinator since the broker's start; mirrors the sensors of `GroupCoordinatorMetrics`."""

    offset_commits: int = 0
    offset_deletions: int = 0
    """Deletions by OffsetDelete; those of deleted groups and topics are not counted, as in Kafka."""
    offset_expirations: int = 0
    classic_group_rebalances: int = 0
    """Generations of classic groups whose assignments were stored."""
    consumer_group_rebalances: int = 0
    """New group epochs, but not those after a member was fenced, as in Kafka. So of the others."""
    share_group_rebalances: int = 0
    streams_group_rebalances: int = 0

    def count_rebalance(self, kind: str) -> None:
        """Count a new group epoch of a group of that kind, such as `consumer`."""
        name = f"{kind}_group_rebalances"
        setattr(self, name, getattr(self, name) + 1)


class VerifyTransaction(Protocol):
    """Asks a transaction's coordinator; mirrors `PartitionWriter.maybeStartTransactionVerification`."""

    def __call__(
        self,
        partition: int,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        api_version: int,
        on_result: Callable[[ErrorCode, VerificationGuard | None], object],
    ) -> None:
        """Ask whether a partition of `__consumer_offsets` is in the transaction, or add it.

        Which of the two tells the version of TxnOffsetCommit. `on_result` is called once, now or later,
        with the guard for the append to come; None where nobody had to be asked. The error is any of that
        coordinator's, or NOT_LEADER_OR_FOLLOWER.
        """


class LatestOffset(NamedTuple):
    """The high watermark of a partition, or why it is not known; mirrors `OffsetResponse`."""

    offset: int
    error_code: ErrorCode = ErrorCode.NONE


class ListLatestOffsets(Protocol):
    """Asks the leaders of partitions; mirrors `PartitionMetadataClient`."""

    def __call__(
        self, keys: Iterable[TopicPartition], on_result: Callable[[Mapping[TopicPartition, LatestOffset]], object]
    ) -> None:
        """Look for the latest offsets; `on_result` is called once, now or later, with each of them."""
