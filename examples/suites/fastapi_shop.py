"""A web application with FastAPI and aiokafka: orders are posted, and confirmed once Kafka has them."""

import json
from contextlib import asynccontextmanager
from itertools import count

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field


class Order(BaseModel):
    """A customer's order."""

    goods: str = Field(min_length=1)
    count: int = Field(1, ge=1)


def make_shop(servers, timeout_ms=10_000):
    """Return the application; it connects to Kafka when it starts."""
    numbers = count(1)

    @asynccontextmanager
    async def connected(app):
        options = {"bootstrap_servers": servers, "request_timeout_ms": timeout_ms}
        async with AIOKafkaProducer(acks="all", **options) as app.state.producer:
            yield

    app = FastAPI(lifespan=connected)

    @app.post("/orders", status_code=201)
    async def post_order(order: Order):
        number = next(numbers)
        value = json.dumps({"number": number, **order.model_dump()}).encode()
        try:
            sent = await app.state.producer.send_and_wait("orders", value, order.goods.encode())
        except KafkaError as error:
            raise HTTPException(503, type(error).__name__) from error
        return {"number": number, "partition": sent.partition, "offset": sent.offset}

    @app.get("/orders/{number}")
    async def get_order(number: int):
        async with AIOKafkaConsumer(bootstrap_servers=servers) as consumer:
            numbers_of_partitions = await app.state.producer.partitions_for("orders")
            partitions = [TopicPartition("orders", each) for each in numbers_of_partitions]
            consumer.assign(partitions)
            await consumer.seek_to_beginning()
            left = sum((await consumer.end_offsets(partitions)).values())
            while left:
                order = json.loads((await consumer.getone()).value)
                if order["number"] == number:
                    return order
                left -= 1
        raise HTTPException(404, f"there is no order {number}")

    return app
