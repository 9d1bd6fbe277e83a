"""Replicas that move between the log directories of their broker (KIP-113); mirrors `ReplicaAlterLogDirsThread`.

A future replica in the other directory copies the log, and takes its place when it has caught up:

    start      the future replica is empty; a move back to the log's own directory cancels it, a move to a
               third directory restarts it
    copy       at most `replica.fetch.max.bytes` of a replica at a time; while the rate of all moves exceeds
               `replica.alter.log.dirs.io.max.bytes.per.second`, retried every `replica.fetch.backoff.ms`
    truncated  the future replica is truncated with the log
    caught up  the log moves to the other directory

Deliberate difference: a future replica has no files; the log's files are copied in one step when it has caught up. A
restart cancels the moves that have not finished.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker_sim.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim.config import BrokerConfig
    from broker_sim.log import LogManager, PartitionLog
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.replica.replica_quota import ReplicaQuota
    from broker_sim.runtime.process import CallLater


@dataclass(slots=True)
class FutureReplica:
    """A replica that copies a log into another directory."""

    log: PartitionLog
    directory: str
    """Absolute path of the directory that the log moves to."""
    log_end_offset: int

    @property
    def size_bytes(self) -> int:
        """Bytes copied so far."""
        return self.log.position(self.log_end_offset) - self.log.position(self.log.log_start_offset)

    @property
    def offset_lag(self) -> int:
        """Number of offsets still to copy."""
        return self.log.log_end_offset - self.log_end_offset

    def copy(self, max_bytes: int) -> int:
        """Copy up to `max_bytes`, but at least one batch; return the number of bytes copied."""
        start_offset = min(max(self.log_end_offset, self.log.log_start_offset), self.log.log_end_offset)
        self.log_end_offset = self.log.offset_after(start_offset, max_bytes)
        return self.log.position(self.log_end_offset) - self.log.position(start_offset)


class LogDirMoves:
    """The future replicas of one broker, by partition."""

    def __init__(self, logs: LogManager, call_later: CallLater, config: BrokerConfig, quota: ReplicaQuota) -> None:
        """`quota` limits the bytes per second of all moves together."""
        self._logs = logs
        self._call_later = call_later
        self._config = config
        self._quota = quota
        self._futures: dict[TopicPartition, FutureReplica] = {}
        self._is_scheduled = False

    def start(self, log: PartitionLog, directory: str) -> None:
        """Begin to move the log to `directory`, unless it is there or already on its way there."""
        key = log.topic_partition
        future = self._futures.get(key)
        if future is not None and future.log is log and future.directory == directory:
            return
        self._futures.pop(key, None)
        if self._logs.directory_of(key) != directory:
            self._futures[key] = FutureReplica(log, directory, log.log_start_offset)
            self._schedule(0)

    def futures(self) -> Iterator[FutureReplica]:
        """Iterate over the future replicas of logs that this broker still has."""
        return (future for future in self._futures.values() if self._is_present(future))

    def _is_present(self, future: FutureReplica) -> bool:
        return future.log in self._logs.logs

    def _schedule(self, delay_ms: int) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call_later(delay_ms, self._copy)

    def _copy(self) -> None:
        """Copy a part of each replica, and reschedule until all have caught up."""
        self._is_scheduled = False
        for key, future in list(self._futures.items()):
            if not self._is_present(future):
                del self._futures[key]
                continue
            if self._quota.is_quota_exceeded():
                self._schedule(self._config.replica_fetch_backoff_ms)
                return
            self._quota.record(future.copy(self._config.replica_fetch_max_bytes))
            if not future.offset_lag:
                del self._futures[key]
                with suppress(ApiError):  # the log stays where it is, and its error is logged
                    self._logs.move(key, future.directory)
        if self._futures:
            self._schedule(0)
