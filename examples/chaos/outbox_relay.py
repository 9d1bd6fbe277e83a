"""Publishes the rows of an outbox and marks them afterwards: a crash in between publishes a row twice."""

import asyncio

import pytest
from shop import CLIENT, consumer, make_topic, producer

ROWS = 10


class Outbox:
    """A database table: rows to publish, and the next unpublished one."""

    def __init__(self):
        self.next_row = 0

    async def mark(self, row):
        """Mark a row as published."""
        await asyncio.sleep(0.5)
        self.next_row = max(self.next_row, row + 1)


async def relay(chaos, outbox):
    """Publish each row with its number, then mark it: a row may be published twice."""
    async with producer(chaos, enable_idempotence=True) as events:
        while outbox.next_row < ROWS:
            row = outbox.next_row
            await events.send_and_wait("events", b"order %d" % row, b"%d" % row, partition=row % 2)
            await outbox.mark(row)


async def wrong(event, _, pay):
    """Trust in the relay."""
    pay(event)


async def mended(event, inbox, pay):
    """Keep the numbers that were paid, in the transaction of the database that pays."""
    if event.key not in inbox:
        inbox.add(event.key)
        pay(event)


async def each_is_paid_once(chaos, take):
    """One worker relays, the other one pays; in the end each row must be paid once."""
    outbox, inbox, history = Outbox(), set(), chaos.history

    async def pay():
        async with consumer(chaos, "events") as events:
            async for event in events:
                await take(event, inbox, history.handled)
                await events.commit()

    await make_topic(chaos, "events")
    chaos.start(lambda: relay(chaos, outbox))
    chaos.start(pay)
    await chaos.faults_over()
    await chaos.eventually(lambda: outbox.next_row == ROWS, "each row is published")
    await history.nothing_lost("events")
    await asyncio.sleep(CLIENT["request_timeout_ms"] / 1000)
    history.nothing_twice()


@pytest.mark.chaos(duration_s=12, repair_aiokafka=True)
async def test_wrong(chaos):
    """Fails."""
    await each_is_paid_once(chaos, wrong)


@pytest.mark.chaos(duration_s=12, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes."""
    await each_is_paid_once(chaos, mended)
