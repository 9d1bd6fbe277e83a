"""Verbs that look at the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.cluster.verbs.base import BaseVerbs
from broker_sim.control.verb import verb

if TYPE_CHECKING:
    from broker_sim.cluster.status.cluster_status import BrokerStatus, ClusterStatus, PartitionStatus
    from broker_sim.cluster.status.coordinator_status import GroupsStatus, GroupStatus
    from broker_sim.cluster.status.purgatory_status import PurgatoriesStatus
    from broker_sim.cluster.status.transaction_status import ProducersStatus, TransactionsStatus


class StatusVerbs(BaseVerbs):
    """What can be seen of a cluster."""

    @verb("GET", "/status")
    def status(self) -> ClusterStatus:
        """Return brokers, partitions with leader, ISR, LEO and HW, groups, transactions and producers."""
        from broker_sim.cluster.status.cluster_status import cluster_status  # noqa: PLC0415 - see `Verbs`

        return cluster_status(self.nodes)

    @verb("GET", "/brokers/{broker_id}")
    def broker(self, broker_id: int) -> BrokerStatus:
        """Return one broker with its state."""
        from broker_sim.cluster.status.cluster_status import broker_status  # noqa: PLC0415 - see `Verbs`

        return broker_status(self.nodes, broker_id)

    @verb("GET", "/topics/{topic}/partitions/{partition}")
    def partition(self, topic: str, partition: int = 0) -> PartitionStatus:
        """Return one partition with leader, ISR, and LEO and HW of its replicas."""
        from broker_sim.cluster.status.cluster_status import partition_status  # noqa: PLC0415 - see `Verbs`

        return partition_status(self.nodes, topic, partition)

    @verb("GET", "/groups")
    def groups(self) -> GroupsStatus:
        """Return all groups of consumers: state, members with what they are assigned, offsets and lag."""
        from broker_sim.cluster.status.coordinator_status import groups_status  # noqa: PLC0415 - see `Verbs`

        return groups_status(self.nodes)

    @verb("GET", "/groups/{group_id}")
    def group(self, group_id: str) -> GroupStatus:
        """Return one group of consumers. LookupError if it is not there."""
        from broker_sim.cluster.status.coordinator_status import groups_status  # noqa: PLC0415 - see `Verbs`

        return groups_status(self.nodes).of(group_id)

    @verb("GET", "/transactions")
    def transactions(self) -> TransactionsStatus:
        """Return all transactional ids: state, age and partitions of the transaction, producer."""
        from broker_sim.cluster.status.transaction_status import transactions_status  # noqa: PLC0415 - see `Verbs`

        return transactions_status(self.nodes)

    @verb("GET", "/producers")
    def producers(self) -> ProducersStatus:
        """Return the idempotent producers of each partition: last sequence, and open transaction."""
        from broker_sim.cluster.status.transaction_status import producers_status  # noqa: PLC0415 - see `Verbs`

        return producers_status(self.nodes)

    @verb("GET", "/purgatory")
    def purgatory(self) -> PurgatoriesStatus:
        """Return what is parked in each purgatory: keys, age, time left, wheel level and bucket."""
        from broker_sim.cluster.status.purgatory_status import purgatories_status  # noqa: PLC0415 - see `Verbs`

        return purgatories_status(self.nodes)

    @verb("GET", "/metrics")
    def metrics(self) -> str:
        """Return Kafka's metrics in the text format of Prometheus; needs the extra `metrics`.

        Raises MissingExtraError without it.
        """
        from broker_sim.cluster.status.metrics import metrics_text  # noqa: PLC0415 - see `Verbs`

        return metrics_text(self.nodes)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the id of the partition's leader. Raises WrongStateError without one."""
        return self.partition(topic, partition).require_leader()

    def followers(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the ids of the replicas that do not lead, dead ones too."""
        return self.partition(topic, partition).followers

    def isr(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the ids of the in-sync replicas."""
        return self.partition(topic, partition).isr

    def high_watermark(self, topic: str, partition: int = 0) -> int:
        """Return the leader's high watermark. Raises WrongStateError without a live leader."""
        return self.partition(topic, partition).require_high_watermark()
