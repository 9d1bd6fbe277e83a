"""A topic partition as read by one share group; mirrors `kafka.server.share.SharePartition`.

The partition leader tracks acquisitions in memory (`InFlightRecords`) and persists delivery states with the share
coordinator (`Persister`). A change takes three steps:

1. The states change at once, so that no other request can change them.
2. The changes are written.
3. If the write succeeds, the changes are kept and the start offset may advance; otherwise they are rolled back.

If the group has a dead-letter topic, records that it cannot process stay ARCHIVING after step 3 until their dead
letters are written or abandoned; then they are archived, and that is written. A new leader restarts the dead letters
of records that it reads as ARCHIVING.

A lock timeout does not wait for step 2: the records are available at once, and if the write fails, only the next
leader is affected.

Deliberate difference: there is no read-write lock, because a broker's state is only used on its loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from broker_sim.errors import ApiError, ErrorCode
from broker_sim.metadata.topic_partition import TopicIdPartition
from broker_sim.protocol.special_values import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from broker_sim.runtime.event_log import get_logger
from broker_sim.share.dead_letters.dead_letter_queue import DELIVERED_TOO_OFTEN, REJECTED, DeadLetters
from broker_sim.share.partition.acknowledgement import Acknowledgement, ChangeCount, joined_batches, time_out
from broker_sim.share.partition.acquisition import Acquisition, leave_out_aborted
from broker_sim.share.partition.acquisition_lock import AcquisitionLocks
from broker_sim.share.partition.in_flight_batch import InFlightBatch
from broker_sim.share.partition.in_flight_records import GapWindow, InFlightRecords
from broker_sim.share.partition.in_flight_state import InFlightState
from broker_sim.share.partition.record_state import TERMINAL_STATES, DeliveryLimit, RecordState
from broker_sim.share.share_state import UNINITIALIZED_START_OFFSET, WrittenState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim_purgatory import Clock, Timer

    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.share.dead_letters.dead_letter_queue import DeadLetterQueue, NoOpDeadLetterQueue
    from broker_sim.share.partition.acknowledgement import AcknowledgementBatch, StateUpdate
    from broker_sim.share.partition.acquisition import AcquireLimits
    from broker_sim.share.partition.acquisition_lock import AcquisitionLockTimerTask
    from broker_sim.share.partition.fetched_records import AcquiredRange, FetchedRecords
    from broker_sim.share.partition.log_reader import LogOffsetMetadata, LogReader
    from broker_sim.share.partition.waiting_share_fetches import WaitingShareFetches
    from broker_sim.share.persister.persister import Persister
    from broker_sim.share.settings import ShareGroupSettings
    from broker_sim.share.share_state import ReadState, SharePartitionKey, StateBatch, StateOutcome

    OnDone = Callable[[ApiError | None], object]

log = get_logger(__name__)

_CLIENT_ERRORS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""Maps errors of the share coordinator to errors for clients; all others become UNKNOWN_SERVER_ERROR."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePartitionEnvironment:
    """The services shared by all share partitions of a broker."""

    persister: Persister
    reader: LogReader
    settings: ShareGroupSettings
    waiting_fetches: WaitingShareFetches
    lock_timer: Timer
    """Timer of the acquisition locks."""
    clock: Clock
    dead_letters: DeadLetterQueue | NoOpDeadLetterQueue | None = None
    """Writes dead letters; None before Kafka 4.4."""


class SharePartitionState(Enum):
    """Lifecycle of a share partition; only ACTIVE ones serve requests."""

    EMPTY = "empty"
    INITIALIZING = "initializing"
    ACTIVE = "active"
    FAILED = "failed"
    FENCED = "fenced"


class SharePartition:
    """A share partition, from its first fetch until this broker stops leading it."""

    def __init__(
        self,
        key: SharePartitionKey,
        topic_partition: TopicPartition,
        leader_epoch: int,
        environment: SharePartitionEnvironment,
    ) -> None:
        self.key = key
        self.topic_partition = topic_partition
        self.leader_epoch = leader_epoch
        self.state = SharePartitionState.EMPTY
        self.state_epoch = 0
        self.records = InFlightRecords()
        self.fetch_offset_metadata: LogOffsetMetadata | None = None
        """Log position of the next fetch offset, cached from the last read."""
        self.lock_timeouts = 0
        """Number of records whose locks have timed out."""
        self._environment = environment
        self._settings = environment.settings
        self._fetch_lock: object | None = None
        self._locks = AcquisitionLocks(
            environment.lock_timer,
            environment.clock,
            lambda: self._settings.record_lock_duration_ms(key.group_id),
            self._on_lock_timeout,
        )

    @property
    def delivery_limit(self) -> DeliveryLimit:
        """The group's delivery limit, and the state of records that the group cannot process."""
        group_id = self.key.group_id
        count = self._settings.delivery_count_limit(group_id)
        if self._settings.has_dead_letters(group_id):
            return DeliveryLimit(count, RecordState.ARCHIVING)
        return DeliveryLimit(count)

    # -- initialization -------------------------------------------------------------------------

    def maybe_initialize(self, on_done: OnDone) -> None:
        """Read the persisted state if it is not read yet; `on_done` gets None or the error.

        The error is LEADER_NOT_AVAILABLE while another request is reading the state.
        """
        name = f"{self.key.group_id}-{self.topic_partition}"
        if self.state is SharePartitionState.ACTIVE:
            on_done(None)
        elif self.state is SharePartitionState.FAILED:
            text = f"Share partition failed to load {name}"
            on_done(ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text))
        elif self.state is SharePartitionState.EMPTY:
            self.state = SharePartitionState.INITIALIZING
            self._environment.persister.read_state(
                self.key, self.leader_epoch, lambda read: self._initialize(read, on_done)
            )
        else:
            what = "fenced" if self.state is SharePartitionState.FENCED else "already initializing"
            text = f"Share partition is {what} {name}"
            on_done(ApiError(ErrorCode.LEADER_NOT_AVAILABLE, text))

    def _initialize(self, read: ReadState, on_done: OnDone) -> None:
        try:
            self._load_state(read)
        except ApiError as error:
            self.state = SharePartitionState.FAILED
            self._log_failure("share_partition_not_initialized", error)
            on_done(error)
        else:
            self.state = SharePartitionState.ACTIVE
            on_done(None)
            self._resume_dead_letters(read.state_batches)

    def _load_state(self, read: ReadState) -> None:
        """Load the state that the previous leader has written. Raises ApiError."""
        if read.error_code:
            raise _persister_error(read)
        records = self.records
        start_offset = read.start_offset
        if start_offset == UNINITIALIZED_START_OFFSET:
            start_offset = self._first_start_offset()
        records.start_offset = records.end_offset = start_offset
        self.state_epoch = read.state_epoch
        gap_start = self._load_batches(read.state_batches)
        if records.batches:
            records.finds_next_fetch_offset = True
            records.end_offset = records.batches.last.last_offset
            if gap_start is not None:
                records.gap_window = GapWindow(records.end_offset, gap_start)
            records.maybe_move_start_offset()

    def _load_batches(self, batches: Sequence[StateBatch]) -> int | None:
        """Put the batches in flight; return the first offset of the first gap, None if there is none."""
        records = self.records
        gap_start: int | None = None
        expected = records.start_offset
        for first_offset, last_offset, delivery_state, delivery_count in batches:
            if first_offset < records.start_offset or last_offset < first_offset:
                name = f"{self.key.group_id}-{self.topic_partition}"
                text = f"Failed to initialize the share partition {name}"
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
            if gap_start is None and first_offset > expected:
                gap_start = expected
            expected = last_offset + 1
            state = RecordState.of_number(delivery_state)
            records.batches.put(InFlightBatch(first_offset, last_offset, InFlightState(state, delivery_count)))
            if state in TERMINAL_STATES:
                records.delivery_complete_count += last_offset - first_offset + 1
        return gap_start

    def _first_start_offset(self) -> int:
        """Return the start offset for a group that has never read the partition."""
        reset = self._settings.auto_offset_reset(self.key.group_id)
        if reset.duration_ms is not None:
            return self._find_offset(self._environment.clock.wall_clock_ms() - reset.duration_ms)
        return self._find_offset(EARLIEST_TIMESTAMP if reset.is_earliest else LATEST_TIMESTAMP)

    def _find_offset(self, timestamp: int) -> int:
        """Return the offset for a timestamp. Raises as `LogReader.find_offset`."""
        return self._environment.reader.find_offset(self.topic_partition, self.leader_epoch, timestamp)

    def mark_fenced(self) -> None:
        """Reject all requests from now on: this broker no longer owns the share partition."""
        self.state = SharePartitionState.FENCED

    # -- fetch ----------------------------------------------------------------------------------

    def maybe_acquire_fetch_lock(self, fetch: object) -> bool:
        """Lock out other fetches until `release_fetch_lock`; return False if another fetch has the lock."""
        if self.state is not SharePartitionState.ACTIVE or self._fetch_lock is not None:
            return False
        self._fetch_lock = fetch
        return True

    def release_fetch_lock(self, fetch: object) -> None:
        """Release the fetch lock, which the fetch must hold."""
        assert self._fetch_lock is fetch, "the fetch does not hold the fetch lock"
        self._fetch_lock = None

    def can_acquire_records(self) -> bool:
        """Whether the number of records in flight is below its limit, or some of them are available again."""
        records = self.records
        if records.next_fetch_offset() != records.end_offset + 1:
            return True
        return records.count < self._settings.partition_max_record_locks(self.key.group_id)

    def last_acquirable_offset(self, fetch_offset: int, max_records: int) -> int:
        """Return the last offset that a fetch from this offset may acquire, within the record lock limit."""
        most = self._settings.partition_max_record_locks(self.key.group_id)
        return self.records.last_acquirable_offset(fetch_offset, min(max_records, most))

    def acquire(self, limits: AcquireLimits, fetch_offset: int, fetched: FetchedRecords) -> list[AcquiredRange]:
        """Acquire the fetched records for a member; return the acquired ranges."""
        if self.state is not SharePartitionState.ACTIVE or limits.max_records <= 0 or not fetched.batches:
            return []
        acquisition = Acquisition(
            self.records, self._locks, limits, fetched, self._settings.delivery_count_limit(self.key.group_id)
        )
        acquired = acquisition.run(fetch_offset, self._settings.partition_max_record_locks(self.key.group_id))
        if acquired and fetched.aborted_transactions:
            return leave_out_aborted(self.records, self._locks, fetched, acquired)
        return acquired

    def log_start_offset(self) -> int:
        """Return the log start offset. Raises ApiError if this broker does not lead the partition in `leader_epoch`."""
        return self._find_offset(EARLIEST_TIMESTAMP)

    def log_start_moved(self, log_start_offset: int) -> None:
        """Advance the start offset to the log start offset; acquired records stay with their members."""
        self.records.log_start_moved(log_start_offset, self._locks)

    # -- acknowledgement ------------------------------------------------------------------------

    def acknowledge(
        self, member_id: str, batches: Sequence[AcknowledgementBatch], changes: ChangeCount, on_done: OnDone
    ) -> None:
        """Acknowledge records, and write the changes. If it raises FailedRequestError, `on_done` is not called."""
        acknowledgement = self._acknowledgement(member_id, changes)
        try:
            acknowledgement.acknowledge(batches)
        except ApiError as error:
            self._roll_back(acknowledgement.updates)
            on_done(error)
        else:
            self._write_updates(acknowledgement.updates, on_done)

    def release_acquired_records(self, member_id: str, on_done: OnDone) -> None:
        """Release all records that a member has acquired: its session has closed."""
        acknowledgement = self._acknowledgement(member_id, ChangeCount())
        try:
            acknowledgement.release_all()
        except ApiError as error:
            self._roll_back(acknowledgement.updates)
            on_done(error)
        else:
            self._write_updates(acknowledgement.updates, on_done)

    def _acknowledgement(self, member_id: str, changes: ChangeCount) -> Acknowledgement:
        return Acknowledgement(
            self.records,
            self._locks,
            member_id,
            self.delivery_limit,
            changes,
            is_renewable=self._settings.is_renew_acknowledge_enabled(self.key.group_id),
        )

    def _write_updates(self, updates: Sequence[StateUpdate], on_done: OnDone) -> None:
        """Write the changes; then keep them, or roll them back if the write fails."""
        if not updates:
            on_done(None)
            return

        def written(error: ApiError | None) -> None:
            has_start_moved = False
            undeliverable: Sequence[StateUpdate] = ()
            if error is not None:
                self._roll_back(updates)
            else:
                self._complete(updates, commit=True)
                undeliverable = self._undeliverable(updates)
                self._merge(updates)
                has_start_moved = self.records.maybe_move_start_offset()
            on_done(error)
            if has_start_moved:
                self._environment.waiting_fetches.announce(self.key)
            self._write_dead_letters(undeliverable)

        self._write([update.written for update in updates], written)

    def _roll_back(self, updates: Sequence[StateUpdate]) -> None:
        """Roll the changes back, and subtract them from the count of completed records."""
        self._complete(updates, commit=False)
        records = self.records
        for state, state_batch, _ in updates:
            if state_batch.delivery_state in TERMINAL_STATES and not state.is_terminal:
                records.delivery_complete_count -= records.count_in(state_batch.first_offset, state_batch.last_offset)
        self._merge(updates)

    def _complete(self, updates: Sequence[StateUpdate], *, commit: bool) -> None:
        for state, _, _ in updates:
            if state.complete_state_transition(commit=commit):
                self.records.finds_next_fetch_offset = True

    def _merge(self, updates: Sequence[StateUpdate]) -> None:
        """Join equal parts of batches in the range of the changes."""
        if updates:
            first, last = updates[0].written.first_offset, updates[-1].written.last_offset
            self.records.merge(first, last)

    def _write(self, batches: Sequence[StateBatch], on_done: OnDone) -> None:
        def written(outcome: StateOutcome) -> None:
            error = _persister_error(outcome) if outcome.error_code else None
            if error is not None:
                self._log_failure("share_group_state_not_written", error)
            on_done(error)

        state = WrittenState(
            self.state_epoch,
            self.leader_epoch,
            self.records.start_offset,
            self.records.delivery_complete_count,
            joined_batches(batches),
        )
        self._environment.persister.write_state(self.key, state, written)

    # -- dead letters ---------------------------------------------------------------------------

    def _undeliverable(self, updates: Sequence[StateUpdate]) -> Sequence[StateUpdate]:
        """Return the updates to ARCHIVING, whose dead letters must be written."""
        if self._environment.dead_letters is None:
            return ()
        return [update for update in updates if update.state.state is RecordState.ARCHIVING]

    def _write_dead_letters(self, updates: Sequence[StateUpdate]) -> None:
        for update in updates:
            self._write_dead_letters_of(update.written, REJECTED if update.is_rejected else DELIVERED_TOO_OFTEN)

    def _resume_dead_letters(self, batches: Sequence[StateBatch]) -> None:
        """Write the dead letters that the previous leader has not finished; some may be written twice."""
        if self._environment.dead_letters is None:
            return
        for batch in batches:
            if batch.delivery_state == RecordState.ARCHIVING:
                is_last = batch.delivery_count >= self.delivery_limit.max_deliveries
                self._write_dead_letters_of(batch, DELIVERED_TOO_OFTEN if is_last else REJECTED)

    def _write_dead_letters_of(self, batch: StateBatch, cause: str) -> None:
        """Write a dead letter for each record; once they are written or abandoned, archive the records."""
        queue = self._environment.dead_letters
        assert queue is not None
        source = TopicIdPartition(self.key.topic_id, self.key.partition, self.topic_partition.topic)
        letters = DeadLetters(
            self.key.group_id, source, batch.first_offset, batch.last_offset, batch.delivery_count, cause
        )
        queue.enqueue(letters, lambda: self._archive(batch))

    def _archive(self, batch: StateBatch) -> None:
        records, (first, last) = self.records, batch[:2]
        floor = records.batches.floor(first)
        batches = records.batches.between(first if floor is None else floor.first_offset, last)
        records.archive(batches, first, last + 1, RecordState.ARCHIVING, self._locks, counts=False)
        records.delivery_complete_count += records.count_in(first, last)
        records.merge(first, last)

        def written(_error: ApiError | None) -> None:
            if records.maybe_move_start_offset():
                self._environment.waiting_fetches.announce(self.key)

        self._write([batch._replace(delivery_state=RecordState.ARCHIVED)], written)

    # -- locks ----------------------------------------------------------------------------------

    def _on_lock_timeout(self, task: AcquisitionLockTimerTask) -> None:
        """Release the records of a timed-out lock; those at their delivery limit become undeliverable.

        In Kafka each record of a split batch has its own lock, and waiting share fetches are tried after each of them.
        So a waiting fetch gets the first record by itself.
        """
        first_offset, last_offset = task.first_offset, task.last_offset
        self.lock_timeouts += last_offset - first_offset + 1
        if task.cancelled:
            return
        floor = self.records.batches.floor(first_offset)
        is_split = floor is not None and floor.batch_state is None
        end = first_offset if is_split else last_offset
        while first_offset <= last_offset:
            completed = self._time_out(first_offset, end)
            first_offset, end = end + 1, end + 1 if completed else last_offset

    def _time_out(self, first_offset: int, last_offset: int) -> int:
        """Release these records; return the number of share fetches that this completes."""
        updates = time_out(self.records, self._locks, first_offset, last_offset, self.delivery_limit)
        if not updates:
            return 0
        undeliverable = self._undeliverable(updates)

        def written(_error: ApiError | None) -> None:
            self.records.maybe_move_start_offset()
            self._write_dead_letters(undeliverable)

        self._write([update.written for update in updates], written)
        return self._environment.waiting_fetches.complete(self.key)

    def _log_failure(self, event: str, error: ApiError) -> None:
        log.bind(self._environment.clock, partition=str(self.topic_partition)).warning(
            event, group_id=self.key.group_id, error=error.error_code.name
        )


def _persister_error(outcome: ReadState | StateOutcome) -> ApiError:
    """Map an error of the share coordinator to the error for clients."""
    code = _CLIENT_ERRORS.get(outcome.error_code)
    if code is not None:
        return ApiError(code, outcome.error_message or "")
    if outcome.error_code in (ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION):
        text = "Unable to complete operation due to server error."
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
    return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, outcome.error_message or "")
