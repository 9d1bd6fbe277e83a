"""What the clients of a random run share, and what it knows of the brokers that they ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.cluster.random_run.schedule import ACKS_ALL, TOPIC
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import iter_records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker_sim.broker.broker import Broker
    from broker_sim.cluster.random_run.checks.high_watermarks import HighWatermarks
    from broker_sim.cluster.random_run.checks.history import Acknowledged, History
    from broker_sim.cluster.random_run.schedule import Schedule
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster

__all__ = ["Surroundings"]


class Surroundings:
    """What the clients of one run share."""

    def __init__(
        self,
        cluster: VirtualCluster,
        schedule: Schedule,
        history: History,
        high_watermarks: HighWatermarks,
        quiet_since_ms: Callable[[], int | None],
    ) -> None:
        self.cluster = cluster
        self.schedule = schedule
        self.history = history
        self.high_watermarks = high_watermarks
        self.quiet_since_ms = quiet_since_ms
        """Since when nothing has been wrong with any broker or link; None if something is."""
        self.running = True
        """Whether clients send new requests."""
        self.waiting = 0
        """How many requests have no answer yet."""

    def newest_leader(self, partition: int) -> tuple[int, int]:
        """Return the leader, -1 without one, and its epoch."""
        state = self.cluster.nodes.controller.image.topics[TOPIC].partitions[partition]
        return state.leader, state.leader_epoch

    def add_acknowledged(
        self, first: Acknowledged, values: Sequence[bytes], leader: int, asked: Broker | None
    ) -> None:
        """Add a batch to the history: its first record, in the epoch that its producer knew, and all values.

        `asked` is the process of the leader that it was sent to.
        """
        # Where the leader does not have it any more, the epoch that the client sent it in counts.
        written_in = self._epoch_of(leader, first)
        if first.acks == ACKS_ALL:
            self._check_replicated(asked, first.partition, first.offset + len(values), written_in)
        epoch = max(first.leader_epoch, written_in)
        self.history.count("acknowledged")
        self.history.acknowledged += [
            first._replace(offset=first.offset + index, value=value, leader_epoch=epoch)
            for index, value in enumerate(values)
        ]

    def _epoch_of(self, broker_id: int, one: Acknowledged) -> int:
        """Return the leader epoch of a record in that broker's log; -1 if it is not there any more."""
        topic_id = self.cluster.nodes.controller.image.topics[TOPIC].topic_id
        log = self.cluster.nodes.nodes[broker_id].logs.get(
            TopicPartition(TOPIC, one.partition), topic_id
        )
        if log is None or log.log_end_offset <= one.offset:
            return -1
        segment = next(each for each in reversed(log.segments) if each.base_offset <= one.offset)
        data = segment.read(one.offset, 1, log.log_end_offset, min_one_message=True)
        assert data is not None
        batch = data.records[0]
        found = {record.offset: record.value for record in iter_records(batch)}
        return (
            parse_header(batch).partition_leader_epoch if found.get(one.offset) == one.value else -1
        )

    def broker(self, broker_id: int) -> Broker | None:
        """Return the process of a broker; None if it is dead."""
        return self.cluster.nodes.brokers.get(broker_id)

    def _check_replicated(
        self, asked: Broker | None, partition: int, end_offset: int, epoch: int
    ) -> None:
        """Check that what acks=all has acknowledged is below the high watermark of its leader.

        `asked` is the process that was asked, `epoch` that of the batch: who is killed and started in
        the same epoch goes on from an older checkpoint.
        """
        if asked is None or asked is not self.broker(asked.broker_id):
            return
        key = TopicPartition(TOPIC, partition)
        hosted = asked.replica_manager.partitions.get(key)
        if hosted is None or not hosted.is_leader or hosted.leader_epoch != epoch:
            return
        high_watermark = hosted.log.high_watermark
        if high_watermark < end_offset:
            violated(
                "acknowledged-records-are-replicated",
                f"acks=all was answered for a batch up to offset {end_offset} of {key}, whose high "
                f"watermark on its leader {asked.broker_id} is {high_watermark}",
            )
