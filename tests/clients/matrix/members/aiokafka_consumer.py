"""aiokafka's consumer in a group, that tells its partitions."""

from aiokafka import AIOKafkaConsumer
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from telling import tell

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Listener(ConsumerRebalanceListener):
    async def on_partitions_revoked(self, revoked):
        tell(event="revoked", partitions=sorted(one.partition for one in revoked))

    async def on_partitions_assigned(self, assigned):
        tell(event="assigned", partitions=sorted(one.partition for one in assigned))


def consumer_of(servers, group, session_ms, heartbeat_ms, strategy, **more):
    """Return a consumer, to be subscribed and started."""
    return AIOKafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=int(session_ms),
        heartbeat_interval_ms=int(heartbeat_ms),
        rebalance_timeout_ms=60_000,
        partition_assignment_strategy=[ASSIGNORS[strategy]],
        **more,
    )
