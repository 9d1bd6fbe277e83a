"""kafka-python's consumer in a group, that tells its partitions."""

from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from telling import tell

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        tell(event="revoked", partitions=sorted(one.partition for one in revoked))

    def on_partitions_assigned(self, assigned):
        tell(event="assigned", partitions=sorted(one.partition for one in assigned))


def subscribed(servers, group, topic, session_ms, heartbeat_ms, strategy, **more):
    """Return a consumer that has subscribed."""
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=int(session_ms),
        heartbeat_interval_ms=int(heartbeat_ms),
        partition_assignment_strategy=[ASSIGNORS[strategy]],
        **more,
    )
    # With 3.0.12, a leader that learns of the topic while it is joining neither joins nor heartbeats again.
    consumer.partitions_for_topic(topic)
    consumer.subscribe([topic], listener=Listener())
    return consumer
