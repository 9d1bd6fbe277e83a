"""A request that times out raises KeyError if its connection was replaced at that moment.

    python timeout_on_a_closed_connection.py 127.0.0.1:9092

Needs a Kafka, and Python with aiokafka. `AIOKafkaClient.send` closes the connection of a request that timed out,
after looking it up by node. If a process is suspended for longer than `request_timeout_ms`, several requests time
out at once; the first one closes the connection, the next request removes it, and the lookup of the second one
fails.
"""

import asyncio
import sys
import time
from contextlib import suppress
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import RequestTimedOutError
from aiokafka.protocol.metadata import MetadataRequest

TIMEOUT_S = 2
HELD_S = 8
"""Time for which the broker holds a fetch; later requests on that connection wait too."""


async def main(servers):
    """Suspend the process while a fetch and another request wait for their responses."""
    topic = f"timeout-{uuid4().hex[:8]}"
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait(topic, b"a record", partition=0)
    place = TopicPartition(topic, 0)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=HELD_S * 1_000,
        request_timeout_ms=TIMEOUT_S * 1_000,
    )
    consumer.assign([place])
    await consumer.start()
    await consumer.getone()
    next_record = asyncio.create_task(consumer.getone())
    await asyncio.sleep(0.2)  # its fetch is in flight, and the broker holds it

    client = consumer._client
    leader = client.cluster.leader_for_partition(place)
    request = asyncio.create_task(client.send(leader, MetadataRequest([])))

    async def begin_another():
        await asyncio.sleep(TIMEOUT_S - 0.1)
        await client.ready(leader)  # as each request does first

    another = asyncio.create_task(begin_another())
    await asyncio.sleep(0.1)
    time.sleep(TIMEOUT_S + 1)  # noqa: ASYNC251, TID251 - as in a stopped process
    try:
        await request
    except KeyError as error:
        print(f"WRONG: a request that timed out raises {error!r}")
    except RequestTimedOutError as error:
        print(f"it is right: {error!r}")
    await another
    next_record.cancel()
    with suppress(asyncio.CancelledError):  # from a fetch that was to be retried
        await consumer.stop()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
