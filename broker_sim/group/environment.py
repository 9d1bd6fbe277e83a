"""What a broker gives its groups: configuration, time, chance, metadata, purgatories, the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from broker_sim.errors import ErrorCode

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping

    from broker_sim_purgatory import Clock, DelayedOperationPurgatory

    from broker_sim.config import BrokerConfig
    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.log import VerificationGuard
    from broker_sim.metadata import MetadataImage
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.runtime.process import CallLater, RunBeside
    from broker_sim.share.persister.persister import Persister


@dataclass(slots=True)
class GroupCounters:
    """Counts of the group coordinator since the broker's start; mirrors the sensors of `GroupCoordinatorMetrics`."""

    offset_commits: int = 0
    offset_deletions: int = 0
    """By OffsetDelete; those of deleted groups and topics are not counted, as in Kafka."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupEnvironment:
    """The same for all groups of a broker."""

    broker: BrokerContext
    verify_transaction: VerifyTransaction
    persister: Persister
    """Has the state of share partitions."""
    latest_offsets: ListLatestOffsets
    rebalance: DelayedOperationPurgatory[Any]
    """The purgatory "Rebalance": joins and syncs that wait, keyed by `GroupKey`."""
    heartbeat: DelayedOperationPurgatory[Any]
    """The purgatory "Heartbeat": one operation for each member, keyed by `MemberKey`."""
    counters: GroupCounters = field(default_factory=GroupCounters)

    @property
    def broker_id(self) -> int:
        """The broker's id."""
        return self.broker.broker_id

    @property
    def config(self) -> BrokerConfig:
        """The broker's static configuration."""
        return self.broker.config

    @property
    def clock(self) -> Clock:
        """The broker's clock: `now_ms` for waits, `wall_clock_ms` for what is written into records."""
        return self.broker.process.clock

    @property
    def random(self) -> random.Random:
        """The only source of chance."""
        return self.broker.random

    @property
    def call_later(self) -> CallLater:
        """Runs callbacks later in the broker's process."""
        return self.broker.process.call_later

    @property
    def run_beside(self) -> RunBeside:
        """Runs long work beside the broker's process."""
        return self.broker.process.run_beside

    def image(self) -> MetadataImage:
        """Return the newest metadata that the broker has heard of."""
        return self.broker.metadata.image
