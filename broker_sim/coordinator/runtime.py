"""Runs the state of a coordinator, partition by partition; mirrors `CoordinatorRuntime`.

Each partition of the internal topic that the broker leads is a `CoordinatorContext` with a shard. A new
leader loads the shard from the log before it answers; the old one drops it. An operation only decides;
what it leads to, a `Result`, is carried out here and nowhere else, in this order:

1. decide: the shard looks at its state and returns the result
2. append: the records are one batch of the partition's log
3. replay: the records change the state, as those do that loading reads
4. timers: what the operation sets or ends is set or ended, for the leader has its records
5. committed: the in-sync replicas have the records, or did not get them in time
6. answer: the client gets the response, or the error

Deliberate difference: each result is one batch, apart from those that share one (`WriteBuffer`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from broker_sim.coordinator.errors import coordinator_error
from broker_sim.coordinator.led_partitions import LedPartitions
from broker_sim.coordinator.write_buffer import NO_TRANSACTION, WriteBuffer
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.record_batch import NO_PRODUCER_ID, parse_header
from broker_sim.protocol.records import read_end_txn_marker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.coordinator.environment import RuntimeEnvironment
    from broker_sim.coordinator.records import CoordinatorRecord
    from broker_sim.coordinator.result import Result, ShardRuntime
    from broker_sim.coordinator.write_buffer import TransactionMarker, VerifiedTransaction

__all__ = ["CoordinatorContext", "CoordinatorRuntime", "Shard", "ShardOwner"]


class Shard(Protocol):
    """The state that the records of one partition make; mirrors `CoordinatorShard`."""

    def replay(
        self, record: CoordinatorRecord, record_offset: int, producer_id: int = NO_PRODUCER_ID
    ) -> None:
        """Take in a record that is in the log at that offset, in a transaction if a producer is named."""

    def replay_marker(self, producer_id: int, marker_offset: int, *, is_commit: bool) -> None:
        """Take in the marker at that offset of the log, which ends the producer's transaction."""


S = TypeVar("S", bound=Shard)
R = TypeVar("R")


class ShardOwner(Protocol[S]):
    """The coordinator, which knows what shards are."""

    def make_shard(self, partition: int, runtime: ShardRuntime) -> S:
        """Return a shard without state."""

    def loaded(self, context: CoordinatorContext[S]) -> None:
        """Begin to work with a shard that was loaded."""

    def unloaded(self, context: CoordinatorContext[S]) -> None:
        """Stop to work with a shard: another broker leads its partition now, or nobody."""


class CoordinatorContext(Generic[S]):
    """One partition while this broker leads it: its shard, and the one way in which it is written."""

    def __init__(
        self,
        partition: int,
        leader_epoch: int,
        environment: RuntimeEnvironment,
        make_shard: Callable[[int, ShardRuntime], S],
        reload: Callable[[int], object],
    ) -> None:
        """`reload(partition)` is called when the state has records that could not be appended."""
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.is_active = True
        """False from when the broker has stopped to lead the partition."""
        self._environment = environment
        self._storage = environment.storage
        self._reload = reload
        self._buffer = WriteBuffer(partition, environment, self._fail)
        self._end_offset = 0
        self.shard: S = make_shard(partition, self)
        self.loaded_records = 0
        """How many records and markers the shard was loaded from."""

    @property
    def high_watermark(self) -> int:
        """The offset below which all records are committed."""
        return self._storage.high_watermark(self.partition)

    @property
    def is_committed(self) -> bool:
        """Whether all that was written is committed, so that who writes nothing need not wait."""
        # Records that wait in the buffer are replayed, so they count.
        return self.is_active and self._end_offset <= self._storage.high_watermark(self.partition)

    def _fail(self) -> None:
        if self.is_active:
            self._reload(self.partition)

    # -- results --------------------------------------------------------------------------------

    def perform(self, operation: Callable[[], Result[None]]) -> None:
        """Carry out an operation that no request asks for; see `ShardRuntime`."""
        if self.is_active:
            self.carry_out(operation(), _ignore, _ignore)

    def carry_out(
        self,
        result: Result[R],
        on_response: Callable[[R], object],
        on_error: Callable[[ApiError], object],
        transaction: VerifiedTransaction = NO_TRANSACTION,
    ) -> None:
        """Append the records of a result, and answer when they are committed; that may be at once.

        `on_error` gets the error as clients are told it. The append has failed (of a transaction also
        with INVALID_PRODUCER_EPOCH or INVALID_TXN_STATE), and then nothing was replayed; or the
        replicas did not get the records in time (COORDINATOR_NOT_AVAILABLE), or another broker has
        become the leader (NOT_COORDINATOR), and then the state stays.
        """
        if not result.records:
            self._carry_out_nothing(result, on_response, on_error)
            return

        def settled(error_code: ErrorCode) -> None:
            _settle(result, coordinator_error(error_code), on_response, on_error)

        if result.shares_batch:
            self._append_shared(result, settled)
            return

        def appended(last_offset: int) -> None:
            if result.replays:
                first_offset = last_offset + 1 - len(result.records)
                self._replay(result.records, first_offset, transaction.producer_id)
            self._end_offset = last_offset + 1
            if result.on_appended is not None:
                result.on_appended()

        self._buffer.append(result.records, appended, settled, transaction, result.timeout_ms)

    def _append_shared(self, result: Result[R], settled: Callable[[ErrorCode], object]) -> None:
        """Replay the records now; they are appended soon. Should that fail, the shard is loaded again."""
        error_code = self._storage.check_append(self.partition)
        if error_code:
            settled(error_code)
        elif self._buffer.add(result.records, settled):
            first_offset = self._buffer.end_offset - len(result.records)
            self._replay(result.records, first_offset, NO_PRODUCER_ID)
            if result.on_appended is not None:
                result.on_appended()

    def _carry_out_nothing(
        self,
        result: Result[R],
        on_response: Callable[[R], object],
        on_error: Callable[[ApiError], object],
    ) -> None:
        """Answer when all that was written before is committed."""
        if result.on_appended is not None:
            result.on_appended()
        if result.response is None and result.on_settled is None:
            return
        is_committed = self.is_committed
        if not is_committed:
            self._buffer.flush()
            is_committed = self.is_committed
        if is_committed:
            _settle(result, ErrorCode.NONE, on_response, on_error)
        elif not self.is_active:
            _settle(result, ErrorCode.NOT_COORDINATOR, on_response, on_error)
        else:
            self._storage.await_committed(
                self.partition,
                self._end_offset,
                self._environment.timeout_ms,
                lambda error_code: _settle(
                    result, coordinator_error(error_code), on_response, on_error
                ),
            )

    def complete_transaction(
        self, marker: TransactionMarker, on_done: Callable[[ErrorCode], object]
    ) -> None:
        """Append the marker that ends a producer's transaction, and replay it.

        `on_done` gets NONE when the marker is committed, or the error of the append as it is.
        """

        def appended(offset: int) -> None:
            self._replay_marker(marker.producer_id, offset, is_commit=marker.is_commit)

        self._buffer.append_marker(marker, appended, on_done)

    # -- replay ---------------------------------------------------------------------------------

    def load(self) -> None:
        """Replay the partition's log."""
        for batch in self._storage.read(self.partition):
            header = parse_header(batch)
            if not header.is_control:
                for offset, record in self._environment.serde.decode_batch(batch):
                    self._replay((record,), offset, header.producer_id)
                    self.loaded_records += 1
            elif header.records_count:
                is_commit = read_end_txn_marker(batch).is_commit
                self._replay_marker(header.producer_id, header.last_offset, is_commit=is_commit)
                self.loaded_records += 1

    def _replay(
        self, records: Sequence[CoordinatorRecord], first_offset: int, producer_id: int
    ) -> None:
        for offset, record in enumerate(records, first_offset):
            self._end_offset = offset + 1
            self.shard.replay(record, offset, producer_id)

    def _replay_marker(self, producer_id: int, offset: int, *, is_commit: bool) -> None:
        self._end_offset = offset + 1
        self.shard.replay_marker(producer_id, offset, is_commit=is_commit)


def _settle(
    result: Result[R],
    error_code: ErrorCode,
    on_response: Callable[[R], object],
    on_error: Callable[[ApiError], object],
) -> None:
    if result.on_settled is not None:
        result.on_settled(error_code)
    if result.response is None:
        return
    if error_code:
        on_error(ApiError(error_code))
    else:
        on_response(result.response)


def _ignore(_answer: object) -> None:
    """Do nothing: nobody waits for an answer."""


class CoordinatorRuntime(Generic[S]):
    """The shards that this broker leads. Thread rule: the broker's loop."""

    def __init__(self, environment: RuntimeEnvironment, owner: ShardOwner[S]) -> None:
        self._environment = environment
        self._owner = owner
        self.partitions: LedPartitions[CoordinatorContext[S]] = LedPartitions(
            environment.topic, environment.broker_id, environment.call_later, self
        )

    # -- requests -------------------------------------------------------------------------------

    def partition_for(self, key: str) -> int:
        """Return the partition of the topic that the key is in, or will be."""
        return self.partitions.partition_for(key, self._environment.default_partitions)

    def find(self, key: str) -> CoordinatorContext[S]:
        """Return the context of a key. Raises `ApiError`: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""
        return self.partitions.find(key, self._environment.default_partitions)

    def write(
        self,
        key: str,
        decide: Callable[[S], Result[R]],
        on_response: Callable[[R], object],
        on_error: Callable[[ApiError], object],
        transaction: VerifiedTransaction = NO_TRANSACTION,
    ) -> None:
        """Let the shard of a key decide, and carry its result out; `on_error` as in `carry_out`.

        It also gets an `ApiError` that `decide` raises, or that says why there is no shard.
        """
        try:
            context = self.find(key)
            result = decide(context.shard)
        except ApiError as error:
            on_error(error)
            return
        context.carry_out(result, on_response, on_error, transaction)

    # -- roles: see `PartitionOwner` ------------------------------------------------------------

    def load(self, partition: int, leader_epoch: int) -> CoordinatorContext[S]:
        """Return the shard that the partition's log holds."""
        context = CoordinatorContext(
            partition,
            leader_epoch,
            self._environment,
            self._owner.make_shard,
            self.partitions.reload,
        )
        context.load()
        return context

    def loaded(self, part: CoordinatorContext[S]) -> None:
        """Let the shard begin to work."""
        self._owner.loaded(part)

    def reelected(self, part: CoordinatorContext[S], leader_epoch: int) -> bool:
        """Keep the shard, if what it has is what the log has whatever the epoch."""
        if self._environment.keeps_shards_when_reelected:
            part.leader_epoch = leader_epoch
        return self._environment.keeps_shards_when_reelected

    def unloaded(self, part: CoordinatorContext[S]) -> None:
        """Let the shard stop to work."""
        part.is_active = False
        self._owner.unloaded(part)

    def shutdown(self) -> None:
        """Forget all shards without a word, as a broker that dies."""
        for context in self.partitions.drop_all():
            context.is_active = False
