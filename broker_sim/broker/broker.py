"""One broker: its partitions, purgatories and background work; mirrors `kafka.server.BrokerServer`.

The parts are assembled here, on one `BrokerContext`, and live from `start` to `die`. Client requests go to
`RequestDispatcher`, followers' requests to `ReplicaServer`. Coordinators are imported and made with their first
request, or with their topic: most test clusters never need all of them.
"""

from __future__ import annotations

import random
from functools import cached_property, partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final

from broker_sim.broker.background_work import BackgroundWork
from broker_sim.broker.coordinators import (
    make_group_coordinator,
    make_persister,
    make_share_coordinator,
    make_share_partition_manager,
    make_storages,
    make_transaction_coordinator,
    make_transactional_appends,
)
from broker_sim.broker.dead_letter_topics import append_dead_letters, create_dead_letter_topic
from broker_sim.broker.dispatch import RequestDispatcher
from broker_sim.broker.dynamic_broker_config import DynamicBrokerConfig
from broker_sim.broker.guarded_apis import guarded_apis
from broker_sim.broker.late_metadata import LateMetadata
from broker_sim.broker.lifecycle import BrokerLifecycle, LifecycleState
from broker_sim.broker.producer_ids import ProducerIds
from broker_sim.broker.replication import make_alter_partition_manager, make_applier, make_replica_manager
from broker_sim.broker.streams_internal_topics import StreamsInternalTopics
from broker_sim.broker.throttling import Throttling
from broker_sim.broker.txn_marker_writer import TxnMarkerWriter
from broker_sim.controller.controller_link import ControllerLink
from broker_sim.coordinator.broker_context import BrokerContext
from broker_sim.fetch_session import FetchManager
from broker_sim.handlers.support.auto_topic_creation import create_coordinators_topic
from broker_sim.handlers.telemetry.client_metrics import ClientMetricsManager
from broker_sim.metadata import ImageChanges, MetadataImage, changes_between
from broker_sim.metadata.cache import MetadataCache
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from broker_sim.protocol.special_values import ACKS_ALL
from broker_sim.quota import ConnectionQuotas, QuotaManagers, ReplicationQuotas
from broker_sim.replica import LogDirMoves, Purgatories, ReplicaServer
from broker_sim.security import make_authorizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.broker.environment import BrokerEnvironment
    from broker_sim.config import BrokerConfig, Endpoint
    from broker_sim.errors import ApiError, ErrorCode
    from broker_sim.group.service import GroupCoordinatorService
    from broker_sim.group.shard import GroupShard
    from broker_sim.handlers import ApiTable
    from broker_sim.log import LogManager
    from broker_sim.metadata.topic_partition import TopicIdPartition, TopicPartition
    from broker_sim.protocol import messages
    from broker_sim.replica import ProducePartitionStatus
    from broker_sim.runtime.process import Process
    from broker_sim.share.coordinator.share_coordinator import ShareCoordinator
    from broker_sim.share.partition.share_partition_manager import SharePartitionManager
    from broker_sim.share.persister.persister import Persister
    from broker_sim.share.state_apis import StateApi
    from broker_sim.transaction.coordinator import TransactionCoordinator

COORDINATORS: Final = {
    "groups": GROUP_METADATA_TOPIC,
    "transactions": TRANSACTION_STATE_TOPIC,
    "share_coordinator": SHARE_GROUP_STATE_TOPIC,
}
"""The coordinators of a broker, each with the topic that is its log."""


class Broker:
    """A broker from its start to its death; a restarted one is a new object on the old logs."""

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        process: Process,
        logs: LogManager,
        endpoints: tuple[Endpoint, ...],
        environment: BrokerEnvironment,
    ) -> None:
        # -- the node
        self._environment = environment
        self.broker_id = broker_id
        self.config = config
        self.release = environment.api_table.release
        self.process = process
        self.clock = process.clock
        self.run_beside = process.run_beside
        self.random = environment.random
        self.logs = logs
        logs.on_offline = lambda key: process.call_soon(self._take_offline, key)
        self.lifecycle = BrokerLifecycle(broker_id, config, process, endpoints=endpoints, rng=environment.random)
        self.metadata = MetadataCache(broker_id, config, MetadataImage(version=-1, cluster_id=environment.cluster_id))
        self._late_metadata = LateMetadata(process, environment.metadata_delay, self._set_image)
        self._on_change = environment.on_change
        # -- permissions
        self.authorizer = make_authorizer(config)
        self.denials = environment.denials
        self.client_metrics = ClientMetricsManager(
            broker_id, config, process.clock, environment.random, environment.client_metrics
        )
        self.dynamic_config = DynamicBrokerConfig(broker_id, config)
        self.check_dynamic_configs = self.dynamic_config.validate
        self.quotas = QuotaManagers(config, process.clock)
        self.controller_quotas = environment.controller_quotas
        self.connection_quotas = ConnectionQuotas(config, process.clock)
        self.replication_quotas = ReplicationQuotas(config, process.clock, broker_id, self.metadata.configs_of_topic)
        # -- partitions
        self.purgatories = Purgatories(
            lambda name, purge_interval: environment.make_purgatory(name, broker_id, process, purge_interval), config
        )
        self.replica_manager = make_replica_manager(
            config, process, logs, self.metadata, self.purgatories, self.replication_quotas.leader
        )
        self.log_dir_moves = LogDirMoves(logs, process.call_later, config, self.replication_quotas.moves)
        self.replica_server = ReplicaServer(self.replica_manager, process.actions)
        context = self._context = self._make_context()
        self.controller = ControllerLink(context, environment.controller)
        self.alter_partition = make_alter_partition_manager(context, self.controller)
        self._applier = make_applier(
            context, environment.peers, self.replica_manager, self.alter_partition, self.replication_quotas.follower
        )
        self.fetch_manager = FetchManager(
            process.clock, config.max_incremental_fetch_session_cache_slots, self._session_ids
        )
        # -- coordinators
        # All purgatories are made at the start, in this order.
        for name in ("Rebalance", "Heartbeat"):
            self.purgatories.named(name)
        self.next_producer_id = ProducerIds(context, self.controller).next_id
        self.transactional_appends = make_transactional_appends(
            context, environment.peers, self.replica_manager, self._transaction_partition
        )
        self.create_internal_topics = StreamsInternalTopics(self).create
        self._txn_markers = TxnMarkerWriter(
            self.replica_manager, lambda: self.groups, process.clock, config.request_timeout_ms
        )
        self.dispatcher = self._make_dispatcher(environment.api_table)
        """Handles the requests of clients."""
        self.controller_endpoints: tuple[Endpoint, ...] = ()
        self.background_work = BackgroundWork(context, self.replica_manager, self.call_if_made)

    def _make_context(self) -> BrokerContext:
        return BrokerContext(
            broker_id=self.broker_id,
            config=self.config,
            process=self.process,
            logs=self.logs,
            metadata=self.metadata,
            random=self.random,
            links=self._environment.links,
            broker_epoch=lambda: self.lifecycle.broker_epoch,
            purgatory=self.purgatories.named,
            release=self.release,
            storage=make_storages(self.replica_manager, self.process),
        )

    def _make_dispatcher(self, apis: ApiTable) -> RequestDispatcher:
        return RequestDispatcher(
            self,
            apis if self.authorizer is None else guarded_apis(apis),
            self._environment.faults,
            self._environment.requests,
            self.process,
            Throttling(self.quotas, self.purgatories.named("ThrottledChannel"), self.clock),
        )

    def _session_ids(self) -> random.Random:
        """Return the random numbers for fetch session ids; ids from before a restart must not be repeated."""
        return random.Random(f"{self.image.cluster_id} {self.broker_id} {self.lifecycle.broker_epoch}")

    # -- coordinators ---------------------------------------------------------------------------

    @cached_property
    def transactions(self) -> TransactionCoordinator:
        """The transactional ids that this broker coordinates."""
        return make_transaction_coordinator(self._context, self._environment.peers, self.next_producer_id)

    @cached_property
    def share_coordinator(self) -> ShareCoordinator:
        """The state of share partitions that this broker coordinates."""
        return make_share_coordinator(self._context)

    @cached_property
    def persister(self) -> Persister:
        """The client of the share coordinators, which store the state of share partitions."""
        create_state_topic = partial(create_coordinators_topic, SHARE_GROUP_STATE_TOPIC, self)
        peers = self._environment.peers
        partition_for = self.share_coordinator.partition_for
        return make_persister(self._context, peers, partition_for, create_state_topic)

    @cached_property
    def share_partitions(self) -> SharePartitionManager:
        """The share partitions that this broker leads."""
        return make_share_partition_manager(
            self._context, self._environment, self.replica_manager, self._applier, self.persister
        )

    @cached_property
    def groups(self) -> GroupCoordinatorService:
        """The groups and offsets that this broker coordinates."""
        return make_group_coordinator(
            self._context, self._environment.peers, self.transactional_appends, lambda: self.persister
        )

    def _transaction_partition(self, transactional_id: str) -> int:
        return self.transactions.states.partition_for(transactional_id)

    def call_if_made(self, name: str, verb: Callable[[Any], object]) -> None:
        """Call `verb` with the coordinator in attribute `name`, unless it has not been made yet."""
        if name in vars(self):
            verb(getattr(self, name))

    @property
    def is_loading(self) -> bool:
        """Whether a group or transaction coordinator is still loading a partition; makes no coordinator."""
        made = vars(self)
        return ("groups" in made and self.groups.runtime.is_loading) or (
            "transactions" in made and self.transactions.states.runtime.is_loading
        )

    def group_shards(self) -> list[GroupShard]:
        """Return the loaded group shards, by partition; makes no coordinator."""
        return self.groups.shards() if "groups" in vars(self) else []

    @property
    def image(self) -> MetadataImage:
        """The newest metadata that this broker has."""
        return self.metadata.image

    @property
    def is_serving(self) -> bool:
        """Whether the broker accepts connections: from its unfencing until it dies."""
        # Not a set: in Python 3.11 hashing an enum member takes longer than everything else here.
        state = self.lifecycle.state
        return state is LifecycleState.RUNNING or state is LifecycleState.PENDING_CONTROLLED_SHUTDOWN

    # -- life -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Register with the controller and start the background work."""
        self.background_work.start()
        self.lifecycle.start(
            self.controller,
            lambda: self._late_metadata.applied_version,
            self.logs.clean_shutdown_epoch,
            on_unfenced=self._accept,
            offline_logs=self.logs.offline_logs,
        )

    def _take_offline(self, key: TopicPartition) -> None:
        """Stop serving a partition whose log has failed, and report it to the controller at once.

        A topic that was deleted in the meantime, even if created again, is not affected.
        """
        if key not in self.logs.offline:
            return
        self.process.actions.serve(self._applier.take_offline, key)
        self.lifecycle.propagate_failure()

    def _accept(self) -> None:
        """Accept calls of other brokers, and tell the owner of the sockets to accept clients."""
        self._context.links.listen(self.broker_id)
        self._on_change()

    def shutdown(self, on_stopped: Callable[[], object]) -> None:
        """Shut down cleanly, as on SIGTERM, and call `on_stopped()`; mirrors `BrokerServer.shutdown`.

        The broker keeps serving until its leaderships have moved away. Operations parked then get no response.
        """

        def stop() -> None:
            self.logs.shutdown(self.lifecycle.broker_epoch)
            self.die()
            on_stopped()

        if self.config.controlled_shutdown_enable:
            self._applier.begin_controlled_shutdown()
            self.lifecycle.begin_controlled_shutdown(stop)
        else:
            stop()

    def die(self) -> None:
        """Stop everything at once, as SIGKILL does: parked operations get no response."""
        self.process.kill()
        self.background_work.stop()
        for name in (*COORDINATORS, "share_partitions"):
            self.call_if_made(name, methodcaller("shutdown"))
        self.purgatories.shutdown()

    # -- metadata -------------------------------------------------------------------------------

    def apply_image(self, image: MetadataImage) -> None:
        """Apply the controller's newest metadata, after the delay of an injected fault, if any."""
        self._late_metadata.take(image)

    def _set_image(self, image: MetadataImage) -> Callable[[], object]:
        """Check requests against the image from now on; return the function that applies it to the partitions."""
        before = self.metadata.image
        self.metadata.image = image
        return partial(self._apply, before, image)

    def _apply(self, before: MetadataImage, image: MetadataImage) -> None:
        changes = changes_between(before, image)
        if changes.broker_configs_changed:
            self.background_work.reconfigure(self.metadata.broker_config())
            self.dynamic_config.apply(before, image)
            self._follow_dynamic_configs(self.metadata.dynamic_configs())
        if before.client_quotas is not image.client_quotas:
            self.quotas.update(image.client_quotas)
            self.connection_quotas.update(image.client_quotas)
        if before.version < 0:
            self.logs.delete_strays(self.metadata.is_hosted)
        self.process.actions.serve(self._follow, changes, image)
        self.lifecycle.on_image(image)
        self._on_change()

    def _follow_dynamic_configs(self, dynamic: Mapping[str, str]) -> None:
        self.connection_quotas.reconfigure(dynamic)
        self.replication_quotas.reconfigure(dynamic)

    def _follow(self, changes: ImageChanges, image: MetadataImage) -> None:
        self._applier.apply(changes, image)
        for name, topic in COORDINATORS.items():
            if topic in image.topics or name in vars(self):
                getattr(self, name).on_image(changes, image)
        self.call_if_made("share_partitions", methodcaller("on_image", image))

    # -- requests -------------------------------------------------------------------------------

    def controller_gate(self, endpoints: tuple[Endpoint, ...]) -> RequestDispatcher:
        """Return the dispatcher for the listeners at `endpoints`, which lead to the controller."""
        self.controller_endpoints = endpoints
        return self._make_dispatcher(self._environment.api_table.of_controllers())

    def add_partitions_to_txn(
        self,
        request: messages.AddPartitionsToTxnRequest,
        respond: Callable[[messages.AddPartitionsToTxnResponse], object],
    ) -> None:
        """Serve, as transaction coordinator, the leader of a partition that a transaction writes to."""
        from broker_sim.handlers.transactions.add_partitions_to_txn import serve_transactions  # noqa: PLC0415 - a handler

        self.process.actions.serve(serve_transactions, request.transactions, self.transactions, self.image, respond)

    def write_txn_markers(
        self, request: messages.WriteTxnMarkersRequest, respond: Callable[[messages.WriteTxnMarkersResponse], object]
    ) -> None:
        """Append transaction markers to partitions that this broker leads, for a client or a coordinator."""
        self.process.actions.serve(self._txn_markers.write, request, respond)

    def serve_share_state(self, api: StateApi, request: Any, respond: Callable[[Any], object]) -> None:
        """Serve a client or a persister, as its share coordinator."""
        self.process.actions.serve(self.share_coordinator.serve, api, request, respond)

    def append_dead_letters(
        self,
        batches: Mapping[TopicIdPartition, bytes],
        respond: Callable[[Mapping[TopicIdPartition, ErrorCode]], object],
    ) -> None:
        """Append a broker's dead letters to partitions that this broker leads, with acks=all."""
        self.process.actions.serve(append_dead_letters, self, batches, respond)

    def create_dead_letter_topic(self, name: str, respond: Callable[[ErrorCode], object]) -> None:
        """Create a topic for dead letters, as for a client of this broker."""
        create_dead_letter_topic(self, name, respond)

    def remove_member(self, group_id: str, member_id: str) -> None:
        """Remove a member from a group of any kind that this broker coordinates."""
        self.process.actions.serve(self.groups.remove_member, group_id, member_id)

    def rebalance_group(
        self, group_id: str, on_result: Callable[[ErrorCode], object], on_error: Callable[[ApiError], object]
    ) -> None:
        """Begin a rebalance of a group of any kind that this broker coordinates."""
        self.process.actions.serve(self.groups.rebalance, group_id, on_result, on_error)

    def append_acked(
        self,
        topic_partition: TopicPartition,
        records: bytes,
        timeout_ms: int,
        on_done: Callable[[ProducePartitionStatus], None],
    ) -> None:
        """Append a batch to a partition that this broker leads, as for a producer with acks=all."""
        self._append(topic_partition, records, on_done, timeout_ms=timeout_ms, required_acks=ACKS_ALL)

    def append_own(self, topic_partition: TopicPartition, records: bytes) -> ErrorCode:
        """Append a batch to a partition that this broker leads, as with acks=1; return the error code."""
        answers: list[ErrorCode] = []
        self._append(
            topic_partition, records, lambda status: answers.append(status.error_code), timeout_ms=0, required_acks=1
        )
        return answers[0]

    def _append(
        self,
        topic_partition: TopicPartition,
        records: bytes,
        on_done: Callable[[ProducePartitionStatus], None],
        *,
        timeout_ms: int,
        required_acks: int,
    ) -> None:
        self.process.actions.serve(
            partial(
                self.replica_manager.append_records,
                {topic_partition: records},
                lambda statuses: on_done(statuses[topic_partition]),
                timeout_ms=timeout_ms,
                required_acks=required_acks,
            )
        )
