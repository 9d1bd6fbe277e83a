"""The replicas of one broker, as their leader and as a follower of others."""

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
    from collections.abc import Callable, Sequence

    from broker_sim.broker.controller_link import ControllerLink
    from broker_sim.broker.foundation import Foundation
    from broker_sim.errors import ErrorCode
    from broker_sim.replica import IsrDecision, IsrProposal, ReplicaQuota


def make_replica_manager(base: Foundation, leader_quota: ReplicaQuota) -> ReplicaManager:
    """Return what serves the partitions on this broker."""
    selector = None  # the leader itself
    if base.config.replica_selector_class == RACK_AWARE_SELECTOR:
        selector = RackAwareReplicaSelector(base.metadata)
    manager = ReplicaManager(base.purgatories, base.process.actions, base.metadata.is_known, selector)
    manager.offline_partitions = base.logs.offline
    manager.leader_quota = leader_quota
    return manager


def make_alter_partition_manager(base: Foundation, controller: ControllerLink) -> AlterPartitionManager:
    """Return what tells the controller of changed ISRs; its decisions are served as requests are."""

    def send(proposals: Sequence[IsrProposal], on_answer: Callable[[ErrorCode, Sequence[IsrDecision]], None]) -> None:
        controller.send_isr_changes(proposals, partial(base.process.actions.serve, on_answer))

    return AlterPartitionManager(base.process, send)


def make_applier(
    base: Foundation,
    replica_manager: ReplicaManager,
    alter_partition: AlterPartitionManager,
    follower_quota: ReplicaQuota,
) -> MetadataApplier:
    """Return what lets the partitions on this broker follow the metadata."""
    peers = base.environment.peers
    fetchers = FetcherManager(
        base.broker_id,
        base.process,
        base.config,
        LeaderLink(base.broker_id, base.environment.links, lambda leader_id: peers[leader_id].replica_server),
        broker_epoch=base.broker_epoch,
        complete_delayed_fetches=base.purgatories.fetch.check_and_complete,
        quota=follower_quota,
    )
    store = PartitionStore(
        base.broker_id,
        base.config,
        base.logs,
        base.metadata,
        clock=base.process.clock,
        submit_alter_partition=alter_partition.submit,
        complete_delayed_requests=replica_manager.complete_delayed_requests,
    )
    return MetadataApplier(base.broker_id, replica_manager, fetchers, store, base.metadata.topic_config)
