"""The cleaner of one broker and its threads; mirrors `LogCleaner` and `CleanerThread`.

A thread cleans the dirtiest log, deletes the old segments of compacted logs, and repeats;
without a log to clean it pauses for `log.cleaner.backoff.ms`. A log whose cleaning has failed is not cleaned
again.

Deliberate difference: the threads are not threads. Their work is done on the broker's loop, in steps of a
few milliseconds: at most `RECORDS_PER_STEP` records, and at most the bytes that Kafka's thread reads at
once (half of its share of `log.cleaner.io.buffer.size`). Only the decompression of a batch is never split.
Between two steps the loop runs everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.log.cleaner.batch_filter import CleanerStats, OffsetMap
from broker_sim.log.cleaner.cleaner import Cleaner, LogCleaningAbortedError
from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from broker_sim_purgatory import Clock

    from broker_sim.config import BrokerConfig
    from broker_sim.log.cleaner.batch_filter import Work
    from broker_sim.log.cleaner.manager import LogCleanerManager
    from broker_sim.log.partition_log import PartitionLog
    from broker_sim.runtime.process import Handle, Process

event_log = get_logger(__name__)

RECORDS_PER_STEP: Final = 512


class Throttler:
    """Limits all threads of one cleaner to `log.cleaner.io.max.bytes.per.second`; mirrors `Throttler`.

    Deliberate difference: Kafka checks the rate every 300 ms and then sleeps; here each step is followed by the pause
    that its bytes require, which works in virtual time too, where steps take no time.
    """

    __slots__ = ("_clock", "_free_ms", "desired_bytes_per_second")

    def __init__(self, desired_bytes_per_second: float, clock: Clock) -> None:
        self.desired_bytes_per_second = desired_bytes_per_second
        self._clock = clock
        self._free_ms = float(clock.now_ms())

    def observe(self, size_bytes: int) -> int:
        """Count bytes read or written; return the pause that must follow, in ms."""
        now_ms = self._clock.now_ms()
        needed_ms = 1000 * size_bytes / max(self.desired_bytes_per_second, 1.0)
        self._free_ms = max(self._free_ms, now_ms) + needed_ms
        return int(self._free_ms - now_ms)


class LogCleaner:
    """The cleaner of one broker, which runs from `startup` to `shutdown` in the broker's process."""

    def __init__(
        self,
        broker_id: int,
        process: Process,
        config: BrokerConfig,
        manager: LogCleanerManager,
        compacted_logs: Callable[[], Iterable[PartitionLog]],
    ) -> None:
        self.config = config
        self.process = process
        self.manager = manager
        self.compacted_logs = compacted_logs
        self.log = event_log.bind(process.clock, broker=broker_id)
        self.throttler = Throttler(config.log_cleaner_io_max_bytes_per_second, process.clock)
        self._threads: list[CleanerThread] = []

    def startup(self) -> None:
        """Start the threads, unless `log.cleaner.enable` is false."""
        if not self.config.log_cleaner_enable:
            return
        self._threads = [CleanerThread(number, self) for number in range(self.config.log_cleaner_threads)]

    def shutdown(self) -> None:
        """Stop the threads; a cleaning in progress ends without a result."""
        for thread in self._threads:
            thread.shutdown()
        self._threads = []

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply a changed configuration; the threads restart if one of the cleaner's values has changed."""
        before, self.config = self.config, config
        if _settings(before) == _settings(config):
            return
        self.throttler.desired_bytes_per_second = config.log_cleaner_io_max_bytes_per_second
        self.shutdown()
        self.startup()

    @property
    def last_stats(self) -> list[CleanerStats]:
        """The counters of each thread's last cleaning."""
        return [thread.last_stats for thread in self._threads]


class CleanerThread:
    """One thread, which cleans one log after the other."""

    def __init__(self, number: int, cleaner: LogCleaner) -> None:
        self._number = number
        self._owner = cleaner
        self._process = cleaner.process
        self._manager = cleaner.manager
        config = cleaner.config
        self._backoff_ms = max(config.log_cleaner_backoff_ms, 1)
        share = max(config.log_cleaner_threads, 1)
        self._map_bytes = config.log_cleaner_dedupe_buffer_size // share
        self._load_factor = config.log_cleaner_io_buffer_load_factor
        self._bytes_per_step = max(config.log_cleaner_io_buffer_size // share // 2, 1)
        self._cleaner: Cleaner | None = None
        self._work: Generator[Work, None, int] | None = None
        self.last_stats = CleanerStats()
        self._handle: Handle = self._process.call_later(0, self._do_work)

    def shutdown(self) -> None:
        """Stop, and abort the cleaning in progress."""
        self._handle.cancel()
        if self._cleaner is not None:
            self._manager.abort_cleaning(self._cleaner.cleanable.log.topic_partition)

    def _do_work(self) -> None:
        """Begin to clean the dirtiest log, or retry after the backoff."""
        cleanable = self._manager.grab_filthiest_compacted_log(self._owner.compacted_logs())
        if cleanable is None:
            self._delete_old_segments()
            self._handle = self._process.call_later(self._backoff_ms, self._do_work)
            return
        self._cleaner = Cleaner(cleanable, OffsetMap(self._map_bytes, self._load_factor))
        self._work = self._cleaner.clean()
        self._step()

    def _step(self) -> None:
        """Continue the cleaning for one step."""
        assert self._cleaner is not None
        cleanable = self._cleaner.cleanable
        if not self._manager.is_in_progress(cleanable):
            self._end()
            return
        try:
            done_bytes, end_offset = self._run_for_a_step()
        except LogCleaningAbortedError:
            self._manager.abort_cleaning(cleanable.log.topic_partition)
            self._end()
            return
        except Exception as error:  # noqa: BLE001 - the other logs must be cleaned
            self._manager.cleaning_failed(cleanable.log.topic_partition, error)
            self._end(self._backoff_ms)
            return
        if end_offset is not None:
            self._manager.done_cleaning(cleanable, end_offset)
            self.last_stats = self._cleaner.stats
            self._log_stats(self._cleaner, end_offset)
            # If the keys of a single batch do not fit, it would restart at once, forever.
            self._end(0 if end_offset > cleanable.first_dirty_offset else self._backoff_ms)
            return
        pause_ms = self._owner.throttler.observe(done_bytes)
        self._handle = self._process.call_later(pause_ms, self._step)

    def _run_for_a_step(self) -> tuple[int, int | None]:
        """Return the bytes of the step, and the first dirty offset if the cleaning is done."""
        assert self._work is not None
        records = size_bytes = 0
        while records < RECORDS_PER_STEP and size_bytes < self._bytes_per_step:
            try:
                work = next(self._work)
            except StopIteration as done:
                return size_bytes, done.value
            records += work.records
            size_bytes += work.size_bytes
        return size_bytes, None

    def _end(self, pause_ms: int = 0) -> None:
        """End the cleaning and look for the next log."""
        self._cleaner = self._work = None
        self._delete_old_segments()
        self._handle = self._process.call_later(pause_ms, self._do_work)

    def _delete_old_segments(self) -> None:
        for log in self._manager.deletable_logs(self._owner.compacted_logs()):
            try:
                log.delete_old_segments()
            except Exception as error:  # noqa: BLE001 - the other logs must be checked
                self._manager.cleaning_failed(log.topic_partition, error)

    def _log_stats(self, cleaner: Cleaner, end_offset: int) -> None:
        stats = cleaner.stats
        self._owner.log.info(
            "log_cleaned",
            thread=self._number,
            partition=str(cleaner.cleanable.log.topic_partition),
            dirty_section=[cleaner.cleanable.first_dirty_offset, end_offset],
            elapsed_ms=stats.elapsed_ms,
            indexed_bytes=stats.map_bytes_read,
            buffer_utilization_percent=round(100 * stats.buffer_utilization, 1),
            start_bytes=stats.bytes_read,
            start_messages=stats.messages_read,
            end_bytes=stats.bytes_written,
            end_messages=stats.messages_written,
            size_reduction_percent=stats.size_reduction_percent,
            fewer_messages_percent=stats.message_reduction_percent,
        )
        if stats.invalid_messages_read:
            self._owner.log.warning(
                "invalid_messages_found",
                partition=str(cleaner.cleanable.log.topic_partition),
                messages=stats.invalid_messages_read,
            )


def _settings(config: BrokerConfig) -> tuple[float, ...]:
    """Return the cleaner's configurations that may change at run time; mirrors `ReconfigurableConfigs`."""
    return (
        config.log_cleaner_threads,
        config.log_cleaner_dedupe_buffer_size,
        config.log_cleaner_io_buffer_load_factor,
        config.log_cleaner_io_buffer_size,
        config.log_cleaner_io_max_bytes_per_second,
        config.log_cleaner_backoff_ms,
        config.message_max_bytes,
    )
