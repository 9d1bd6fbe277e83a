"""Makes the parts of one broker that replicate: as leader and as follower."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from broker_sim.config import RACK_AWARE_SELECTOR
from broker_sim.replica import (
    AlterPartitionManager,
    FetcherManager,
    LeaderLink,
    MetadataApplier,
    PartitionStore,
    RackAwareReplicaSelector,
    ReplicaManager,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.broker.controller_link import ControllerLink
    from broker_sim.broker.environment import Peer
    from broker_sim.config import BrokerConfig
    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.errors import ErrorCode
    from broker_sim.log import LogManager
    from broker_sim.metadata.cache import MetadataCache
    from broker_sim.replica import IsrDecision, IsrProposal, Purgatories, ReplicaQuota
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
    manager = ReplicaManager(purgatories, process.actions, metadata.is_known, selector)
    manager.offline_partitions = logs.offline
    manager.leader_quota = leader_quota
    return manager


def make_alter_partition_manager(broker: BrokerContext, controller: ControllerLink) -> AlterPartitionManager:
    """Return the sender of ISR changes to the controller; decisions are processed like requests."""

    def send(proposals: Sequence[IsrProposal], on_answer: Callable[[ErrorCode, Sequence[IsrDecision]], None]) -> None:
        controller.send_isr_changes(proposals, partial(broker.process.actions.serve, on_answer))

    return AlterPartitionManager(broker.process, send)


def make_applier(
    broker: BrokerContext,
    peers: Mapping[int, Peer],
    replica_manager: ReplicaManager,
    alter_partition: AlterPartitionManager,
    follower_quota: ReplicaQuota,
) -> MetadataApplier:
    """Return the object that applies new metadata to the partitions on this broker."""
    fetchers = FetcherManager(
        broker.broker_id,
        broker.process,
        broker.config,
        LeaderLink(broker.broker_id, broker.links, lambda leader_id: peers[leader_id].replica_server),
        broker_epoch=broker.broker_epoch,
        complete_delayed_fetches=replica_manager.purgatories.fetch.check_and_complete,
        quota=follower_quota,
    )
    store = PartitionStore(
        broker.broker_id,
        broker.config,
        broker.logs,
        broker.metadata,
        clock=broker.clock,
        submit_alter_partition=alter_partition.submit,
        complete_delayed_requests=replica_manager.complete_delayed_requests,
    )
    return MetadataApplier(broker.broker_id, replica_manager, fetchers, store, broker.metadata.topic_config)
