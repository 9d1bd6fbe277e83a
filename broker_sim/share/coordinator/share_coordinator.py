"""The service of a broker's share coordinator; mirrors `ShareCoordinatorService`.

Each partition of `__share_group_state` that the broker leads is a `ShareShard`, which the runtime loads, writes and
drops. The share partitions of a request may be in different shards; the response waits for all their outcomes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_sim.coordinator.runtime import CoordinatorRuntime
from broker_sim.coordinator.storage import AppendError, CoordinatorTopic
from broker_sim.errors import ERROR_TEXTS, ErrorCode
from broker_sim.metadata.feature_names import SHARE_VERSION
from broker_sim.metadata.topic_name import SHARE_GROUP_STATE_TOPIC
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.runtime.event_log import get_logger
from broker_sim.share.coordinator.records import serde
from broker_sim.share.coordinator.shard import MAX_STATE_BATCHES, ShareCoordinatorCounters, ShareShard
from broker_sim.share.share_state import WrittenState
from broker_sim.share.state_apis import DELETE, INITIALIZE, READ, SUMMARY, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.context import CoordinatorContext
    from broker_sim.coordinator.result import Result, ShardRuntime
    from broker_sim.errors import ApiError
    from broker_sim.metadata import ImageChanges, MetadataImage
    from broker_sim.share.share_state import SharePartitionKey
    from broker_sim.share.state_apis import StateApi

    Decide = Callable[[ShareShard, SharePartitionKey, Any], Result[Any]]

log = get_logger(__name__)

TOO_MANY_IN_REQUEST: Final = f"A request may have {MAX_STATE_BATCHES} state batches."

_OPERATIONS: Final[Mapping[StateApi, Decide]] = {
    INITIALIZE: lambda shard, key, initial: shard.initialize_state(key, *initial),
    READ: lambda shard, key, reader: shard.read_state(key, reader.leader_epoch),
    WRITE: lambda shard, key, written: shard.write_state(key, written),
    DELETE: lambda shard, key, _: shard.delete_state(key),
    SUMMARY: lambda shard, key, _: shard.read_summary(key),
}


class ShareCoordinator:
    """Stores the states of share partitions that this broker coordinates. Thread rule: the broker's loop."""

    def __init__(self, broker: BrokerContext) -> None:
        self.counters = ShareCoordinatorCounters()
        self._broker = broker
        config = broker.config
        self._storage = broker.storage(SHARE_GROUP_STATE_TOPIC, config.share_coordinator_load_buffer_size)
        topic = CoordinatorTopic(
            name=SHARE_GROUP_STATE_TOPIC,
            storage=self._storage,
            default_partitions=config.share_coordinator_state_topic_num_partitions,
            serde=serde,
            codec=CompressionCodec(config.share_coordinator_state_topic_compression_codec),
            timeout_ms=config.share_coordinator_write_timeout_ms,
        )
        self.runtime: CoordinatorRuntime[ShareShard] = CoordinatorRuntime(broker, topic, self)
        self._log = log.bind(broker.clock, node=f"broker-{broker.broker_id}")

    def partition_for(self, coordinator_key: str) -> int:
        """Return the partition number of `__share_group_state` for a coordinator key."""
        return self.runtime.partition_for(coordinator_key)

    # -- requests -------------------------------------------------------------------------------

    def serve(self, api: StateApi, request: Any, respond: Callable[[Any], object]) -> None:
        """Serve one of the five requests in `STATE_APIS`.

        A request without a group or partitions gets an empty response. Errors are those of the shard,
        NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, and for writes COORDINATOR_NOT_AVAILABLE. Deliberate
        difference: the writes of a request beyond `MAX_STATE_BATCHES` batches get UNKNOWN_SERVER_ERROR.
        """
        arguments = api.arguments_of(request)
        is_whole = api is INITIALIZE or all(topic.partitions for topic in request.topics)
        if not request.group_id or not arguments or not is_whole:
            respond(api.response())
            return
        outcomes: dict[SharePartitionKey, Any] = {key: None for key, _ in arguments}
        pending = len(arguments)

        def take(key: SharePartitionKey, outcome: Any) -> None:
            nonlocal pending
            outcomes[key] = outcome
            pending -= 1
            if not pending:
                respond(api.response_of(outcomes))

        def fail(key: SharePartitionKey, error: ApiError) -> None:
            text = f"Unable to {api.name}: {self._reason(api, error)}"
            take(key, api.failed(error.error_code, text))

        batch_count = 0
        for key, argument in arguments:
            if isinstance(argument, WrittenState):
                batch_count += len(argument.state_batches)
                if batch_count > MAX_STATE_BATCHES:
                    take(key, api.failed(ErrorCode.UNKNOWN_SERVER_ERROR, TOO_MANY_IN_REQUEST))
                    continue
            self.runtime.write(
                key.coordinator_key(),
                partial(_decide, _OPERATIONS[api], key, argument),
                partial(take, key),
                partial(fail, key),
            )

    def _reason(self, api: StateApi, error: ApiError) -> str:
        """Return the message that Kafka's runtime gives the error, which may differ from that of its code."""
        append_error = error.append_error if isinstance(error, AppendError) else error.error_code
        if append_error is ErrorCode.REQUEST_TIMED_OUT:
            timeout_ms = self._broker.config.share_coordinator_write_timeout_ms
            return f"CoordinatorWriteEvent(name={api.event}) timed out after {timeout_ms}ms"
        if append_error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            append_error = error.error_code  # Kafka's runtime notices first that it is no longer the coordinator
        return ERROR_TEXTS.get(append_error, "")

    # -- maintenance ----------------------------------------------------------------------------

    @property
    def _is_enabled(self) -> bool:
        return bool(self._broker.image().features.get(SHARE_VERSION))

    def prune_records(self) -> None:
        """Delete records that are superseded by newer ones."""
        if not self._is_enabled:
            return
        for context in self.runtime.loaded():
            shard = context.shard
            offset = shard.redundant.end_offset()
            if offset is not None and offset != shard.pruned_offset and context.is_committed:
                done = partial(self._pruned, shard, offset)
                self._storage.delete_records(context.partition, offset, done)

    def _pruned(self, shard: ShareShard, offset: int, error_code: ErrorCode) -> None:
        if error_code:
            self._log.info("prune_failed", partition=shard.partition, error=error_code.name)
        else:
            shard.pruned_offset = offset

    def snapshot_cold_partitions(self) -> None:
        """Write snapshots of idle share partitions."""
        if self._is_enabled:
            for context in self.runtime.loaded():
                context.perform(context.shard.snapshot_cold_partitions)

    # -- the runtime's shards: see `ShardOwner` ---------------------------------------------------

    def make_shard(self, partition: int, runtime: ShardRuntime) -> ShareShard:
        """Return a new shard without share partitions."""
        del runtime
        return ShareShard(partition, self._broker, self.counters)

    def loaded(self, context: CoordinatorContext[ShareShard]) -> None:
        """Log that a shard is loaded."""
        self._log.info(
            "share_states_loaded",
            partition=context.partition,
            leader_epoch=context.leader_epoch,
            records=context.loaded_records,
            share_partitions=len(context.shard.states),
        )

    def unloaded(self, context: CoordinatorContext[ShareShard]) -> None:
        """Log that a shard is dropped."""
        self._log.info("share_states_unloaded", partition=context.partition, share_partitions=len(context.shard.states))

    def on_image(self, changes: ImageChanges, image: MetadataImage) -> None:
        """Apply new metadata: first leadership changes, then deleted topics."""
        self.runtime.follow(changes, image)
        deleted_topic_ids = {topic.topic_id for topic in changes.deleted_topics}
        if deleted_topic_ids:
            for context in self.runtime.loaded():
                context.perform(partial(context.shard.topics_deleted, deleted_topic_ids))

    def shutdown(self) -> None:
        """Drop all state without writing anything, as when the broker is killed."""
        self.runtime.shutdown()


def _decide(operation: Decide, key: SharePartitionKey, arguments: Any, shard: ShareShard) -> Result[Any]:
    return operation(shard, key, arguments)
