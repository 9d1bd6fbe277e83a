"""The state that clients of a random run share: the cluster, and the histories of what they have learned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.chaos.random_run.checks.group_history import ClassicHistory, ModernHistory
from broker_sim.chaos.random_run.checks.history import HighWatermarks, History
from broker_sim.chaos.random_run.checks.transaction_history import TransactionHistory
from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.invariants import violated
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import iter_records
from broker_sim.protocol.special_values import ACKS_ALL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker_sim.broker.broker import Broker
    from broker_sim.chaos.random_run.checks.history import Acknowledged
    from broker_sim.chaos.random_run.disturbances import Disturbances
    from broker_sim.chaos.random_run.schedule import Schedule
    from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster


class SharedState:
    """The cluster of a run, and the histories of its clients."""

    def __init__(self, cluster: VirtualCluster, schedule: Schedule, disturbances: Disturbances) -> None:
        self.cluster = cluster
        self.schedule = schedule
        self.disturbances = disturbances
        self.history = History(reads_are_final=not (schedule.unclean_elections or schedule.may_lose_records))
        self.high_watermarks = HighWatermarks()
        self.classic_history = ClassicHistory()
        self.consumer_history = ModernHistory(disturbances)
        self.streams_history = ModernHistory(disturbances)
        self.transactions = TransactionHistory()
        self.rejected: set[tuple[int, int]] = set()
        """Partition and offset of each record that a member of the share group has rejected, and was answered so."""
        self.running = True
        """Whether clients send new requests."""
        self.is_steady = False
        """Whether members of streams groups only send heartbeats, so that their group can become stable."""
        self.waiting = 0
        """Number of unanswered requests."""

    def broker(self, broker_id: int) -> Broker | None:
        """Return the process of a broker; None if it is dead."""
        return self.cluster.nodes.brokers.get(broker_id)

    def add_acknowledged(
        self, first: Acknowledged, values: Sequence[bytes], leader: int, broker: Broker | None
    ) -> None:
        """Add an acknowledged batch: its first record, with the epoch that its producer knew, and all values.

        `broker` is the process of the leader to which the batch was sent.
        """
        # If the leader does not have it any more, the epoch that the client knew counts.
        written_in = self._epoch_of(leader, first)
        if first.acks == ACKS_ALL:
            self._check_replicated(broker, first.partition, first.offset + len(values), written_in)
        epoch = max(first.leader_epoch, written_in)
        self.history.batches += 1
        self.history.acknowledged += [
            first._replace(offset=first.offset + index, value=value, leader_epoch=epoch)
            for index, value in enumerate(values)
        ]

    def _epoch_of(self, broker_id: int, one: Acknowledged) -> int:
        """Return the leader epoch of a record in that broker's log; -1 if the log does not have it any more."""
        nodes = self.cluster.nodes
        topic_id = nodes.controller.image.topics[TOPIC].topic_id
        log = nodes.nodes[broker_id].logs.get(TopicPartition(TOPIC, one.partition), topic_id)
        if log is None or log.log_end_offset <= one.offset:
            return -1
        batch = log.read(one.offset, 1, min_one_message=True).records[0]
        if all((each.offset, each.value) != (one.offset, one.value) for each in iter_records(batch)):
            return -1
        return parse_header(batch).partition_leader_epoch

    def _check_replicated(self, broker: Broker | None, partition: int, end_offset: int, epoch: int) -> None:
        """Check that a batch acknowledged with acks=all is below the high watermark of its leader.

        `broker` is the process that acknowledged it, `epoch` is the batch's: a broker that is killed and restarted in
        the same epoch continues from an older checkpoint.
        """
        if broker is None or broker is not self.broker(broker.broker_id):
            return
        key = TopicPartition(TOPIC, partition)
        hosted = broker.replica_manager.partitions.get(key)
        if hosted is None or not hosted.is_leader or hosted.leader_epoch != epoch:
            return
        high_watermark = hosted.log.high_watermark
        if high_watermark < end_offset:
            violated(
                "acknowledged-records-are-replicated",
                f"acks=all was answered for a batch up to offset {end_offset} of {key}, whose high "
                f"watermark on its leader {broker.broker_id} is {high_watermark}",
            )
