"""The coordinators of one broker, on its partitions, its clock and its purgatories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.broker.coordinator_storage import ReplicatedStorage
from broker_sim.broker.txn_offset_verifier import TxnOffsetVerifier
from broker_sim.group.environment import GroupEnvironment
from broker_sim.group.service import GroupCoordinatorService
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from broker_sim.transaction.coordinator import TransactionCoordinator
from broker_sim.transaction.environment import TransactionEnvironment

if TYPE_CHECKING:
    import random

    from broker_sim.broker.marker_link import MarkerLink
    from broker_sim.broker.producer_ids import ProducerIds
    from broker_sim.config import BrokerConfig
    from broker_sim.metadata.cache import MetadataCache
    from broker_sim.replica import Purgatories, ReplicaManager, TransactionalAppends
    from broker_sim.runtime.process import Process

__all__ = ["make_group_coordinator", "make_transaction_coordinator"]


def make_group_coordinator(
    broker_id: int,
    config: BrokerConfig,
    process: Process,
    rng: random.Random,
    metadata: MetadataCache,
    purgatories: Purgatories,
    replica_manager: ReplicaManager,
    appends: TransactionalAppends,
) -> GroupCoordinatorService:
    """Return the coordinator of the groups in the partitions of `__consumer_offsets` that are led here."""
    storage = ReplicatedStorage(
        GROUP_METADATA_TOPIC,
        replica_manager,
        process.complete_soon,
        config.offsets_load_buffer_size,
    )
    return GroupCoordinatorService(
        GroupEnvironment(
            broker_id=broker_id,
            config=config,
            clock=process.clock,
            random=rng,
            call_later=process.call_later,
            image=lambda: metadata.image,
            storage=storage,
            verify_transaction=TxnOffsetVerifier(appends),
            rebalance=purgatories.make("Rebalance"),
            heartbeat=purgatories.make("Heartbeat"),
        )
    )


def make_transaction_coordinator(
    broker_id: int,
    config: BrokerConfig,
    process: Process,
    metadata: MetadataCache,
    replica_manager: ReplicaManager,
    producer_ids: ProducerIds,
    markers: MarkerLink,
) -> TransactionCoordinator:
    """Return the coordinator of the transactional ids in the partitions of `__transaction_state` that are led here."""
    storage = ReplicatedStorage(
        TRANSACTION_STATE_TOPIC,
        replica_manager,
        process.complete_soon,
        config.transaction_state_log_load_buffer_size,
    )
    return TransactionCoordinator(
        TransactionEnvironment(
            broker_id=broker_id,
            config=config,
            clock=process.clock,
            call_later=process.call_later,
            after_handler=process.after_serving,
            image=lambda: metadata.image,
            storage=storage,
            next_producer_id=producer_ids.next_id,
            markers=markers,
        )
    )
