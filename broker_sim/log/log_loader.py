"""Opens a log after its broker has stopped; mirrors `LogLoader`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.log.partition_log import PartitionLog


def recover(log: PartitionLog) -> None:
    """Bring all parts of the log in step with its segments and its last checkpoints.

    A recovery point behind the end, from before a truncation, would leave new records without a flush.
    A log that ends before its checkpointed start has lost its records: it begins there, empty. Expired
    producers are not there any more: Kafka loads those of recovered batches from a snapshot of them, as others.
    A log that was shut down and has no snapshot at all begins without producers, as in Kafka.
    """
    log_start_offset = log.storage.log_start_offset
    if log.log_end_offset < log_start_offset:
        log.truncate_fully_and_start_at(log_start_offset)
        return
    log.storage.recovery_point = min(log.storage.recovery_point, log.log_end_offset)
    log.log_start_offset = max(log_start_offset, log.segments[0].base_offset)
    log.leader_epoch_cache.truncate_from_end(log.log_end_offset)
    log.leader_epoch_cache.truncate_from_start(log.log_start_offset)
    log.producer_state.forget()
    if log.storage.begins_without_producers:
        log.producer_state.map_end_offset = log.log_end_offset
    log.rebuild_producer_state()
    log.producer_state.remove_expired_producers(log.clock.wall_clock_ms())
    log.restore_aborted()
    log.update_high_watermark(log.storage.high_watermark)
