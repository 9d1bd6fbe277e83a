"""The active controller of the cluster.

Mirrors `QuorumController` of Kafka, as one controller that never fails. Deliberate differences:
there is no quorum and no metadata log. Every call takes effect at once, brokers get the new image
through `publish`, and the image's version stands for the log's offset.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Final

from broker_sim_purgatory import Clock

from broker_sim.config import BrokerConfig, Endpoint
from broker_sim.controller.acl_control_manager import create_acls, delete_acls
from broker_sim.controller.change_events import log_changes
from broker_sim.controller.client_quota_control_manager import alter_client_quotas
from broker_sim.controller.cluster_control_manager import BrokerControlState, ClusterControlManager
from broker_sim.controller.configuration_control_manager import ConfigurationControlManager
from broker_sim.controller.delegation_token_control_manager import DelegationTokenControlManager
from broker_sim.controller.feature_control_manager import update_features
from broker_sim.controller.features import DEFAULT_FEATURES, SUPPORTED_FEATURES, SupportedFeature
from broker_sim.controller.periodic_tasks import PeriodicTasks
from broker_sim.controller.producer_id_control_manager import ProducerIdControlManager
from broker_sim.controller.reassignment_control_manager import alter_partition_reassignments, ongoing_reassignments
from broker_sim.controller.replication_control_manager import ReplicationControlManager
from broker_sim.controller.requests import (
    AlterPartitionResult,
    Charge,
    ClientQuotaAlteration,
    ConfigAlteration,
    ConfigResource,
    CreatableTopic,
    CreateTopicResult,
    DeletedAcls,
    DeleteTopicResult,
    ElectionType,
    FeatureUpdate,
    HeartbeatReply,
    NewPartitions,
    OngoingReassignment,
    Outcome,
    PartitionAlteration,
    PartitionOutcome,
    ProducerIdsBlock,
    Reassignment,
    ScramDeletion,
    ScramResults,
    ScramUpsertion,
    free_of_charge,
)
from broker_sim.controller.scram_control_manager import alter_scram_credentials
from broker_sim.controller.status import ControllerStatus, QuorumStatus, controller_status
from broker_sim.controller.topic_control_manager import TopicControlManager
from broker_sim.metadata import BrokerState, MetadataDelta, MetadataImage
from broker_sim.metadata.acl import Acl, AclFilter
from broker_sim.metadata.delegation_token import DelegationToken
from broker_sim.metadata.kafka_principal import KafkaPrincipal
from broker_sim.metadata.quota_entity import QuotaEntity
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.release import Release, find_release

_FENCE_CHECKS_PER_SESSION: Final = 8


class Controller:
    """Decides on brokers, topics, leaders and configurations; owns the current `image`.

    All methods are synchronous. A method that changes anything makes one new image and calls
    `publish(image)` once before it returns. `tick` runs periodic work; call it at
    `next_deadline_ms`. Not thread-safe.
    """

    def __init__(
        self,
        clock: Clock,
        rng: Random,
        config: BrokerConfig,
        *,
        publish: Callable[[MetadataImage], None],
        cluster_id: str,
        features: Mapping[str, int] = DEFAULT_FEATURES,
        supported_features: Sequence[SupportedFeature] = SUPPORTED_FEATURES,
        release: Release | None = None,
        producer_ids: ProducerIdControlManager | None = None,
        restored: MetadataImage | None = None,
    ) -> None:
        """Begin with `restored`, the image of an earlier controller, or with an empty cluster of `features`."""
        self._release = release or find_release()
        self._cluster = ClusterControlManager(clock, config.broker_session_timeout_ms)
        self._configs = ConfigurationControlManager(config, self._release)
        self._replication = ReplicationControlManager(self._configs)
        self._topics = TopicControlManager(config, self._configs, self._cluster, rng)
        self._supported_features = supported_features
        self._tokens = DelegationTokenControlManager(config, clock, rng)
        self._tasks = self._periodic_tasks(config, clock.now_ms())
        self._producer_ids = producer_ids or ProducerIdControlManager()
        first = restored or MetadataImage(0, cluster_id, features=features)
        self._first_features = first.features
        delta = MetadataDelta(first)
        if restored is None:
            self._configs.bootstrap(delta)
        self._clock = clock
        self._publish = publish
        self.image = delta.apply()
        self._cluster.restore(self.image)

    @contextmanager
    def _change(self, validate_only: bool = False) -> Iterator[MetadataDelta]:
        """Yield a delta and commit it at the end; an exception or `validate_only` discards it."""
        delta = MetadataDelta(self.image)
        yield delta
        if not (validate_only or delta.is_empty):
            image = delta.apply()
            log_changes(self.image, image, self._clock)
            self.image = image
            self._publish(image)

    # -- brokers --------------------------------------------------------------------------------

    def register_broker(
        self,
        broker_id: int,
        *,
        endpoints: tuple[Endpoint, ...],
        rack: str | None,
        incarnation_id: bytes,
        previous_broker_epoch: int = -1,
    ) -> int:
        """Register the broker, fenced until its heartbeats show that it has caught up.

        `previous_broker_epoch` is the epoch of the broker's last clean shutdown, -1 if there was
        none. If the last incarnation had another epoch, it shut down uncleanly. Returns the new
        broker epoch. Raises ApiError with DUPLICATE_BROKER_REGISTRATION until the session of
        another incarnation expires; the broker retries.
        """
        with self._change() as delta:
            existing = self.image.brokers.get(broker_id)
            broker = self._cluster.register(
                delta,
                BrokerState(
                    broker_id, endpoints=endpoints, rack=rack, epoch=-1, fenced=True, incarnation_id=incarnation_id
                ),
            )
            if existing is not None and existing.epoch != broker.epoch:
                clean = existing.epoch == previous_broker_epoch
                self._replication.handle_new_incarnation(delta, broker_id, clean_shutdown=clean)
        return broker.epoch

    def broker_heartbeat(
        self,
        broker_id: int,
        broker_epoch: int,
        *,
        wants_shutdown: bool,
        current_metadata_version: int,
        offline_logs: frozenset[tuple[bytes, int]] = frozenset(),
    ) -> HeartbeatReply:
        """Renew the broker's session, and unfence it or allow it to shut down if possible.

        `offline_logs` are topic ids and partitions that it cannot serve. Raises ApiError with STALE_BROKER_EPOCH.
        """
        with self._change() as delta:
            self._cluster.track(broker_id, broker_epoch)
            self._cluster.check_broker_epoch(delta, broker_id, broker_epoch)
            broker = delta.brokers[broker_id]
            self._replication.handle_offline_logs(delta, broker_id, offline_logs)
            caught_up = self._cluster.is_caught_up(broker_id, current_metadata_version)
            current = self._cluster.current_state(broker)
            state = self._cluster.next_state(
                delta,
                broker_id,
                current,
                caught_up=caught_up,
                wants_shutdown=wants_shutdown,
                has_leaderships=self._replication.has_leaderships,
            )
            if state is not current:
                if state is BrokerControlState.UNFENCED:
                    self._replication.handle_broker_unfenced(delta, broker)
                elif state is BrokerControlState.CONTROLLED_SHUTDOWN:
                    self._replication.handle_controlled_shutdown(delta, broker)
                else:
                    self._replication.handle_broker_fenced(delta, broker)
            version = delta.base.version if delta.is_empty else delta.base.version + 1
            self._cluster.touch(broker_id, metadata_version=current_metadata_version, state=state, version=version)
        stops = state is BrokerControlState.SHUTDOWN_NOW
        return HeartbeatReply(is_fenced=stops or state is BrokerControlState.FENCED, should_shutdown=stops)

    def unregister_broker(self, broker_id: int) -> None:
        """Remove a broker's registration, whatever its state, until it registers again.

        A running broker does not register again: its heartbeats are refused with STALE_BROKER_EPOCH until it is
        restarted. Raises ApiError with BROKER_ID_NOT_REGISTERED.
        """
        with self._change() as delta:
            self._cluster.unregister(delta, broker_id)
            self._replication.handle_broker_unregistered(delta, broker_id)

    # -- periodic work --------------------------------------------------------------------------

    def tick(self) -> None:
        """Run the work that is due: fence brokers with expired sessions, balance and elect leaders."""
        with self._change() as delta:
            self._tasks.run_due(delta, self._clock.now_ms())

    def next_deadline_ms(self) -> int:
        """Return the time in ms at which `tick` must be called next."""
        return self._tasks.next_run_ms()

    # -- topics and partitions --------------------------------------------------------------------

    def create_topics(
        self, topics: Sequence[CreatableTopic], validate_only: bool = False, charge: Charge = free_of_charge
    ) -> list[CreateTopicResult]:
        """Create topics, or only validate them; returns one result per topic in order.

        Raises ApiError with POLICY_VIOLATION if there are too many partitions in total.
        """
        with self._change(validate_only) as delta:
            return self._topics.create_topics(delta, topics, charge)

    def create_partitions(
        self, topics: Sequence[NewPartitions], validate_only: bool = False, charge: Charge = free_of_charge
    ) -> list[tuple[str, Outcome]]:
        """Add partitions to topics; returns one outcome per topic in order."""
        with self._change(validate_only) as delta:
            return self._topics.create_partitions(delta, topics, charge)

    def delete_topics(self, topics: Sequence[str | bytes], charge: Charge = free_of_charge) -> list[DeleteTopicResult]:
        """Delete topics by name (str) or id (bytes); returns one result per distinct key in order.

        Raises ApiError with TOPIC_DELETION_DISABLED when `delete.topic.enable` is false.
        """
        with self._change() as delta:
            return self._topics.delete_topics(delta, topics, charge)

    def alter_partition(
        self, broker_id: int, broker_epoch: int, changes: Sequence[PartitionAlteration]
    ) -> list[AlterPartitionResult]:
        """Apply the ISR changes that a leader proposes; returns one result per change in order.

        Raises ApiError with STALE_BROKER_EPOCH for the whole request.
        """
        with self._change() as delta:
            self._cluster.check_broker_epoch(delta, broker_id, broker_epoch)
            return self._replication.alter_partitions(delta, broker_id, changes)

    def elect_leaders(
        self, election_type: ElectionType, partitions: Sequence[TopicPartition] | None
    ) -> list[PartitionOutcome]:
        """Elect leaders of the partitions (None: all that need it); return their outcomes."""
        with self._change() as delta:
            return self._replication.elect_leaders(delta, election_type, partitions)

    def alter_partition_reassignments(
        self, reassignments: Sequence[Reassignment], allow_replication_factor_change: bool = True
    ) -> list[PartitionOutcome]:
        """Start or cancel reassignments; returns one outcome each in order."""
        with self._change() as delta:
            return alter_partition_reassignments(
                delta,
                reassignments,
                self._replication,
                allow_replication_factor_change=allow_replication_factor_change,
            )

    def list_partition_reassignments(self, partitions: Mapping[str, Sequence[int]] | None) -> list[OngoingReassignment]:
        """Return the ongoing reassignments of the partitions (None: of all)."""
        return ongoing_reassignments(self.image, partitions)

    def transfer_leadership(self, topic_partition: TopicPartition, leader: int) -> None:
        """Make an in-sync replica the leader, as an election does; Kafka has no such request.

        With `auto.leader.rebalance.enable` the preferred leader leads again within 300 s. Raises ApiError
        with UNKNOWN_TOPIC_OR_PARTITION or ELIGIBLE_LEADERS_NOT_AVAILABLE.
        """
        with self._change() as delta:
            self._replication.transfer_leadership(delta, topic_partition, leader)

    def end_session(self, broker_id: int) -> None:
        """Expire a dead broker's session now; Kafka has no such request."""
        with self._change() as delta:
            self._fence(delta, self._cluster.end_session(delta, broker_id))

    def make_topics(self, topics: Iterable[CreatableTopic]) -> None:
        """Create all topics or none, in one step. Raises ApiError for the first refused topic."""
        with self._change() as delta:
            self._topics.create_one_by_one(delta, topics)

    def reset(
        self,
        topics: Iterable[CreatableTopic] = (),
        keep: Container[str] = (),
        endpoints: Mapping[int, tuple[Endpoint, ...]] | None = None,
    ) -> None:
        """Delete all topics but `keep`, dynamic configurations, users, tokens, ACLs, quotas; create `topics`.

        `endpoints` are new addresses of brokers. Features get their initial levels, and sessions restart. Not in
        Kafka. Raises ApiError without changing anything if a topic is refused.
        """
        with self._change() as delta:
            for topic in delta.all_topics():
                if topic.name not in keep:
                    delta.remove_topic(topic.name)
            for user in self.image.scram:
                delta.set_scram_credentials(user, {})
            for entity in self.image.client_quotas:
                delta.set_client_quotas(entity, {})
            for token_id in self.image.delegation_tokens:
                delta.remove_delegation_token(token_id)
            if self.image.acls:
                delta.change_acls((), self.image.acls)
            for broker_id, moved_to in (endpoints or {}).items():
                delta.set_broker(delta.brokers[broker_id]._replace(endpoints=moved_to))
            if delta.features != self._first_features:
                delta.set_features(self._first_features)
            self._configs.reset(delta)
            self._topics.create_one_by_one(delta, topics)
            self._cluster.renew_sessions()

    # -- configurations, features, quotas ---------------------------------------------------------

    def incremental_alter_configs(
        self, changes: Sequence[tuple[ConfigResource, Sequence[ConfigAlteration]]], validate_only: bool = False
    ) -> list[tuple[ConfigResource, Outcome]]:
        """Apply all changes of a resource or none; returns one outcome per resource."""
        with self._change(validate_only) as delta:
            return self._configs.incremental_alter(delta, changes)

    def alter_configs(
        self, changes: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]], validate_only: bool = False
    ) -> list[tuple[ConfigResource, Outcome]]:
        """Set the given configurations of each resource and remove all others (AlterConfigs)."""
        with self._change(validate_only) as delta:
            return self._configs.replace_all(delta, changes)

    def update_features(self, updates: Sequence[FeatureUpdate], validate_only: bool = False) -> None:
        """Change the finalized levels of features, all or none. Raises `ApiError`."""
        with self._change(validate_only) as delta:
            update_features(delta, updates, self._supported_features)
            self._configs.bootstrap(delta)

    def alter_client_quotas(
        self, alterations: Sequence[ClientQuotaAlteration], validate_only: bool = False
    ) -> dict[QuotaEntity, Outcome]:
        """Set and remove quotas, all of an entity or none; returns the outcome of each entity."""
        with self._change(validate_only) as delta:
            return alter_client_quotas(delta, alterations, self._release)

    # -- access: SCRAM credentials, ACLs, delegation tokens -----------------------------------------

    def alter_user_scram_credentials(
        self, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
    ) -> ScramResults:
        """Delete and upsert SCRAM credentials; each user succeeds or fails alone."""
        with self._change() as delta:
            return alter_scram_credentials(delta, deletions, upsertions)

    def create_acls(self, acls: Sequence[Acl]) -> list[Outcome]:
        """Add ACLs; each succeeds or fails alone, and an existing ACL is not an error."""
        with self._change() as delta:
            return create_acls(delta, acls, self._release)

    def delete_acls(self, filters: Sequence[AclFilter]) -> list[DeletedAcls]:
        """Remove the ACLs that each filter matches; return one result per filter."""
        with self._change() as delta:
            return delete_acls(delta, filters)

    def create_delegation_token(
        self, owner: KafkaPrincipal, requester: KafkaPrincipal, renewers: Sequence[KafkaPrincipal], max_lifetime_ms: int
    ) -> DelegationToken:
        """Create a token for the owner. Raises ApiError."""
        with self._change() as delta:
            return self._tokens.create(delta, owner, requester, renewers, max_lifetime_ms)

    def renew_delegation_token(self, principal: KafkaPrincipal, hmac: bytes, renew_period_ms: int) -> int:
        """Renew the token with that HMAC; return its new expiry time in ms. Raises ApiError."""
        with self._change() as delta:
            return self._tokens.renew(delta, principal, hmac, renew_period_ms)

    def expire_delegation_token(self, principal: KafkaPrincipal, hmac: bytes, period_ms: int) -> int:
        """Expire the token with that HMAC sooner or at once; return its new expiry time in ms. Raises ApiError."""
        with self._change() as delta:
            return self._tokens.expire(delta, principal, hmac, period_ms)

    # -- producer ids, status -----------------------------------------------------------------------

    def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> ProducerIdsBlock:
        """Return the broker's next block of producer ids; no id is allocated twice.

        Raises ApiError with STALE_BROKER_EPOCH.
        """
        self._cluster.check_broker_epoch(MetadataDelta(self.image), broker_id, broker_epoch)
        return self._producer_ids.next_block()

    def describe_quorum(self) -> QuorumStatus:
        """Return the end of the metadata, and the position of each live broker in it."""
        observers = tuple(self._cluster.observers(self.image))
        return QuorumStatus(self.image.version, self._clock.wall_clock_ms(), observers)

    def describe(self) -> ControllerStatus:
        """Return counts over the cluster and the age of each broker's last heartbeat."""
        return controller_status(self.image, self._cluster.contact_ages_ms(self.image))

    def _periodic_tasks(self, config: BrokerConfig, now_ms: int) -> PeriodicTasks:
        tasks = PeriodicTasks()
        period_ms = max(1, config.broker_session_timeout_ms // _FENCE_CHECKS_PER_SESSION)
        tasks.register(self._maybe_fence_one_stale_broker, period_ms, now_ms, waits_when_late=True)
        if config.auto_leader_rebalance_enable:
            period_ms = config.leader_imbalance_check_interval_seconds * 1_000
            tasks.register(self._replication.maybe_balance_leaders, period_ms, now_ms)
        tasks.register(
            self._replication.maybe_elect_unclean_leaders, config.unclean_leader_election_interval_ms, now_ms
        )
        if self._tokens.is_enabled:
            period_ms = config.delegation_token_expiry_check_interval_ms
            tasks.register(self._tokens.sweep, period_ms, now_ms)
        return tasks

    def _maybe_fence_one_stale_broker(self, delta: MetadataDelta) -> bool:
        has_ended, broker = self._cluster.take_expired(delta)
        self._fence(delta, broker)
        return has_ended

    def _fence(self, delta: MetadataDelta, broker: BrokerState | None) -> None:
        if broker is not None:
            self._replication.handle_broker_fenced(delta, broker)
            self._cluster.fenced(broker.broker_id)
