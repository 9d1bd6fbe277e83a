"""One broker: its partitions, purgatories and background work, and the dispatch of requests.

Mirrors ``kafka.server.BrokerServer`` and ``KafkaApis``. The way of a request: the connection hands
over a frame, the API table names the handler, the handler answers now or leaves a delayed operation
behind, and completions that it has caused run once it has returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from broker_sim.broker.controller_link import ControllerLink
from broker_sim.broker.leader_link import LeaderLink
from broker_sim.broker.lifecycle import BrokerLifecycle
from broker_sim.config import effective_topic_config
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.handlers import ApiTable, RequestContext
from broker_sim.handlers.transactions.producer_ids import ProducerIds
from broker_sim.metadata import MetadataImage, changes_between
from broker_sim.protocol.api_keys import ApiKey, request_class
from broker_sim.protocol.codec import decode
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.headers import RequestHeader, decode_request_header, encode_response
from broker_sim.replica import (
    AlterPartitionManager,
    FetcherManager,
    MetadataApplier,
    Partition,
    Purgatories,
    ReplicaManager,
)
from broker_sim.runtime.action_queue import ActionQueue
from broker_sim.runtime.process import PeriodicTask

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping, Sequence

    from broker_sim.broker.leader_link import ReplicaServer
    from broker_sim.config import BrokerConfig, TopicConfig
    from broker_sim.controller import Controller
    from broker_sim.handlers.faults.fault_injector import FaultInjector
    from broker_sim.log import LogManager
    from broker_sim.metadata import TopicState
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.network import Connection, Respond
    from broker_sim.replica import (
        FetchParams,
        FetchPartition,
        FetchPartitionData,
        IsrDecision,
        IsrProposal,
    )
    from broker_sim.runtime.links import Links
    from broker_sim.runtime.process import Process
    from purgatory import Clock, DelayedOperationPurgatory

__all__ = ["Broker", "PurgatoryFactory"]

API_TABLE = ApiTable()


class PurgatoryFactory(Protocol):
    """Makes a purgatory whose expired operations run in the broker's process."""

    def __call__(
        self, name: str, broker_id: int, process: Process, purge_interval: int
    ) -> DelayedOperationPurgatory[Any]:
        """Return a purgatory of that name."""


class Broker:
    """A broker from its start to its death; a restarted one is a new object on the old logs."""

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        process: Process,
        logs: LogManager,
        *,
        address: tuple[str, int],
        links: Links,
        controller: Controller,
        brokers: Mapping[int, ReplicaServer],
        cluster_id: str,
        rng: random.Random,
        make_purgatory: PurgatoryFactory,
        faults: FaultInjector,
        on_image: Callable[[], object] = lambda: None,
    ) -> None:
        self.broker_id = broker_id
        self.config = config
        self.process = process
        self.random = rng
        self.image = MetadataImage(version=-1, cluster_id=cluster_id)
        self._logs = logs
        self._faults = faults
        self._on_image = on_image
        self._actions = ActionQueue(process.report_error)
        self.purgatories = Purgatories(
            make_purgatory(
                "Produce", broker_id, process, config.producer_purgatory_purge_interval_requests
            ),
            make_purgatory(
                "Fetch", broker_id, process, config.fetch_purgatory_purge_interval_requests
            ),
            make_purgatory(
                "DeleteRecords",
                broker_id,
                process,
                config.delete_records_purgatory_purge_interval_requests,
            ),
            make_purgatory("ElectLeader", broker_id, process, 1000),
        )
        self.replica_manager = ReplicaManager(
            self.purgatories,
            self._actions,
            lambda topic_partition: self.image.partition(topic_partition) is not None,
        )
        self.lifecycle = BrokerLifecycle(broker_id, config, process, address=address, rng=rng)
        self.controller = ControllerLink(
            broker_id, links, controller, lambda: self.lifecycle.broker_epoch
        )
        self.producer_ids = ProducerIds(
            broker_id, self.controller, lambda: self.lifecycle.broker_epoch, process.clock
        )
        self.alter_partition = AlterPartitionManager(process, self._send_isr_changes)
        self._fetchers = FetcherManager(
            broker_id,
            process,
            config,
            LeaderLink(broker_id, links, brokers),
            broker_epoch=lambda: self.lifecycle.broker_epoch,
            complete_delayed_fetches=self.purgatories.fetch.check_and_complete,
        )
        self._applier = MetadataApplier(
            broker_id, self.replica_manager, self._fetchers, self, self.topic_config
        )
        self._tasks: list[PeriodicTask] = []

    @property
    def clock(self) -> Clock:
        """The clock that the broker lives by."""
        return self.process.clock

    # -- life -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Register with the controller and begin the background work."""
        config = self.config
        self._tasks = [
            PeriodicTask(
                self.process,
                config.replica_lag_time_max_ms // 2,
                self.replica_manager.maybe_shrink_isr,
            ),
            PeriodicTask(
                self.process,
                config.replica_high_watermark_checkpoint_interval_ms,
                self.replica_manager.checkpoint_high_watermarks,
            ),
            PeriodicTask(
                self.process,
                config.log_retention_check_interval_ms,
                self._logs.delete_old_segments,
            ),
            PeriodicTask(
                self.process,
                config.producer_id_expiration_check_interval_ms,
                self._logs.remove_expired_producers,
            ),
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

    def apply_image(self, image: MetadataImage) -> None:
        """Follow the controller's newest metadata."""
        if image.version <= self.image.version:
            return
        is_first = self.image.version < 0
        changes = changes_between(self.image, image)
        self.image = image
        if is_first:
            self._logs.delete_strays(self._is_hosted)
        self._applier.apply(changes, image)
        self._actions.try_complete_actions()
        self.lifecycle.on_image(image)
        self._on_image()

    @property
    def has_caught_up(self) -> bool:
        """Whether the broker's own registration has come back to it with the metadata."""
        registered = self.image.brokers.get(self.broker_id)
        return registered is not None and registered.epoch == self.lifecycle.broker_epoch

    # -- what partitions and handlers ask of their broker -----------------------------------------

    def _is_hosted(self, topic_partition: TopicPartition, topic_id: bytes) -> bool:
        topic = self.image.topics.get(topic_partition.topic)
        state = self.image.partition(topic_partition)
        return (
            topic is not None
            and topic.topic_id == topic_id
            and state is not None
            and self.broker_id in state.replicas
        )

    def topic_config(self, topic: TopicState) -> TopicConfig:
        """Return the configuration in force for the topic on this broker."""
        dynamic = {
            **self.image.dynamic_cluster_configs(),
            **self.image.dynamic_broker_configs(self.broker_id),
        }
        return effective_topic_config(self.config, dynamic, topic.configs)

    def open_partition(self, topic_partition: TopicPartition, topic: TopicState) -> Partition:
        """Return the partition on its log, which may have survived a restart."""
        config = self.topic_config(topic)
        return Partition(
            topic_partition,
            topic.topic_id,
            self.broker_id,
            self._logs.get_or_create(topic_partition, topic.topic_id, config),
            config,
            clock=self.clock,
            replica_lag_time_max_ms=self.config.replica_lag_time_max_ms,
            metadata=self,
            submit_alter_partition=self.alter_partition.submit,
            complete_delayed_requests=self.replica_manager.complete_delayed_requests,
        )

    def delete_log(self, topic_partition: TopicPartition) -> None:
        """Throw a deleted partition's log away."""
        self._logs.delete(topic_partition)

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

    def is_alive(self, broker_id: int) -> bool:
        """Whether the broker is registered and unfenced, as far as this one has heard."""
        return self.image.alive_broker(broker_id) is not None

    def is_isr_eligible(self, broker_id: int, stored_epoch: int | None) -> bool:
        """Whether the broker may join an ISR: active, and in the epoch in which it fetched (KIP-841)."""
        broker = self.image.brokers.get(broker_id)
        return (
            broker is not None
            and broker.is_active
            and stored_epoch is not None
            and stored_epoch in (-1, broker.epoch)
        )

    def is_stale_epoch(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether the broker lives and has registered anew since ``broker_epoch`` (-1: unknown)."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and not broker.fenced and -1 != broker_epoch < broker.epoch

    def append_own(self, topic_partition: TopicPartition, records: bytes) -> ErrorCode:
        """Append a batch to a partition led here, as for a producer with acks=1; returns its error."""
        answers: list[ErrorCode] = []
        self.replica_manager.append_records(
            0,
            1,
            {topic_partition: records},
            lambda statuses: answers.append(statuses[topic_partition].error_code),
        )
        self._actions.try_complete_actions()
        return answers[0]

    # -- what followers ask -----------------------------------------------------------------------

    def serve_fetch(
        self,
        params: FetchParams,
        infos: Sequence[tuple[TopicPartition, FetchPartition]],
        respond: Callable[[Sequence[tuple[TopicPartition, FetchPartitionData]]], None],
    ) -> None:
        """Serve a follower's fetch, now or when there is data."""
        self.replica_manager.fetch_messages(params, infos, respond)
        self._actions.try_complete_actions()

    def serve_log_bounds(
        self,
        topic_partition: TopicPartition,
        current_leader_epoch: int,
        respond: Callable[[tuple[ErrorCode, int, int]], None],
    ) -> None:
        """Tell a follower where the log begins and ends."""
        try:
            partition = self.replica_manager.get_partition(topic_partition)
            local_log = partition.local_log(current_leader_epoch, require_leader=True)
        except ApiError as error:
            respond((error.error_code, -1, -1))
        else:
            respond((ErrorCode.NONE, local_log.log_start_offset, local_log.log_end_offset))

    # -- what clients ask -------------------------------------------------------------------------

    def handle_frame(self, frame: memoryview, connection: Connection, respond: Respond) -> None:
        """Decode one request and hand it to its handler.

        Raises ProtocolError (a ValueError) where Kafka closes the connection: an unknown API, a
        version that is not served, or bytes that are not the request that they claim to be.
        """
        header, offset = decode_request_header(frame)
        spec = API_TABLE.find(header.api_key, header.api_version)
        if spec is None:
            self._answer_unsupported(header, respond)
            return
        request: Any = decode(request_class(header.api_key), header.api_version, frame, offset)

        def reply(message: Any) -> None:
            respond(
                encode_response(header.api_key, header.api_version, header.correlation_id, message)
            )

        context = RequestContext(
            header.api_key,
            header.api_version,
            header.client_id,
            lambda: respond(None),
            connection.close,
        )
        handler = spec.handler
        if self._faults:
            handler = self._faults.intercept(handler, self.process.call_later)
        handler(self, request, context, reply)
        self._actions.try_complete_actions()

    def _answer_unsupported(self, header: RequestHeader, respond: Respond) -> None:
        if header.api_key is not ApiKey.API_VERSIONS:
            raise ProtocolError(
                f"{header.api_key.name} version {header.api_version} is not served; "
                f"client {header.client_id!r} should ask ApiVersions first"
            )
        answer = API_TABLE.unsupported_version(ErrorCode.UNSUPPORTED_VERSION)
        respond(encode_response(header.api_key, 0, header.correlation_id, answer))
