"""`AIOKafkaConsumer.stop()` never ends if the group's coordinator is not known at that moment.

    python stop_without_coordinator.py 127.0.0.1:9092

Needs a Kafka, and Python with aiokafka. A consumer with auto-commit commits once more in `stop()`.
`GroupCoordinator.ensure_coordinator_known` no longer looks for a coordinator then, because the consumer is closing,
and `commit_offsets` retries for ever. The coordinator is unknown after a lost connection, and after a failed commit:
for example while a follower has stopped and the ISR has not shrunk yet.
"""

import asyncio
import sys
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

LIMIT_S = 15


async def main(servers):
    """Read a record, lose the coordinator, and stop."""
    topic = f"stop-{uuid4().hex[:8]}"
    async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
        await producer.send_and_wait(topic, b"a record")
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=servers, group_id=topic, auto_offset_reset="earliest")
    await consumer.start()
    await consumer.getone()
    # As after COORDINATOR_NOT_AVAILABLE, Kafka's response to a commit that is not replicated within 5 s.
    consumer._coordinator.coordinator_dead()
    try:
        async with asyncio.timeout(LIMIT_S):
            await consumer.stop()
    except TimeoutError:
        print(f"WRONG: stop() did not end in {LIMIT_S} s")
    else:
        print("it is right: stop() ended")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
