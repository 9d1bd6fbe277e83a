"""The periodic tasks of a broker; mirrors those that `BrokerServer` schedules."""

from __future__ import annotations

from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final

from broker_sim.log.cleaner import LogCleaner
from broker_sim.runtime.process import PeriodicTask

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker_sim.config import BrokerConfig
    from broker_sim.coordinator.broker_context import BrokerContext
    from broker_sim.replica import ReplicaManager

LONGEST_PERIOD_MS: Final = 1 << 40
"""Longest period of a task, about 34 years; a task with a longer one never runs."""


class BackgroundWork:
    """Periodic tasks and the log cleaner, from `start` to `stop`."""

    def __init__(
        self,
        broker: BrokerContext,
        replica_manager: ReplicaManager,
        call_if_made: Callable[[str, Callable[[Any], object]], None],
    ) -> None:
        """`call_if_made` calls a method of a coordinator if it has been made, see `Broker.call_if_made`."""
        self.log_cleaner = LogCleaner(
            broker.broker_id, broker.process, broker.config, broker.logs.cleaner, broker.logs.compacted_logs
        )
        self._broker = broker
        self._logs = broker.logs
        self._replica_manager = replica_manager
        self._call_if_made = call_if_made
        self._tasks: list[PeriodicTask] = []

    def start(self) -> None:
        """Start the periodic tasks and the log cleaner."""
        config, process, call_if_made = self._broker.config, self._broker.process, self._call_if_made
        periodic_work = (
            (config.replica_lag_time_max_ms // 2, self._replica_manager.maybe_shrink_isr),
            (config.replica_high_watermark_checkpoint_interval_ms, self._logs.checkpoint_high_watermarks),
            (config.producer_id_expiration_check_interval_ms, self._logs.remove_expired_producers),
            (
                config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
                partial(call_if_made, "transactions", methodcaller("abort_timed_out_transactions")),
            ),
            (
                config.transaction_remove_expired_transaction_cleanup_interval_ms,
                partial(call_if_made, "transactions", lambda each: each.states.remove_expired_ids()),
            ),
            (
                config.share_coordinator_state_topic_prune_interval_ms,
                partial(call_if_made, "share_coordinator", methodcaller("prune_records")),
            ),
            (
                config.share_coordinator_cold_partition_snapshot_interval_ms,
                partial(call_if_made, "share_coordinator", methodcaller("snapshot_cold_partitions")),
            ),
        )
        # These begin after `log.initial.task.delay.ms`, the others after one period.
        log_work = (
            (config.log_retention_check_interval_ms, self._logs.delete_old_segments),
            (config.log_flush_start_offset_checkpoint_interval_ms, self._logs.checkpoint_log_start_offsets),
            (config.log_flush_offset_checkpoint_interval_ms, self._logs.checkpoint_recovery_points),
            (config.log_flush_scheduler_interval_ms, self._logs.flush_dirty_logs),
        )
        self._tasks = [PeriodicTask(process, period_ms, work) for period_ms, work in periodic_work]
        self._tasks += [
            PeriodicTask(process, period_ms, work, config.log_initial_task_delay_ms)
            for period_ms, work in log_work
            if period_ms <= LONGEST_PERIOD_MS
        ]
        self._logs.startup(process.call_later, config)
        self.log_cleaner.startup()

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply a changed dynamic configuration to the logs and the cleaner."""
        self._logs.reconfigure(config)
        self.log_cleaner.reconfigure(config)

    def stop(self) -> None:
        """Stop the tasks and the cleaner; a cleaning in progress is aborted."""
        for task in self._tasks:
            task.cancel()
        self.log_cleaner.shutdown()
