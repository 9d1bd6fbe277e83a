"""Makes the coordinators of one broker, and the senders of their requests to other brokers.

Each function imports the coordinator that it makes: a broker that coordinates nothing loads none of them.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from broker_sim.broker.coordinator_storage import ReplicatedStorage
from broker_sim.config.coordinator_configs import DEFAULT_DEAD_LETTERS, DEFAULT_STATE_PERSISTER
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.record_batch import NO_SEQUENCE
from broker_sim.protocol.special_values import NO_OFFSET
from broker_sim.replica import (
    AddPartitionsToTxnManager,
    TransactionalAppends,
    TransactionalProducer,
    TransactionSupportedOperation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from broker_sim.broker.environment import BrokerEnvironment, Peer
    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.storage import CoordinatorStorage
    from broker_sim.group.other_brokers import LatestOffset
    from broker_sim.group.service import GroupCoordinatorService
    from broker_sim.log import VerificationGuard
    from broker_sim.metadata.topic_partition import TopicIdPartition
    from broker_sim.protocol import messages
    from broker_sim.replica import MetadataApplier, ReplicaManager, ReplicaServer
    from broker_sim.runtime.process import Process
    from broker_sim.share.coordinator.share_coordinator import ShareCoordinator
    from broker_sim.share.dead_letters.dead_letter_queue import DeadLetterQueue, NoOpDeadLetterQueue
    from broker_sim.share.partition.log_reader import LogReader
    from broker_sim.share.partition.share_partition_manager import SharePartitionManager
    from broker_sim.share.persister.persister import Persister
    from broker_sim.share.settings import ShareGroupSettings
    from broker_sim.share.state_apis import StateApi
    from broker_sim.transaction.coordinator import TransactionCoordinator

    Peers = Mapping[int, Peer]


def _always(api_key: ApiKey) -> Callable[[object], str]:
    """Return a function that returns the name of that API for each request."""
    return lambda _request: api_key.api_name


def make_storages(replica_manager: ReplicaManager, process: Process) -> Callable[[str, int], CoordinatorStorage]:
    """Return the factory of storages for the coordinators' topics; see `BrokerContext.storage`."""
    return lambda topic, read_bytes: ReplicatedStorage(topic, replica_manager, process.complete_soon, read_bytes)


def make_group_coordinator(
    broker: BrokerContext, peers: Peers, appends: TransactionalAppends, persister: Callable[[], Persister]
) -> GroupCoordinatorService:
    """Return the coordinator of the groups in the partitions of `__consumer_offsets` that this broker leads."""
    from broker_sim.broker.partition_metadata_client import PartitionMetadataClient
    from broker_sim.group.other_brokers import LatestOffset
    from broker_sim.group.service import GroupCoordinatorService

    def verify_transaction(
        partition: int,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        api_version: int,
        on_result: Callable[[ErrorCode, VerificationGuard | None], object],
    ) -> None:
        """Verify a transaction that commits offsets, as for a produce request; mirrors `CoordinatorPartitionWriter`."""
        key = TopicPartition(GROUP_METADATA_TOPIC, partition)
        appends.verify(
            {key: NO_SEQUENCE},
            TransactionalProducer(transactional_id, producer_id, producer_epoch),
            TransactionSupportedOperation.of_txn_offset_commit(api_version),
            lambda errors, guards: on_result(errors.get(key, ErrorCode.NONE), guards.get(key)),
        )

    def latest_offset(leader: ReplicaServer, key: TopicPartition) -> LatestOffset:
        try:
            return LatestOffset(leader.latest_offset(key))
        except ApiError as error:
            return LatestOffset(NO_OFFSET, error.error_code)

    def latest_offsets(
        leader: int, keys: Sequence[TopicPartition], respond: Callable[[Sequence[LatestOffset]], object]
    ) -> None:
        respond([latest_offset(peers[leader].replica_server, key) for key in keys])

    return GroupCoordinatorService(
        broker,
        verify_transaction=verify_transaction,
        latest_offsets=PartitionMetadataClient(broker, broker.sender(latest_offsets, _always(ApiKey.LIST_OFFSETS))),
        persister=persister,
    )


def make_transaction_coordinator(
    broker: BrokerContext, peers: Peers, next_producer_id: Callable[[], int | None]
) -> TransactionCoordinator:
    """Return the coordinator of the transactional ids in partitions of `__transaction_state` that this broker leads."""
    from broker_sim.transaction.coordinator import TransactionCoordinator

    def write_markers(
        leader: int,
        request: messages.WriteTxnMarkersRequest,
        respond: Callable[[messages.WriteTxnMarkersResponse], object],
    ) -> None:
        peers[leader].write_txn_markers(request, respond)

    return TransactionCoordinator(
        broker, next_producer_id, broker.sender(write_markers, _always(ApiKey.WRITE_TXN_MARKERS))
    )


def make_transactional_appends(
    broker: BrokerContext, peers: Peers, replica_manager: ReplicaManager, partition_for: Callable[[str], int]
) -> TransactionalAppends:
    """Return the transactional appends, which the transaction coordinator verifies first.

    `partition_for(transactional_id)` returns the id's partition of `__transaction_state`.
    """

    def add_partitions(
        coordinator: int,
        request: messages.AddPartitionsToTxnRequest,
        respond: Callable[[messages.AddPartitionsToTxnResponse], object],
    ) -> None:
        peers[coordinator].add_partitions_to_txn(request, respond)

    verifier = AddPartitionsToTxnManager(
        broker.sender(add_partitions, _always(ApiKey.ADD_PARTITIONS_TO_TXN)),
        broker.process.after_serving,
        broker.image,
        partition_for,
    )
    return TransactionalAppends(
        replica_manager,
        verifier,
        broker.process.actions,
        broker.config,
        broker.logs.producers,
        clock=broker.clock,
        call_later=broker.call_later,
    )


def make_share_coordinator(broker: BrokerContext) -> ShareCoordinator:
    """Return the coordinator of the share partitions with their state in partitions that this broker leads."""
    from broker_sim.share.coordinator.share_coordinator import ShareCoordinator

    return ShareCoordinator(broker)


def make_persister(
    broker: BrokerContext,
    peers: Peers,
    partition_for: Callable[[str], int],
    create_state_topic: Callable[[], object],
) -> Persister:
    """Return the persister, which calls the share coordinators of all brokers or stores nothing.

    `partition_for(key)` returns the partition of `__share_group_state` for a share partition's key.
    """
    from broker_sim.share.persister.persister import DefaultStatePersister, NoOpStatePersister

    if broker.config.group_share_persister_class_name != DEFAULT_STATE_PERSISTER:
        return NoOpStatePersister()

    def serve(leader: int, call: tuple[StateApi, Any], respond: Callable[[Any], object]) -> None:
        peers[leader].serve_share_state(*call, respond)

    sender = broker.sender(serve, lambda call: ApiKey(call[0].request.API_KEY).api_name)
    return DefaultStatePersister(broker, sender, partition_for, create_state_topic)


def _make_dead_letter_queue(
    broker: BrokerContext, peers: Peers, settings: ShareGroupSettings, reader: LogReader
) -> DeadLetterQueue | NoOpDeadLetterQueue:
    """Return the queue of dead letters, which calls the leaders of their topics' partitions or writes nothing."""
    from broker_sim.share.dead_letters.dead_letter_queue import DeadLetterQueue, NoOpDeadLetterQueue

    if broker.config.group_share_dlq_manager_class_name != DEFAULT_DEAD_LETTERS:
        return NoOpDeadLetterQueue()

    def append(
        leader: int,
        batches: Mapping[TopicIdPartition, bytes],
        respond: Callable[[Mapping[TopicIdPartition, ErrorCode]], object],
    ) -> None:
        peers[leader].append_dead_letters(batches, respond)

    def create(broker_id: int, name: str, respond: Callable[[ErrorCode], object]) -> None:
        peers[broker_id].create_dead_letter_topic(name, respond)

    appends = broker.sender(append, _always(ApiKey.PRODUCE))
    creations = broker.sender(create, _always(ApiKey.CREATE_TOPICS))
    return DeadLetterQueue(broker, settings, reader.read, appends, creations)


def make_share_partition_manager(
    broker: BrokerContext,
    environment: BrokerEnvironment,
    replica_manager: ReplicaManager,
    applier: MetadataApplier,
    persister: Persister,
) -> SharePartitionManager:
    """Return the manager of the share partitions that this broker leads; their locks have a separate timer."""
    from broker_sim.share.partition.log_reader import LogReader
    from broker_sim.share.partition.share_partition import SharePartitionEnvironment
    from broker_sim.share.partition.share_partition_manager import SharePartitionManager
    from broker_sim.share.partition.waiting_share_fetches import WaitingShareFetches
    from broker_sim.share.settings import ShareGroupSettings

    reader, settings = LogReader(replica_manager), ShareGroupSettings(broker.config, broker.image)
    has_dead_letters = broker.release.is_at_least("4.4")
    return SharePartitionManager(
        SharePartitionEnvironment(
            persister=persister,
            reader=reader,
            settings=settings,
            waiting_fetches=WaitingShareFetches(broker.purgatory("ShareFetch"), broker.process.after_serving),
            lock_timer=environment.make_purgatory.make_timer("share-group-lock-timeout", broker.process),
            clock=broker.clock,
            dead_letters=(
                _make_dead_letter_queue(broker, environment.peers, settings, reader) if has_dead_letters else None
            ),
        ),
        applier.listeners,
        # A separate generator: the brokers' random numbers must not depend on the fetches.
        random.Random(f"share fetches of {environment.cluster_id} {broker.broker_id}"),
        broker.config.group_share_max_share_sessions,
    )
