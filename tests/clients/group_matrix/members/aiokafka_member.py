"""A member of a group by aiokafka; see ../conftest.py for what it is told and what it tells."""

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
servers, group, topic, session_ms, heartbeat_ms, strategy = sys.argv[1:]


def tell(**event):
    print(json.dumps(event), flush=True)


class Listener(ConsumerRebalanceListener):
    async def on_partitions_revoked(self, revoked):
        tell(event="revoked", partitions=sorted(one.partition for one in revoked))

    async def on_partitions_assigned(self, assigned):
        tell(event="assigned", partitions=sorted(one.partition for one in assigned))


async def main():
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=int(session_ms),
        heartbeat_interval_ms=int(heartbeat_ms),
        rebalance_timeout_ms=60_000,
        partition_assignment_strategy=[ASSIGNORS[strategy]],
    )
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    left = asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    while not left.done():
        for partition, records in (await consumer.getmany(timeout_ms=100)).items():
            for record in records:
                tell(event="record", partition=partition.partition, offset=record.offset)
                await consumer.commit({partition: record.offset + 1})
                tell(event="committed", partition=partition.partition, offset=record.offset + 1)
    await consumer.stop()
    tell(event="left")


asyncio.run(main())
