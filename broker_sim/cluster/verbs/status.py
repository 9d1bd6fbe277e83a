"""Verbs that describe the cluster or wait for a state of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim.cluster.verbs.base import WAIT_LIMIT_S, BaseVerbs
from broker_sim.control.verb import verb, waiting_verb

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker_sim.cluster.status.cluster_status import BrokerStatus, ClusterStatus, PartitionStatus, PurgatoriesStatus
    from broker_sim.cluster.status.coordinator_status import GroupsStatus, GroupStatus
    from broker_sim.cluster.status.picture import Picture
    from broker_sim.cluster.status.transaction_status import ProducersStatus, TransactionsStatus


class StatusVerbs(BaseVerbs):
    """The verbs that describe the cluster."""

    @verb("GET", "/status")
    def status(self) -> ClusterStatus:
        """Return brokers, partitions with leader, ISR, LEO, HW, groups, transactions, producers, clients' metrics."""
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
        """Return all groups of consumers: state, members with assignments, offsets and lag."""
        from broker_sim.cluster.status.coordinator_status import groups_status  # noqa: PLC0415 - see `Verbs`

        return groups_status(self.nodes)

    @verb("GET", "/groups/{group_id}")
    def group(self, group_id: str) -> GroupStatus:
        """Return one group of consumers. Raises LookupError for an unknown group."""
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
        """Return the parked operations of each purgatory: keys, age, time left, wheel level and bucket."""
        from broker_sim.cluster.status.cluster_status import purgatories_status  # noqa: PLC0415 - see `Verbs`

        return purgatories_status(self.nodes)

    @verb("GET", "/picture/{search}")
    def picture(self, search: str = "", level: int = 0, bucket: int = 0) -> Picture:
        """Return the named parts that the page shows now, with the partitions whose names contain `search`.

        Of many parked operations those with the nearest deadlines are shown, and those in the `bucket` (from 0) of the
        wheels' `level` (from 1) [default level: none]. Requests are counted from the first call until no call has come
        for a minute.
        """
        from broker_sim.cluster.status.picture import WheelBucket, picture  # noqa: PLC0415 - see `Verbs`

        return picture(self.nodes, search, WheelBucket(level, bucket) if level else None)

    @verb("GET", "/describe")
    def describe(self) -> str:
        """Return a text on unusual brokers, partitions, groups, parked operations and the last requests."""
        from broker_sim.cluster.status.cluster_text import cluster_text  # noqa: PLC0415 - see `Verbs`

        return cluster_text(self.nodes)

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
        """Return the brokers with a replica other than the leader, including dead brokers."""
        return self.partition(topic, partition).followers

    def isr(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the ids of the in-sync replicas."""
        return self.partition(topic, partition).isr

    def high_watermark(self, topic: str, partition: int = 0) -> int:
        """Return the leader's high watermark. Raises WrongStateError without a live leader."""
        return self.partition(topic, partition).require_high_watermark()


class WaitVerbs(BaseVerbs):
    """The verbs that wait for a state; they wake when something changes."""

    @waiting_verb()
    async def wait_until_in_sync(self, timeout_s: float = WAIT_LIMIT_S) -> None:
        """Wait until every partition has a leader and all of its replicas in the ISR.

        Raises ClusterTimeoutError after `timeout_s` seconds.
        """
        await self._until(lambda: self.nodes.is_in_sync, "all replicas to be in sync", timeout_s)

    @waiting_verb(path="/topics/{topic}/partitions/{partition}/wait-for-isr")
    async def wait_for_isr(
        self,
        topic: str,
        partition: int = 0,
        size: int | None = None,
        *,
        has: int | None = None,
        lacks: int | None = None,
        timeout_s: float = WAIT_LIMIT_S,
    ) -> PartitionStatus:
        """Wait until a partition's ISR has a size or certain members; return the partition.

        `size` is the number of in-sync replicas (default without any option: all). `has` and `lacks`
        are brokers that must be and must not be in it. Raises ClusterTimeoutError after `timeout_s` seconds.
        """
        from broker_sim.cluster.status.cluster_status import partition_status  # noqa: PLC0415 - see `Verbs`

        status = partition_status(self.nodes, topic, partition)
        expected = size
        if (size, has, lacks) == (None, None, None):
            expected = len(status.assignment)

        def is_reached() -> bool:
            nonlocal status
            status = partition_status(self.nodes, topic, partition)
            isr = status.isr
            return expected in (None, len(isr)) and (has is None or has in isr) and (lacks is None or lacks not in isr)

        conditions = {"size": expected, "has": has, "lacks": lacks}
        what = f"the ISR of {topic}-{partition} ({_text(conditions)})"
        await self._until_changed(is_reached, lambda: f"{what}; it is {list(status.isr)}", timeout_s)
        return status

    @waiting_verb(path="/groups/{group_id}/wait-for-group")
    async def wait_for_group(
        self,
        group_id: str,
        state: str | None = None,
        *,
        members: int | None = None,
        lag: int | None = None,
        timeout_s: float = WAIT_LIMIT_S,
    ) -> GroupStatus:
        """Wait until a group has a state, a number of members, or a maximum lag; return the group.

        `state` is a name such as "Stable", the default without any option. `lag` does not count markers of transactions
        and aborted records, which no consumer commits. The group need not exist yet. Raises ClusterTimeoutError after
        `timeout_s` seconds, ValueError for a state that no group has.
        """
        from broker_sim.cluster.records import has_unread_records  # noqa: PLC0415 - see `Verbs`
        from broker_sim.cluster.status.coordinator_status import check_group_state, groups_status  # noqa: PLC0415
        from broker_sim.metadata.topic_partition import TopicPartition  # noqa: PLC0415 - see `Verbs`

        if (state, members, lag) == (None, None, None):
            state = "Stable"
        if state is not None:
            check_group_state(state)
        group: GroupStatus | None = None

        def has_come_to(group: GroupStatus, lag: int) -> bool:
            if group.lag <= lag or group.share_partitions:
                return group.lag <= lag
            offsets = ((TopicPartition(each.topic, each.partition), each.committed_offset) for each in group.offsets)
            return not has_unread_records(self.nodes, offsets, lag)

        def is_reached() -> bool:
            nonlocal group
            group = next(iter(groups_status(self.nodes, group_id)), None)
            return (
                group is not None
                and state in (None, group.state)
                and members in (None, len(group.members))
                and (lag is None or has_come_to(group, lag))
            )

        def describe() -> str:
            conditions = {"state": state, "members": members, "lag": lag}
            now = "it does not exist"
            if group is not None:
                now = f"it is {group.state} with {len(group.members)} members and a lag of {group.lag}"
            return f"group {group_id} ({_text(conditions)}); {now}"

        await self._until_changed(is_reached, describe, timeout_s)
        assert group is not None
        return group


def _text(conditions: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in conditions.items() if value is not None)
