"""An application with FastStream: orders become meals, those that cannot be cooked are put aside."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from faststream import AckPolicy
from faststream.kafka import KafkaBroker
from pydantic import BaseModel, Field


class Order(BaseModel):
    """A guest's order."""

    dish: str
    count: int = Field(1, ge=1)


class Meal(BaseModel):
    """The meal for an order."""

    dish: str
    number: int


@dataclass
class Kitchen:
    """The application, with its results so far."""

    broker: KafkaBroker
    cooked: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    _done: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def order(self, dish, count=1, **more):
        """Send an order, as a waiter does."""
        await self.broker.publish({"dish": dish, "count": count}, topic="orders", **more)

    async def after(self, count, timeout_s=30):
        """Wait until `count` orders are cooked or refused."""
        async with asyncio.timeout(timeout_s), self._done:
            await self._done.wait_for(lambda: len(self.cooked) + len(self.refused) >= count)

    async def note(self, orders, dish):
        """Record the result of an order."""
        async with self._done:
            orders.append(dish)
            self._done.notify_all()


@asynccontextmanager
async def open_kitchen(servers, menu=("soup", "bread"), group="kitchen"):
    """Yield a kitchen that works until the end of the block."""
    broker = KafkaBroker(servers.split(","), acks="all")
    kitchen = Kitchen(broker)
    meals = broker.publisher("meals")

    @broker.subscriber("orders", group_id=group, auto_offset_reset="earliest", ack_policy=AckPolicy.ACK)
    async def cook(order: Order) -> None:
        if order.dish not in menu:
            await broker.publish(order, topic="refused")
            await kitchen.note(kitchen.refused, order.dish)
            return
        for number in range(order.count):
            await meals.publish(Meal(dish=order.dish, number=number))
        await kitchen.note(kitchen.cooked, order.dish)

    async with broker:
        await broker.start()
        yield kitchen
