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

    from broker_sim.broker.environment import BrokerEnvironment
    from broker_sim.config import BrokerConfig
    from broker_sim.errors import ErrorCode
    from broker_sim.handlers import ClientConnection
    from broker_sim.log import LogManager
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.network import SendResponse
    from broker_sim.replica import IsrDecision, IsrProposal
    from broker_sim.runtime.process import Process
    from purgatory import Clock

__all__ = ["Broker"]


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
        self.purgatories = Purgatories(
            lambda name, purge_interval: environment.make_purgatory(
                name, broker_id, process, purge_interval
            ),
            config,
        )
        self._logs = logs
        self._on_image = environment.on_image
        self._actions = ActionQueue(process.report_error)
        self.replica_manager = ReplicaManager(
            self.purgatories, self._actions, self.metadata.is_known
        )
        self.replica_server = ReplicaServer(self.replica_manager, self._actions)
        self.lifecycle = BrokerLifecycle(
            broker_id, config, process, address=address, rng=environment.random
        )
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
            (
                config.producer_id_expiration_check_interval_ms,
                self._logs.remove_expired_producers,
            ),
        )
        # These two begin after `log.initial.task.delay.ms`, the others after one period.
        log_work = (
            (config.log_retention_check_interval_ms, self._logs.delete_old_segments),
            (
                config.log_flush_start_offset_checkpoint_interval_ms,
                self._logs.checkpoint_log_start_offsets,
            ),
        )
        self._tasks = [
            PeriodicTask(self.process, period_ms, work) for period_ms, work in periodic_work
        ]
        self._tasks += [
            PeriodicTask(self.process, period_ms, work, config.log_initial_task_delay_ms)
            for period_ms, work in log_work
        ]
        self.lifecycle.start(
            self.controller, lambda: self.image.version, self._logs.clean_shutdown_epoch
        )

    def shutdown(self, on_stopped: Callable[[], object]) -> None:
        """Stop in good order, as on SIGTERM, and call `on_stopped()`; mirrors `BrokerServer.shutdown`.

        The broker serves on until the controller has moved its leaderships away. What is parked
        then gets no answer.
        """

        def stop() -> None:
            self._logs.shutdown(self.lifecycle.broker_epoch)
            self.die()
            on_stopped()

        if self.config.controlled_shutdown_enable:
            self._applier.begin_controlled_shutdown()
            self.lifecycle.begin_controlled_shutdown(stop)
        else:
            stop()

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

    def handle_frame(
        self, frame: memoryview, connection: ClientConnection, send_response: SendResponse
    ) -> None:
        """Handle one request of a client; see `RequestDispatcher.dispatch`."""
        self._dispatcher.dispatch(frame, connection, send_response)

    def append_own(self, topic_partition: TopicPartition, records: bytes) -> ErrorCode:
        """Append a batch to a partition led here, as for a producer with acks=1; returns its error."""
        answers: list[ErrorCode] = []
        self.replica_manager.append_records(
            {topic_partition: records},
            lambda statuses: answers.append(statuses[topic_partition].error_code),
            timeout_ms=0,
            required_acks=1,
        )
        self._actions.try_complete_actions()
        return answers[0]
