"""The shards of a broker's group coordinator: lookup, loading, metadata changes and unloading.

Each partition of `__consumer_offsets` that the broker leads is a `GroupShard`. Mirrors
`GroupCoordinatorShard.Builder`, and the code of `GroupCoordinatorService` around its `CoordinatorRuntime`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from broker_sim.coordinator.runtime import CoordinatorRuntime
from broker_sim.coordinator.storage import CoordinatorTopic
from broker_sim.errors import ERROR_TEXTS, ApiError, ErrorCode
from broker_sim.group.metrics import GroupCounters
from broker_sim.group.records import serde
from broker_sim.group.shard import GroupShard
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.context import CoordinatorContext
    from broker_sim.coordinator.result import Result, ShardRuntime
    from broker_sim.metadata import ImageChanges, MetadataImage

log = get_logger(__name__)

R = TypeVar("R")


class GroupShards:
    """Owns the runtime and its shards. Thread rule: the broker's loop."""

    def __init__(self, broker: BrokerContext) -> None:
        self.counters = GroupCounters()
        self._broker = broker
        config = broker.config
        topic = CoordinatorTopic(
            name=GROUP_METADATA_TOPIC,
            storage=broker.storage(GROUP_METADATA_TOPIC, config.offsets_load_buffer_size),
            default_partitions=config.offsets_topic_num_partitions,
            serde=serde,
            codec=CompressionCodec(config.offsets_topic_compression_codec),
            timeout_ms=config.offsets_commit_timeout_ms,
        )
        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(broker, topic, self)
        self._log = log.bind(broker.clock, node=f"broker-{broker.broker_id}")

    # -- for requests ---------------------------------------------------------------------------

    def find(self, group_id: str) -> GroupShard:
        """Return the shard of a group, for reading. Raises the `ApiError` that `on_error` of `write` would get."""
        if not group_id:
            raise _no_group_id()
        return self.runtime.find(group_id).shard

    def loaded_shards(self) -> list[GroupShard]:
        """Return the loaded shards, ordered by partition."""
        return [context.shard for context in self.runtime.loaded()]

    def write(
        self,
        group_id: str,
        decide: Callable[[GroupShard], Result[R]],
        on_response: Callable[[R], object],
        on_error: Callable[[ApiError], object],
    ) -> None:
        """Call `CoordinatorRuntime.write` for a group; an empty id gets INVALID_GROUP_ID."""
        if group_id:
            self.runtime.write(group_id, decide, on_response, on_error)
        else:
            on_error(_no_group_id())

    # -- for the runtime: see `ShardOwner` --------------------------------------------------------

    def make_shard(self, partition: int, runtime: ShardRuntime) -> GroupShard:
        """Return a new shard without groups."""
        return GroupShard(partition, self._broker, self.counters, runtime)

    def loaded(self, context: CoordinatorContext[GroupShard]) -> None:
        """Start the groups of a loaded shard, and its expiration checks."""
        shard = context.shard
        self._log.info(
            "groups_loaded",
            partition=context.partition,
            leader_epoch=context.leader_epoch,
            records=context.loaded_records,
            groups=len(shard.groups),
            offsets=shard.offsets.count(),
        )
        shard.on_loaded()
        self._expire_later(context)

    def unloaded(self, context: CoordinatorContext[GroupShard]) -> None:
        """Stop the groups of a dropped shard."""
        groups = context.shard.groups
        self._log.info("groups_unloaded", partition=context.partition, groups=len(groups))
        context.shard.on_unloaded()

    def _expire_later(self, context: CoordinatorContext[GroupShard]) -> None:
        interval_ms = self._broker.config.offsets_retention_check_interval_ms
        self._broker.call_later(interval_ms, self._expire, context)

    def _expire(self, context: CoordinatorContext[GroupShard]) -> None:
        """Delete expired offsets and groups, every `offsets.retention.check.interval.ms`."""
        if context.is_active:
            context.perform(context.shard.offset_metadata.expire)
            self._expire_later(context)

    def on_image(self, changes: ImageChanges, image: MetadataImage) -> None:
        """Apply new metadata: first leadership changes, then topic changes."""
        self.runtime.follow(changes, image)
        for context in self.runtime.loaded():
            shard = context.shard
            if changes.deleted_topics:
                topics = changes.deleted_topics
                context.perform(partial(shard.offset_metadata.topics_deleted, topics))
                topic_ids = {topic.topic_id for topic in topics}
                context.perform(partial(shard.share_states.topics_deleted, topic_ids))
            shard.on_image(changes, image)


def _no_group_id() -> ApiError:
    code = ErrorCode.INVALID_GROUP_ID
    return ApiError(code, ERROR_TEXTS[code])
