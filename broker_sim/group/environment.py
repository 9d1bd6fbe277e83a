"""What a broker gives its groups: configuration, time, chance, metadata, purgatories, the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from broker_sim.errors import ErrorCode
from broker_sim.group.counters import GroupCounters

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping

    from broker_sim_purgatory import Clock, DelayedOperationPurgatory

    from broker_sim.config import BrokerConfig
    from broker_sim.coordinator.storage import CoordinatorStorage
    from broker_sim.log import VerificationGuard
    from broker_sim.metadata import MetadataImage
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.runtime.process import CallLater, RunBeside
    from broker_sim.share.share_state import Persister


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEnvironment:
    """The same for all groups of a broker."""

    broker_id: int
    config: BrokerConfig
    clock: Clock
    """`now_ms` for waits, `wall_clock_ms` for what is written into records."""
    random: random.Random
    call_later: CallLater
    run_beside: RunBeside
    image: Callable[[], MetadataImage]
    """Returns the newest metadata that the broker has heard of."""
    storage: CoordinatorStorage
    verify_transaction: VerifyTransaction
    persister: Persister
    """Has the state of share partitions."""
    latest_offsets: ListLatestOffsets
    rebalance: DelayedOperationPurgatory[Any]
    """The purgatory "Rebalance": joins and syncs that wait, keyed by `GroupKey`."""
    heartbeat: DelayedOperationPurgatory[Any]
    """The purgatory "Heartbeat": one operation for each member, keyed by `MemberKey`."""
    counters: GroupCounters = field(default_factory=GroupCounters)
