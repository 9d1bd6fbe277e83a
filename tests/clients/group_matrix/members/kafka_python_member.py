"""A member of a group by kafka-python; see ../conftest.py for what it is told and what it tells."""

import json
import sys
import threading

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.structs import OffsetAndMetadata

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
servers, group, topic, session_ms, heartbeat_ms, strategy = sys.argv[1:]
left = threading.Event()


def tell(**event):
    print(json.dumps(event), flush=True)


def listen():
    sys.stdin.readline()
    left.set()


class Listener(ConsumerRebalanceListener):
    def on_partitions_revoked(self, revoked):
        tell(event="revoked", partitions=sorted(one.partition for one in revoked))

    def on_partitions_assigned(self, assigned):
        tell(event="assigned", partitions=sorted(one.partition for one in assigned))


threading.Thread(target=listen, daemon=True).start()
consumer = KafkaConsumer(
    bootstrap_servers=servers,
    group_id=group,
    auto_offset_reset="earliest",
    enable_auto_commit=False,
    session_timeout_ms=int(session_ms),
    heartbeat_interval_ms=int(heartbeat_ms),
    partition_assignment_strategy=[ASSIGNORS[strategy]],
)
# With 3.0.12, a leader that learns of the topic while it is joining neither joins nor heartbeats again.
consumer.partitions_for_topic(topic)
consumer.subscribe([topic], listener=Listener())
while not left.is_set():
    for partition, records in consumer.poll(timeout_ms=100).items():
        for record in records:
            tell(event="record", partition=partition.partition, offset=record.offset)
            end = OffsetAndMetadata(record.offset + 1, "", -1)
            consumer.commit({TopicPartition(topic, partition.partition): end})
            tell(event="committed", partition=partition.partition, offset=record.offset + 1)
consumer.close()
tell(event="left")
