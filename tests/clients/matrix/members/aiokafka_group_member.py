"""A member of a group by aiokafka; see ../groups/conftest.py for what it is told and what it tells."""

import asyncio
import sys

from aiokafka_consumer import Listener, consumer_of
from telling import tell, when_told_to_leave

servers, group, topic, *timing = sys.argv[1:]


async def main():
    left = when_told_to_leave()
    consumer = consumer_of(servers, group, *timing)
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    while not left.is_set():
        for partition, records in (await consumer.getmany(timeout_ms=100)).items():
            for record in records:
                tell(event="record", partition=partition.partition, offset=record.offset)
                await consumer.commit({partition: record.offset + 1})
                tell(event="committed", partition=partition.partition, offset=record.offset + 1)
    await consumer.stop()
    tell(event="left")


asyncio.run(main())
