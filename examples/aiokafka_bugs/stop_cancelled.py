"""`AIOKafkaConsumer.stop()` may raise CancelledError, though nobody cancels it.

    python stop_cancelled.py 127.0.0.1:9092

Needs a Kafka, and Python with aiokafka. `GroupCoordinator._stop_heartbeat_task` cancels its task
and awaits it. The task handles CancelledError while it waits or sends a heartbeat, but not while it leaves the
group, which it does if the application has read nothing for `max_poll_interval_ms`.
"""

import asyncio
import sys
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

TRIES = 60
POLL_S = 1


async def stop_after(servers, topic, wait_s):
    """Return the error of `stop()` when it is called `wait_s` seconds after the last record was read."""
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=f"stop-{uuid4().hex[:8]}",
        auto_offset_reset="earliest",
        heartbeat_interval_ms=300,
        max_poll_interval_ms=POLL_S * 1_000,
    )
    await consumer.start()
    await consumer.getone()
    await asyncio.sleep(wait_s)
    try:
        await consumer.stop()
    except asyncio.CancelledError as error:
        return error
    return None


async def main(servers):
    """Stop consumers at moments when they might be leaving their group."""
    topic = f"stop-{uuid4().hex[:8]}"
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait(topic, b"a record")
    waits_s = [POLL_S + number / 5_000 for number in range(TRIES)]
    errors = await asyncio.gather(*[stop_after(servers, topic, wait_s) for wait_s in waits_s])
    cancelled = sum(error is not None for error in errors)
    print(f"stop() raised CancelledError in {cancelled} of {TRIES} tries")
    print("WRONG: nobody cancelled it" if cancelled else "it was right this time")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
