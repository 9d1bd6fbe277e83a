"""The share coordinator of one broker, as its APIs see it; mirrors `ShareCoordinatorService`.

Each partition of `__share_group_state` that the broker leads is a `ShareShard`, which the runtime loads, writes and
drops. The share partitions of a request may be in different shards; it is answered when all have their outcomes.
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
from broker_sim.share.coordinator.shard import MOST_STATE_BATCHES, ShareCoordinatorCounters, ShareShard
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

TOO_MANY_IN_REQUEST: Final = f"A request may have {MOST_STATE_BATCHES} state batches."

_OPERATIONS: Final[Mapping[StateApi, Decide]] = {
    INITIALIZE: lambda shard, key, initial: shard.initialize_state(key, *initial),
    READ: lambda shard, key, reader: shard.read_state(key, reader.leader_epoch),
    WRITE: lambda shard, key, written: shard.write_state(key, written),
    DELETE: lambda shard, key, _: shard.delete_state(key),
    SUMMARY: lambda shard, key, _: shard.read_summary(key),
}


class ShareCoordinator:
    """Keeps the state of the share partitions of this broker. Thread rule: the broker's loop."""

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
        """Return the partition of `__share_group_state` for the key."""
        return self.runtime.partition_for(coordinator_key)

    # -- requests -------------------------------------------------------------------------------

    def serve(self, api: StateApi, request: Any, respond: Callable[[Any], object]) -> None:
        """Serve one of the five requests.

        A request without a group or without partitions has an empty response. Errors are those of the shard,
        NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, and after a write COORDINATOR_NOT_AVAILABLE. Deliberate
        difference: writes of a request beyond `MOST_STATE_BATCHES` get UNKNOWN_SERVER_ERROR.
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

        batches = 0
        for key, each in arguments:
            if isinstance(each, WrittenState):
                batches += len(each.state_batches)
                if batches > MOST_STATE_BATCHES:
                    take(key, api.failed(ErrorCode.UNKNOWN_SERVER_ERROR, TOO_MANY_IN_REQUEST))
                    continue
            self.runtime.write(
                key.coordinator_key(),
                partial(_decide, _OPERATIONS[api], key, each),
                partial(take, key),
                partial(fail, key),
            )

    def _reason(self, api: StateApi, error: ApiError) -> str:
        """Return the message of the error in Kafka's runtime, which may differ from that of the error's code."""
        append_error = error.append_error if isinstance(error, AppendError) else error.error_code
        if append_error is ErrorCode.REQUEST_TIMED_OUT:
            timeout_ms = self._broker.config.share_coordinator_write_timeout_ms
            return f"CoordinatorWriteEvent(name={api.event}) timed out after {timeout_ms}ms"
        if append_error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            append_error = error.error_code  # the runtime hears first that it is no coordinator any more
        return ERROR_TEXTS.get(append_error, "")

    # -- upkeep ---------------------------------------------------------------------------------

    @property
    def _is_enabled(self) -> bool:
        return bool(self._broker.image().features.get(SHARE_VERSION))

    def prune_records(self) -> None:
        """Delete the records that newer ones have replaced."""
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
        """Write snapshots of share partitions that are not used."""
        if self._is_enabled:
            for context in self.runtime.loaded():
                context.perform(context.shard.snapshot_cold_partitions)

    # -- the runtime's shards: see `ShardOwner` ---------------------------------------------------

    def make_shard(self, partition: int, runtime: ShardRuntime) -> ShareShard:
        """Return a shard without share partitions."""
        del runtime
        return ShareShard(partition, self._broker, self.counters)

    def loaded(self, context: CoordinatorContext[ShareShard]) -> None:
        """Tell that a shard can be used."""
        self._log.info(
            "share_states_loaded",
            partition=context.partition,
            leader_epoch=context.leader_epoch,
            records=context.loaded_records,
            share_partitions=len(context.shard.states),
        )

    def unloaded(self, context: CoordinatorContext[ShareShard]) -> None:
        """Tell that a shard is gone."""
        self._log.info("share_states_unloaded", partition=context.partition, share_partitions=len(context.shard.states))

    def on_image(self, changes: ImageChanges, image: MetadataImage) -> None:
        """Follow new metadata: roles first, then deleted topics."""
        self.runtime.follow(changes, image)
        deleted = {topic.topic_id for topic in changes.deleted_topics}
        if deleted:
            for context in self.runtime.loaded():
                context.perform(partial(context.shard.topics_deleted, deleted))

    def shutdown(self) -> None:
        """Forget everything without a word, as a broker that dies."""
        self.runtime.shutdown()


def _decide(operation: Decide, key: SharePartitionKey, arguments: Any, shard: ShareShard) -> Result[Any]:
    return operation(shard, key, arguments)
