"""A producer that starts while all brokers are fenced fails with AssertionError, which is not retried.

    python metadata_without_brokers.py 127.0.0.1:9092

Needs a Kafka of one broker that is fenced now and then, and Python with aiokafka. For example with heartbeats
that come too late for the session:

    broker.heartbeat.interval.ms=20000
    broker.session.timeout.ms=9000

All brokers are also fenced after a failure of all of them, or of their network. Until its next heartbeat a fenced
broker answers Metadata without any broker. `AIOKafkaClient.bootstrap` accepts that response, and
`coordinator_lookup` asserts that a broker is known.
"""

import asyncio
import sys
from collections import Counter
from contextlib import suppress

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

DURATION_S = 40


async def start(servers):
    """Start a transactional producer, and return the result as a text."""
    producer = AIOKafkaProducer(bootstrap_servers=servers, transactional_id="shop", request_timeout_ms=1_000)
    try:
        async with asyncio.timeout(1):
            await producer.start()
    except (KafkaError, TimeoutError) as error:
        return f"an error that an application retries: {type(error).__name__}"
    except AssertionError as error:
        return f"WRONG: AssertionError: {error}"
    else:
        return "it started"
    finally:
        with suppress(KafkaError, TimeoutError):
            await asyncio.wait_for(producer.stop(), 1)


async def main(servers):
    """Start producers one after another, and count the results."""
    seen = Counter()
    end_s = asyncio.get_running_loop().time() + DURATION_S
    while asyncio.get_running_loop().time() < end_s:
        seen[await start(servers)] += 1
    for text, count in seen.most_common():
        print(f"{count:5} times {text}")
    if not any(text.startswith("WRONG") for text in seen):
        print("it is right, or no broker was fenced meanwhile")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
