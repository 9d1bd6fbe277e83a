"""The coordinators of one broker, and the appends that ask them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.broker.coordinator_storage import ReplicatedStorage
from broker_sim.broker.partition_metadata_client import PartitionMetadataClient
from broker_sim.broker.txn_offset_verifier import TxnOffsetVerifier
from broker_sim.errors import ApiError
from broker_sim.group.environment import GroupEnvironment, LatestOffset
from broker_sim.group.service import GroupCoordinatorService
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from broker_sim.protocol.special_values import NO_OFFSET
from broker_sim.replica import AddPartitionsToTxnManager, TransactionalAppends
from broker_sim.share.coordinator.environment import ShareCoordinatorEnvironment
from broker_sim.share.coordinator.share_coordinator import ShareCoordinator
from broker_sim.share.persister.environment import PersisterEnvironment
from broker_sim.share.persister.state_persister import StatePersister
from broker_sim.share.state_apis import STATE_APIS
from broker_sim.transaction.coordinator import TransactionCoordinator
from broker_sim.transaction.environment import TransactionEnvironment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.broker.foundation import Foundation
    from broker_sim.broker.producer_ids import ProducerIds
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.protocol import messages
    from broker_sim.replica import ReplicaManager, ReplicaServer
    from broker_sim.share.persister.environment import ShareStateSender
    from broker_sim.share.share_state import Persister
    from broker_sim.share.state_apis import StateApi


def make_group_coordinator(
    base: Foundation, replica_manager: ReplicaManager, appends: TransactionalAppends, persister: Persister
) -> GroupCoordinatorService:
    """Return the coordinator of the groups in the partitions of `__consumer_offsets` that are led here."""
    peers = base.environment.peers

    def latest_offsets(
        leader: int, keys: Sequence[TopicPartition], respond: Callable[[Sequence[LatestOffset]], object]
    ) -> None:
        respond([_latest_offset(peers[leader].replica_server, key) for key in keys])

    return GroupCoordinatorService(
        GroupEnvironment(
            broker_id=base.broker_id,
            config=base.config,
            clock=base.process.clock,
            random=base.environment.random,
            call_later=base.process.call_later,
            run_beside=base.process.run_beside,
            image=lambda: base.metadata.image,
            storage=ReplicatedStorage(
                GROUP_METADATA_TOPIC, replica_manager, base.process.complete_soon, base.config.offsets_load_buffer_size
            ),
            verify_transaction=TxnOffsetVerifier(appends),
            persister=persister,
            latest_offsets=PartitionMetadataClient(
                base.make_sender(latest_offsets),
                lambda: base.metadata.image,
                base.environment.random,
                base.process.call_later,
                base.process.actions.serve,
            ),
            rebalance=base.purgatories.make("Rebalance"),
            heartbeat=base.purgatories.make("Heartbeat"),
        )
    )


def _latest_offset(leader: ReplicaServer, key: TopicPartition) -> LatestOffset:
    try:
        return LatestOffset(leader.latest_offset(key))
    except ApiError as error:
        return LatestOffset(NO_OFFSET, error.error_code)


def make_transaction_coordinator(
    base: Foundation, replica_manager: ReplicaManager, producer_ids: ProducerIds
) -> TransactionCoordinator:
    """Return the coordinator of the transactional ids in the partitions of `__transaction_state` that are led here."""
    peers = base.environment.peers
    return TransactionCoordinator(
        TransactionEnvironment(
            broker_id=base.broker_id,
            config=base.config,
            clock=base.process.clock,
            call_later=base.process.call_later,
            after_handler=base.process.after_serving,
            serve=base.process.actions.serve,
            image=lambda: base.metadata.image,
            storage=ReplicatedStorage(
                TRANSACTION_STATE_TOPIC,
                replica_manager,
                base.process.complete_soon,
                base.config.transaction_state_log_load_buffer_size,
            ),
            next_producer_id=producer_ids.next_id,
            markers=base.make_sender(
                lambda leader, request, respond: peers[leader].write_txn_markers(request, respond)
            ),
        )
    )


def make_share_coordinator(base: Foundation, replica_manager: ReplicaManager) -> ShareCoordinator:
    """Return the coordinator of the share partitions in the partitions of `__share_group_state` that are led here."""
    return ShareCoordinator(
        ShareCoordinatorEnvironment(
            broker_id=base.broker_id,
            config=base.config,
            clock=base.process.clock,
            call_later=base.process.call_later,
            image=lambda: base.metadata.image,
            storage=ReplicatedStorage(
                SHARE_GROUP_STATE_TOPIC,
                replica_manager,
                base.process.complete_soon,
                base.config.share_coordinator_load_buffer_size,
            ),
        )
    )


def make_persister(
    base: Foundation, coordinator: ShareCoordinator, create_state_topic: Callable[[], object]
) -> StatePersister:
    """Return what reaches the share coordinators of all brokers."""
    peers, process = base.environment.peers, base.process

    def sender(api: StateApi) -> ShareStateSender:
        return base.make_sender(lambda leader, request, respond: peers[leader].serve_share_state(api, request, respond))

    return StatePersister(
        PersisterEnvironment(
            random=base.environment.random,
            call_later=process.call_later,
            after_handler=process.after_serving,
            serve=process.actions.serve,
            image=lambda: base.metadata.image,
            partition_for=coordinator.partition_for,
            create_state_topic=create_state_topic,
            senders={api: sender(api) for api in STATE_APIS},
        )
    )


def make_transactional_appends(
    base: Foundation, replica_manager: ReplicaManager, transactions: TransactionCoordinator
) -> TransactionalAppends:
    """Return the appends that the coordinator of a transaction is asked about before."""
    peers, process = base.environment.peers, base.process

    def serve(
        coordinator: int,
        request: messages.AddPartitionsToTxnRequest,
        respond: Callable[[messages.AddPartitionsToTxnResponse], object],
    ) -> None:
        peers[coordinator].add_partitions_to_txn(request, respond)

    verifier = AddPartitionsToTxnManager(
        base.make_sender(serve), process.after_serving, lambda: base.metadata.image, transactions.states.partition_for
    )
    return TransactionalAppends(
        replica_manager,
        verifier,
        process.actions,
        base.config,
        base.logs.producers,
        clock=process.clock,
        call_later=process.call_later,
    )
