"""A worker with aiokafka: it derives the stock of goods from a topic of movements."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer


@asynccontextmanager
async def sender(servers, **options):
    """Yield a function that sends a movement of goods and returns its offset."""
    async with AIOKafkaProducer(bootstrap_servers=servers, acks="all", **options) as producer:

        async def send(goods, count):
            sent = await producer.send_and_wait("movements", str(count).encode(), goods.encode())
            return sent.offset

        yield send


class Stock:
    """The number of each of the goods in stock; an asynchronous context manager."""

    def __init__(self, servers, group="stock", **options):
        self.counts = Counter()
        self.seen = 0
        self._changed = asyncio.Condition()
        self._consumer = AIOKafkaConsumer(
            "movements",
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **options,
        )

    async def __aenter__(self):
        await self._consumer.start()
        self._task = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *_):
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._consumer.stop()

    async def _follow(self):
        async for record in self._consumer:
            self.counts[record.key.decode()] += int(record.value)
            self.seen += 1
            await self._consumer.commit()
            async with self._changed:
                self._changed.notify_all()

    async def after(self, seen, timeout_s=40):
        """Wait until `seen` movements have been read; returns the counts."""
        async with asyncio.timeout(timeout_s), self._changed:
            await self._changed.wait_for(lambda: self.seen >= seen)
        return dict(self.counts)

    @property
    def partitions(self):
        """The partitions assigned to this worker."""
        return self._consumer.assignment()
