"""One broker: its partitions, purgatories and background work; mirrors `kafka.server.BrokerServer`.

It is put together here and lives from `start` to `die`. What others ask of it has classes of its
own: clients `RequestDispatcher`, followers `ReplicaServer`, partitions `MetadataCache`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.broker.controller_link import ControllerLink
from broker_sim.broker.dispatch import RequestDispatcher
from broker_sim.broker.leader_link import LeaderLink
from broker_sim.broker.lifecycle import BrokerLifecycle
from broker_sim.broker.partition_store import LocalPartitionStore
from broker_sim.broker.producer_ids import ProducerIds
from broker_sim.broker.replica_server import ReplicaServer
from broker_sim.metadata import MetadataImage, changes_between
from broker_sim.metadata.cache import MetadataCache
from broker_sim.replica import (
    AlterPartitionManager,
    FetcherManager,
    MetadataApplier,
    Purgatories,
    ReplicaManager,
)
from broker_sim.runtime.action_queue import ActionQueue
from broker_sim.runtime.process import PeriodicTask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.broker.environment import BrokerEnvironment, PurgatoryFactory
    from broker_sim.config import BrokerConfig
    from broker_sim.errors import ErrorCode
    from broker_sim.log import LogManager
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.network import Connection, Respond
    from broker_sim.replica import IsrDecision, IsrProposal
    from broker_sim.runtime.process import Process
    from purgatory import Clock

__all__ = ["Broker"]

ELECT_LEADER_PURGE_INTERVAL = 1000
"""Kafka's default for purgatories that no configuration names."""


class Broker:
    """A broker from its start to its death; a restarted one is a new object on the old logs."""

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        process: Process,
        logs: LogManager,
        address: tuple[str, int],
        environment: BrokerEnvironment,
    ) -> None:
        self.broker_id = broker_id
        self.config = config
        self.process = process
        self.random = environment.random
        self.metadata = MetadataCache(
            broker_id, config, MetadataImage(version=-1, cluster_id=environment.cluster_id)
        )
        self.purgatories = _make_purgatories(broker_id, config, process, environment.make_purgatory)
        self._logs = logs
        self._on_image = environment.on_image
        self._actions = ActionQueue(process.report_error)
        self.replica_manager = ReplicaManager(
            self.purgatories, self._actions, self.metadata.is_known
        )
        self.replica_server = ReplicaServer(self.replica_manager, self._actions)
        self.lifecycle = BrokerLifecycle(broker_id, config, process, address, environment.random)
        self.controller = ControllerLink(
            broker_id, environment.links, environment.controller, self._broker_epoch
        )
        self.producer_ids = ProducerIds(
            broker_id, self.controller, self._broker_epoch, process.clock
        )
        self.alter_partition = AlterPartitionManager(process, self._send_isr_changes)
        self._applier = self._make_applier(environment)
        self._dispatcher = RequestDispatcher(
            self, environment.api_table, environment.faults, self._actions, process.call_later
        )
        self._tasks: list[PeriodicTask] = []

    def _broker_epoch(self) -> int:
        return self.lifecycle.broker_epoch

    def _make_applier(self, environment: BrokerEnvironment) -> MetadataApplier:
        fetchers = FetcherManager(
            self.broker_id,
            self.process,
            self.config,
            LeaderLink(self.broker_id, environment.links, environment.brokers),
            broker_epoch=self._broker_epoch,
            complete_delayed_fetches=self.purgatories.fetch.check_and_complete,
        )
        store = LocalPartitionStore(
            self.broker_id,
            self.config,
            self._logs,
            self.metadata,
            clock=self.clock,
            submit_alter_partition=self.alter_partition.submit,
            complete_delayed_requests=self.replica_manager.complete_delayed_requests,
        )
        return MetadataApplier(
            self.broker_id, self.replica_manager, fetchers, store, self.metadata.topic_config
        )

    @property
    def clock(self) -> Clock:
        """The clock that the broker lives by."""
        return self.process.clock

    @property
    def image(self) -> MetadataImage:
        """The newest metadata that this broker has heard of."""
        return self.metadata.image

    # -- life -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Register with the controller and begin the background work."""
        config = self.config
        periodic_work = (
            (config.replica_lag_time_max_ms // 2, self.replica_manager.maybe_shrink_isr),
            (
                config.replica_high_watermark_checkpoint_interval_ms,
                self.replica_manager.checkpoint_high_watermarks,
            ),
            (config.log_retention_check_interval_ms, self._logs.delete_old_segments),
            (
                config.producer_id_expiration_check_interval_ms,
                self._logs.remove_expired_producers,
            ),
        )
        self._tasks = [
            PeriodicTask(self.process, period_ms, work) for period_ms, work in periodic_work
        ]
        self.lifecycle.start(self.controller, lambda: self.image.version)

    def die(self) -> None:
        """Stop everything at once, as SIGKILL does: nothing that is parked gets an answer."""
        self.process.kill()
        for task in self._tasks:
            task.cancel()
        self.purgatories.shutdown()

    # -- metadata -------------------------------------------------------------------------------

    def apply_image(self, image: MetadataImage) -> None:
        """Follow the controller's newest metadata."""
        metadata = self.metadata
        before = metadata.image
        if image.version <= before.version:
            return
        changes = changes_between(before, image)
        metadata.image = image
        if before.version < 0:
            self._logs.delete_strays(metadata.is_hosted)
        self._applier.apply(changes, image)
        self._actions.try_complete_actions()
        self.lifecycle.on_image(image)
        self._on_image()

    @property
    def has_caught_up(self) -> bool:
        """Whether the broker's own registration has come back to it with the metadata."""
        registered = self.image.brokers.get(self.broker_id)
        return registered is not None and registered.epoch == self.lifecycle.broker_epoch

    def _send_isr_changes(
        self,
        proposals: Sequence[IsrProposal],
        on_answer: Callable[[ErrorCode, Sequence[IsrDecision]], None],
    ) -> None:
        """Send the proposals; what their decisions can complete runs once these are taken in."""

        def take(error_code: ErrorCode, decisions: Sequence[IsrDecision]) -> None:
            on_answer(error_code, decisions)
            self._actions.try_complete_actions()

        self.controller.send_isr_changes(proposals, take)

    # -- requests -------------------------------------------------------------------------------

    def handle_frame(self, frame: memoryview, connection: Connection, respond: Respond) -> None:
        """Handle one request of a client; see `RequestDispatcher.dispatch`."""
        self._dispatcher.dispatch(frame, connection, respond)

    def append_own(self, topic_partition: TopicPartition, records: bytes) -> ErrorCode:
        """Append a batch to a partition led here, as for a producer with acks=1; returns its error."""
        answers: list[ErrorCode] = []
        self.replica_manager.append_records(
            timeout_ms=0,
            required_acks=1,
            entries={topic_partition: records},
            respond=lambda statuses: answers.append(statuses[topic_partition].error_code),
        )
        self._actions.try_complete_actions()
        return answers[0]


def _make_purgatories(
    broker_id: int, config: BrokerConfig, process: Process, make_purgatory: PurgatoryFactory
) -> Purgatories:
    return Purgatories(
        produce=make_purgatory(
            "Produce", broker_id, process, config.producer_purgatory_purge_interval_requests
        ),
        fetch=make_purgatory(
            "Fetch", broker_id, process, config.fetch_purgatory_purge_interval_requests
        ),
        delete_records=make_purgatory(
            "DeleteRecords",
            broker_id,
            process,
            config.delete_records_purgatory_purge_interval_requests,
        ),
        elect_leader=make_purgatory("ElectLeader", broker_id, process, ELECT_LEADER_PURGE_INTERVAL),
    )
