"""Makes the parts of one broker that replicate: as leader and as follower."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim.config import RACK_AWARE_SELECTOR
from broker_sim.controller import IsrMember, PartitionAlteration
from broker_sim.errors import ErrorCode
from broker_sim.replica import (
    AlterPartitionManager,
    FetcherManager,
    IsrDecision,
    LeaderLink,
    MetadataApplier,
    Partition,
    RackAwareReplicaSelector,
    ReplicaFetcher,
    ReplicaManager,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.broker.environment import Peer
    from broker_sim.config import BrokerConfig
    from broker_sim.controller import AlterPartitionResult, Controller
    from broker_sim.controller.controller_link import ControllerLink
    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.log import LogManager
    from broker_sim.metadata import TopicState
    from broker_sim.metadata.cache import MetadataCache
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica import IsrProposal, Purgatories, ReplicaQuota
    from broker_sim.runtime.process import Process


def make_replica_manager(
    config: BrokerConfig,
    process: Process,
    logs: LogManager,
    metadata: MetadataCache,
    purgatories: Purgatories,
    leader_quota: ReplicaQuota,
) -> ReplicaManager:
    """Return the manager of the partitions on this broker."""
    selector = None  # the leader itself
    if config.replica_selector_class == RACK_AWARE_SELECTOR:
        selector = RackAwareReplicaSelector(metadata)
    return ReplicaManager(
        purgatories,
        process.actions,
        metadata.is_known,
        leader_quota,
        offline_partitions=logs.offline,
        replica_selector=selector,
    )


def make_alter_partition_manager(broker: BrokerContext, controller: ControllerLink) -> AlterPartitionManager:
    """Return the sender of ISR changes to the controller; decisions are processed like requests."""

    def send(proposals: Sequence[IsrProposal], on_answer: Callable[[ErrorCode, Sequence[IsrDecision]], None]) -> None:
        broker_epoch = broker.broker_epoch()
        alterations = [_alteration(proposal, broker.broker_id, broker_epoch) for proposal in proposals]
        answer = partial(broker.process.actions.serve, on_answer)

        def alter_partition(active: Controller) -> list[IsrDecision]:
            results = active.alter_partition(broker.broker_id, broker_epoch, alterations)
            return [_decision(result) for result in results]

        controller.call(
            alter_partition,
            lambda decisions: answer(ErrorCode.NONE, decisions),
            lambda error: answer(error.error_code, ()),
        )

    return AlterPartitionManager(broker.process, send)


def _alteration(proposal: IsrProposal, broker_id: int, broker_epoch: int) -> PartitionAlteration:
    partition, pending = proposal
    epochs = {**pending.proposed_epochs, broker_id: broker_epoch}
    return PartitionAlteration(
        partition.topic_id,
        partition.topic_partition.partition,
        leader_epoch=pending.leader_epoch,
        partition_epoch=pending.partition_epoch,
        new_isr=[IsrMember(member, epoch) for member, epoch in epochs.items()],
    )


def _decision(result: AlterPartitionResult) -> IsrDecision:
    state = result.state
    if state is None:
        return IsrDecision(result.error_code)
    return IsrDecision(
        result.error_code,
        isr=frozenset(state.isr),
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
    )


def make_applier(
    broker: BrokerContext,
    peers: Mapping[int, Peer],
    replica_manager: ReplicaManager,
    alter_partition: AlterPartitionManager,
    follower_quota: ReplicaQuota,
) -> MetadataApplier:
    """Return the object that applies new metadata to the partitions on this broker."""
    leaders = LeaderLink(broker.broker_id, broker.links, lambda leader_id: peers[leader_id].replica_server)

    def make_fetcher(leader_id: int) -> ReplicaFetcher:
        return ReplicaFetcher(
            leader_id,
            broker.process,
            broker.config,
            leaders,
            replica_id=broker.broker_id,
            broker_epoch=broker.broker_epoch,
            complete_delayed_fetches=replica_manager.purgatories.fetch.check_and_complete,
            quota=follower_quota,
        )

    def open_partition(key: TopicPartition, topic: TopicState) -> Partition:
        config = broker.metadata.topic_config(topic)
        return Partition(
            key,
            topic.topic_id,
            broker.broker_id,
            broker.logs.get_or_create(key, topic.topic_id, config),
            config,
            clock=broker.clock,
            replica_lag_time_max_ms=broker.config.replica_lag_time_max_ms,
            metadata=broker.metadata,
            submit_alter_partition=alter_partition.submit,
            complete_delayed_requests=replica_manager.complete_delayed_requests,
        )

    return MetadataApplier(
        broker.broker_id,
        replica_manager,
        FetcherManager(make_fetcher),
        broker.logs,
        broker.metadata.topic_config,
        open_partition,
    )
