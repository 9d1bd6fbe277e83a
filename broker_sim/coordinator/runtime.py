"""The shards of a coordinator, one for each partition that this broker leads; mirrors `CoordinatorRuntime`.

A new leader loads the partition's shard from the log before it serves requests for it, and the old leader
drops its shard. A `CoordinatorContext` carries out the results of its shard.

If a partition cannot be loaded (its log is offline or corrupt), the error is logged and the partition is marked as
failed: requests get NOT_COORDINATOR until this broker leads it in a new epoch.

Deliberate difference: Kafka's `TransactionStateManager` logs such an error and serves the ids it has read so far.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from broker_sim.coordinator.context import CoordinatorContext, CoordinatorState, Shard
from broker_sim.coordinator.storage import NO_TRANSACTION
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.hash_order.hash_codes import INT_MASK, java_hash_code
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.result import Result, ShardRuntime
    from broker_sim.coordinator.storage import CoordinatorTopic, VerifiedTransaction
    from broker_sim.metadata import ImageChanges, MetadataImage

log = get_logger(__name__)

_MAX_INT: Final = 0x7FFFFFFF
_MIN_INT: Final = 0x80000000

S = TypeVar("S", bound=Shard)
R = TypeVar("R")


class ShardOwner(Protocol[S]):
    """The coordinator that the shards belong to."""

    def make_shard(self, partition: int, runtime: ShardRuntime) -> S:
        """Return a new, empty shard."""

    def loaded(self, context: CoordinatorContext[S]) -> None:
        """Start using a shard that is loaded and serves requests from now on."""

    def unloaded(self, context: CoordinatorContext[S]) -> None:
        """Stop using a loaded shard: this broker resigned as leader, or reloads the partition."""


class CoordinatorRuntime(Generic[S]):
    """The shards of one internal topic on one broker. Thread rule: the broker's loop."""

    def __init__(self, broker: BrokerContext, topic: CoordinatorTopic, owner: ShardOwner[S]) -> None:
        self._broker = broker
        self.topic = topic
        self._owner = owner
        self._log = log.bind(node=f"broker-{broker.broker_id}", topic=topic.name)
        self._contexts: dict[int, CoordinatorContext[S]] = {}
        """Contexts of the partitions that this broker leads, in any state, by partition number."""
        self._count: int | None = None
        """Number of partitions that keys are spread over; None before the topic exists."""

    # -- requests -------------------------------------------------------------------------------

    def partition_for(self, key: str) -> int:
        """Return the partition number that the key maps to, even before the topic exists.

        As in Kafka, partitions added while the broker runs are not used.
        """
        count = self.topic.default_partitions if self._count is None else self._count
        return partition_of_key(key, count)

    def find(self, key: str) -> CoordinatorContext[S]:
        """Return the context of the key's partition. Raises `ApiError` as `get` does."""
        return self.get(self.partition_for(key))

    def get(self, partition: int) -> CoordinatorContext[S]:
        """Return the partition's context. Raises `ApiError`: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR."""
        context = self._contexts.get(partition)
        if context is None or context.state is CoordinatorState.FAILED:
            raise ApiError(ErrorCode.NOT_COORDINATOR)
        if context.state is CoordinatorState.LOADING:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return context

    def loaded(self) -> list[CoordinatorContext[S]]:
        """Return the contexts of all loaded partitions, ordered by partition number."""
        return [context for _, context in sorted(self._contexts.items()) if context.is_active]

    @property
    def is_loading(self) -> bool:
        """Whether a partition is being loaded."""
        loading = CoordinatorState.LOADING
        return any(context.state is loading for context in self._contexts.values())

    def write(
        self,
        key: str,
        decide: Callable[[S], Result[R]],
        on_response: Callable[[R], object],
        on_error: Callable[[ApiError], object],
        transaction: VerifiedTransaction = NO_TRANSACTION,
    ) -> None:
        """Call `decide` with the key's shard and carry out its result; see `CoordinatorContext.carry_out`.

        `on_error` also gets an `ApiError` raised by `find` or `decide`.
        """
        try:
            context = self.find(key)
            result = decide(context.shard)
        except ApiError as error:
            on_error(error)
            return
        context.carry_out(result, on_response, on_error, transaction)

    # -- roles ----------------------------------------------------------------------------------

    def follow(self, changes: ImageChanges, image: MetadataImage) -> None:
        """Apply new metadata: load partitions that this broker now leads, drop those it no longer leads."""
        name, broker_id = self.topic.name, self._broker.broker_id
        topic = image.topics.get(name)
        if topic is None:
            self._count = None
        elif self._count is None:
            self._count = len(topic.partitions)
        for topic in changes.deleted_topics:
            if topic.name == name:
                for partition in range(len(topic.partitions)):
                    self.resigned(partition)
        for key, _, state in changes.partitions:
            if key.topic == name:
                if state.leader == broker_id:
                    self.elected(key.partition, state.leader_epoch)
                else:
                    self.resigned(key.partition)

    def elected(self, partition: int, leader_epoch: int) -> None:
        """Start loading the partition, which this broker leads in a new epoch."""
        context = self._contexts.get(partition)
        if context is not None:
            if context.leader_epoch >= leader_epoch:
                return
            if context.is_active and self.topic.keeps_shards_when_reelected:
                context.leader_epoch = leader_epoch
                return
            self.resigned(partition)
        context = self._contexts[partition] = CoordinatorContext(
            partition, leader_epoch, self._broker, self.topic, self._owner.make_shard, self.reload
        )
        self._broker.call_later(0, self._load, context)

    def _load(self, context: CoordinatorContext[S]) -> None:
        if context.state is not CoordinatorState.LOADING:
            return  # resigned or re-elected in the meantime
        try:
            context.load()
        except Exception as error:
            context.state = CoordinatorState.FAILED
            if not isinstance(error, ApiError | ValueError):
                raise  # a bug: not an unreadable log or an undecodable record
            self._log.error(
                "coordinator_load_failed",
                partition=context.partition,
                leader_epoch=context.leader_epoch,
                why=repr(error),
            )
        else:
            self._owner.loaded(context)

    def resigned(self, partition: int) -> None:
        """Drop the partition, which this broker no longer leads."""
        context = self._contexts.pop(partition, None)
        if context is not None:
            was_active = context.is_active
            context.state = CoordinatorState.CLOSED
            if was_active:
                self._owner.unloaded(context)

    def reload(self, partition: int) -> None:
        """Reload the partition, because its state contains records that are not in the log."""
        context = self._contexts[partition]
        self._log.info("coordinator_reloaded", partition=partition, why="records could not be appended")
        self.resigned(partition)
        self.elected(partition, context.leader_epoch)

    def shutdown(self) -> None:
        """Drop all shards without calling the owner, as when a broker is killed."""
        for context in self._contexts.values():
            context.state = CoordinatorState.CLOSED
        self._contexts.clear()


@lru_cache(maxsize=4_096)
def partition_of_key(key: str, partitions: int) -> int:
    """Return the partition that a group id or transactional id maps to."""
    return partition_of_hash(java_hash_code(key), partitions)


def partition_of_hash(code: int, partitions: int) -> int:
    """Return Kafka's `Utils.abs(hashCode) % partitions` for an unsigned 32-bit hash code."""
    if code > _MAX_INT:
        code = 0 if code == _MIN_INT else INT_MASK + 1 - code
    return code % partitions
