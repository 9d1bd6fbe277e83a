"""Sends orders without idempotence: an answer is lost, the client sends again, the order is there twice."""

import asyncio
from collections import Counter

import pytest
from shop import make_topic, producer

ORDERS = 12
FAULTS = {"lose", "kill"}  # what can take an answer away


async def orders_are_sent_once(chaos, **options):
    """One worker sends orders; none may be there twice that it has sent once."""

    async def shop(me):
        async with producer(chaos, request_timeout_ms=60_000, **options) as orders:
            for number in range(ORDERS):
                # What is sent after a crash is another order: only the client may repeat one.
                await orders.send_and_wait("orders", b"%d/%d" % (me.starts, number), partition=0)
                await asyncio.sleep(1)

    await make_topic(chaos, "orders")
    (me,) = chaos.start(shop)
    await chaos.faults_over()

    def sent():
        return Counter(record.value for record in chaos.kafka.records("orders"))

    await chaos.eventually(lambda: b"%d/%d" % (me.starts, ORDERS - 1) in sent(), "all are sent")
    twice = sorted(order.decode() for order, count in sent().items() if count > 1)
    assert not twice, f"sent twice: {twice}"


@pytest.mark.chaos(duration_s=12, workers=1, faults=FAULTS, repair_aiokafka=True)
async def test_wrong(chaos):
    """Fails."""
    await orders_are_sent_once(chaos, enable_idempotence=False)


@pytest.mark.chaos(duration_s=12, workers=1, faults=FAULTS, repair_aiokafka=True)
async def test_mended(chaos):
    """Passes: the broker knows the number of each batch, and takes none twice."""
    await orders_are_sent_once(chaos, enable_idempotence=True)
