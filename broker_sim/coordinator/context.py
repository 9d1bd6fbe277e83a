"""One partition of a coordinator's topic while this broker leads it; mirrors `CoordinatorContext`.

It owns the shard, and is the only writer of the partition. An operation only decides; the context carries out
its `Result` in this order:

1. decide: the shard reads its state and returns the result
2. append: the records are appended to the partition's log as one batch
3. replay: the records change the state, exactly as they do when the log is loaded
4. timers: timers are set and cancelled, now that the leader has the records
5. commit: the in-sync replicas have replicated the records, or the write has timed out
6. answer: the client gets the response or the error

Deliberate difference: each result is a batch of its own, except for results that share one (`WriteBuffer`).
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from broker_sim.coordinator.storage import NO_TRANSACTION, AppendError, coordinator_error
from broker_sim.coordinator.write_buffer import WriteBuffer
from broker_sim.errors import ApiError, ErrorCode
from broker_sim.protocol.record_batch import NO_PRODUCER_ID, parse_header
from broker_sim.protocol.records import read_end_txn_marker

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.coordinator.records import CoordinatorRecord
    from broker_sim.coordinator.result import Result, ShardRuntime
    from broker_sim.coordinator.storage import CoordinatorTopic, TransactionMarker, VerifiedTransaction

    OnDone = Callable[[ErrorCode], object]


class CoordinatorState(Enum):
    """State of one partition in its coordinator; mirrors `CoordinatorRuntime.CoordinatorState`."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    """The partition could not be loaded in this epoch."""
    CLOSED = "closed"
    """The broker no longer leads the partition."""


class Shard(Protocol):
    """The state built from the records of one partition; mirrors `CoordinatorShard`."""

    def replay(self, record: CoordinatorRecord, record_offset: int, producer_id: int = NO_PRODUCER_ID) -> None:
        """Apply the record at that offset of the log; it is part of a transaction if `producer_id` is set."""

    def replay_marker(self, producer_id: int, marker_offset: int, *, is_commit: bool) -> None:
        """Apply the marker at that offset, which commits or aborts the producer's open transaction."""


S = TypeVar("S", bound=Shard)
R = TypeVar("R")


def _ignore(_answer: object) -> None:
    """Ignore the response or error: no client waits for it."""


class CoordinatorContext(Generic[S]):
    """The `ShardRuntime` of one partition that this broker leads. Thread rule: the broker's loop."""

    def __init__(
        self,
        partition: int,
        leader_epoch: int,
        broker: BrokerContext,
        topic: CoordinatorTopic,
        make_shard: Callable[[int, ShardRuntime], S],
        reload: Callable[[int], object],
    ) -> None:
        """`reload(partition)` is called when records that are already replayed could not be appended."""
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.state = CoordinatorState.LOADING
        self._topic = topic
        self._storage = topic.storage
        self._reload = reload
        self._buffer = WriteBuffer(partition, broker, topic, self._fail)
        self._end_offset = 0
        self.change_offset = 0
        """Offset of the record that is being replayed, otherwise of the next record; see `ShardRuntime`."""
        self.shard: S = make_shard(partition, self)
        self.loaded_records = 0
        """Number of records and markers that `load` has replayed."""

    @property
    def is_active(self) -> bool:
        """Whether the shard is loaded, and the broker still leads the partition."""
        return self.state is CoordinatorState.ACTIVE

    @property
    def high_watermark(self) -> int:
        """High watermark of the partition: all records below it are committed."""
        return self._storage.high_watermark(self.partition)

    @property
    def is_committed(self) -> bool:
        """Whether all written records are committed, so that a result without records is answered at once."""
        # Buffered records count as well: they are replayed already.
        return self.is_active and self._end_offset <= self._storage.high_watermark(self.partition)

    def _fail(self) -> None:
        """Have the partition reloaded, because its state has records that are not in the log."""
        if self.is_active:
            self._reload(self.partition)

    def load(self) -> None:
        """Replay the partition's log. Raises `ApiError` or ValueError if a batch or record cannot be decoded."""
        for batch in self._storage.read(self.partition):
            header = parse_header(batch)
            self._end_offset = header.last_offset + 1
            if not header.is_control:
                for offset, record in self._topic.serde.decode_batch(batch):
                    self.change_offset = offset
                    self.shard.replay(record, offset, header.producer_id)
                    self.loaded_records += 1
            elif header.records_count:
                is_commit = read_end_txn_marker(batch).is_commit
                self.shard.replay_marker(header.producer_id, header.last_offset, is_commit=is_commit)
                self.loaded_records += 1
        self.change_offset = self._end_offset
        self.state = CoordinatorState.ACTIVE

    # -- results --------------------------------------------------------------------------------

    def perform(self, operation: Callable[[], Result[None]]) -> None:
        """Carry out an operation that no request has started; see `ShardRuntime`."""
        if self.is_active:
            self.carry_out(operation())

    def carry_out(
        self,
        result: Result[R],
        on_response: Callable[[R], object] = _ignore,
        on_error: Callable[[ApiError], object] = _ignore,
        transaction: VerifiedTransaction = NO_TRANSACTION,
    ) -> None:
        """Append the records of a result, and answer once they are committed, possibly before this returns.

        `on_error` gets the error for the client. If the append failed (in a transaction also with
        INVALID_PRODUCER_EPOCH or INVALID_TXN_STATE), nothing was replayed. If the records were not
        replicated in time (COORDINATOR_NOT_AVAILABLE) or another broker became the leader
        (NOT_COORDINATOR), the state keeps them.
        """
        settle = partial(_settle, result, on_response, on_error)
        if not result.records:
            if result.on_appended is not None:
                result.on_appended()
            if result.response is not None or result.on_settled is not None:
                self._await_all(settle)
        elif result.shares_batch:
            self._append_shared(result, settle)
        else:
            self._buffer.append(
                result.records,
                lambda last_offset: self._appended(result, last_offset + 1, transaction.producer_id),
                settle,
                transaction,
                result.timeout_ms,
            )

    def _await_all(self, settle: OnDone) -> None:
        """Call `settle` once all records written so far are committed."""
        is_committed = self.is_committed
        if not is_committed:
            self._buffer.flush()
            is_committed = self.is_committed
        if is_committed:
            settle(ErrorCode.NONE)
        elif not self.is_active:
            settle(ErrorCode.NOT_COORDINATOR)
        else:
            timeout_ms = self._topic.timeout_ms
            self._storage.await_committed(self.partition, self._end_offset, timeout_ms, settle)

    def _append_shared(self, result: Result[R], settle: OnDone) -> None:
        """Replay the records now and buffer them for the next batch; if that append fails, the shard is reloaded."""
        error_code = self._storage.check_append(self.partition)
        if error_code:
            settle(error_code)
        elif self._buffer.add(result.records, settle):
            self._appended(result, self._buffer.end_offset, NO_PRODUCER_ID)

    def _appended(self, result: Result[R], end_offset: int, producer_id: int) -> None:
        """Replay the result's records, the last of which is before `end_offset`; then run its `on_appended`."""
        self._end_offset = end_offset
        if result.replays:
            first_offset = end_offset - len(result.records)
            for offset, record in enumerate(result.records, first_offset):
                self.shard.replay(record, offset, producer_id)
        if result.on_appended is not None:
            result.on_appended()
        self.change_offset = self._end_offset

    def complete_transaction(self, marker: TransactionMarker, on_done: OnDone) -> None:
        """Append the marker that ends a producer's transaction, and replay it.

        `on_done` gets NONE when the marker is committed, or the unmapped error of the append.
        """

        def appended(offset: int) -> None:
            self._end_offset = self.change_offset = offset + 1
            self.shard.replay_marker(marker.producer_id, offset, is_commit=marker.is_commit)

        self._buffer.append_marker(marker, appended, on_done)


def _settle(
    result: Result[R], on_response: Callable[[R], object], on_error: Callable[[ApiError], object], error_code: ErrorCode
) -> None:
    """Run step 6; `error_code` is NONE once the records are committed, or the unmapped error of the append."""
    if result.on_settled is not None:
        result.on_settled(coordinator_error(error_code))
    if result.response is None:
        return
    if error_code:
        on_error(AppendError(error_code))
    else:
        on_response(result.response)
