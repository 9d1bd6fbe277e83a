"""Events that a broker logs about one of its partitions: roles and changes of the ISR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.runtime.event_log import get_logger

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from broker_sim_purgatory import Clock

    from broker_sim.log import PartitionLog
    from broker_sim.metadata import PartitionState
    from broker_sim.metadata.topic_partition import TopicPartition
    from broker_sim.runtime.event_log import EventLogger

log = get_logger(__name__)


class PartitionEvents:
    """Logs the events of one replica."""

    __slots__ = ("_broker_id", "_clock", "_topic_partition")

    def __init__(self, topic_partition: TopicPartition, broker_id: int, clock: Clock) -> None:
        self._topic_partition = topic_partition
        self._broker_id = broker_id
        self._clock = clock

    def leader_started(self, state: PartitionState, partition_log: PartitionLog) -> None:
        """Log that the broker leads the partition in a new epoch."""
        self._info(
            "leader_started",
            leader_epoch=state.leader_epoch,
            start_offset=partition_log.log_end_offset,
            high_watermark=partition_log.high_watermark,
            isr=list(state.isr),
        )

    def follower_started(self, state: PartitionState, partition_log: PartitionLog) -> None:
        """Log that the broker follows the leader of a new epoch."""
        self._info(
            "follower_started",
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            log_end_offset=partition_log.log_end_offset,
        )

    def isr_proposed(self, before: AbstractSet[int], after: AbstractSet[int]) -> None:
        """Log that the leader proposes a new ISR to the controller."""
        self._log().debug("isr_proposed", isr=sorted(before), proposed=sorted(after))

    def isr_changed(self, before: AbstractSet[int], after: AbstractSet[int], partition_log: PartitionLog) -> None:
        """Log that the ISR has shrunk or expanded; log nothing if it is unchanged."""
        if before == after:
            return
        self._info(
            "isr_shrunk" if before - after else "isr_expanded",
            isr=sorted(after),
            previous_isr=sorted(before),
            high_watermark=partition_log.high_watermark,
            log_end_offset=partition_log.log_end_offset,
        )

    def _info(self, event: str, **values: object) -> None:
        if log.is_enabled_for_info:
            self._log().info(event, **values)

    def _log(self) -> EventLogger:
        node, partition = f"broker-{self._broker_id}", str(self._topic_partition)
        return log.bind(self._clock, node=node, partition=partition)
