"""Thirteen tests of `faststream_kitchen`, in real time."""

import asyncio
import json

import pytest
from faststream_kitchen import Order, open_kitchen
from pydantic import ValidationError

from broker_sim import Fault

pytestmark = [pytest.mark.anyio, pytest.mark.kafka(topics=["orders:2:3", "meals:1:3", "refused:1:3"])]


@pytest.fixture
async def kitchen(kafka):
    async with open_kitchen(kafka.bootstrap_servers) as opened:
        yield opened


def values(kafka, topic):
    return [json.loads(record.value) for record in kafka.records(topic)]


@pytest.mark.parametrize("order", [{}, {"dish": "soup", "count": 0}, {"dish": 5}])
def test_what_is_no_order_is_refused_by_its_type(order):
    with pytest.raises(ValidationError):
        Order.model_validate(order)


async def test_order_becomes_a_meal(kafka, kitchen):
    await kitchen.order("soup")
    await kitchen.after(1)
    assert values(kafka, "meals") == [{"dish": "soup", "number": 0}]


async def test_each_of_several_is_a_meal(kafka, kitchen):
    await kitchen.order("soup", 3)
    await kitchen.after(1)
    assert [meal["number"] for meal in values(kafka, "meals")] == [0, 1, 2]


async def test_what_is_not_on_the_menu_is_put_aside(kafka, kitchen):
    await kitchen.order("cake")
    await kitchen.after(1)
    assert values(kafka, "refused") == [{"dish": "cake", "count": 1}]
    assert values(kafka, "meals") == []


async def test_orders_of_a_table_are_cooked_in_order(kitchen):
    for dish in ("soup", "bread", "soup"):
        await kitchen.order(dish, key=b"table 4")
    await kitchen.after(3)
    assert kitchen.cooked == ["soup", "bread", "soup"]


async def test_order_that_came_before_the_kitchen_opened_is_cooked(kafka):
    kafka.produce("orders", json.dumps({"dish": "soup"}))
    async with open_kitchen(kafka.bootstrap_servers) as kitchen:
        await kitchen.after(1)
        assert kitchen.cooked == ["soup"]


async def test_kitchen_that_opens_again_does_not_cook_again(kafka):
    for dish in ("soup", "bread"):
        async with open_kitchen(kafka.bootstrap_servers) as kitchen:
            await kitchen.order(dish)
            await kitchen.after(1)
            assert kitchen.cooked == [dish]
            await asyncio.to_thread(kafka.wait_for_group, "kitchen", lag=0)


async def test_another_group_gets_every_order(kafka, kitchen):
    async with open_kitchen(kafka.bootstrap_servers, group="statistics") as other:
        await kitchen.order("soup")
        await kitchen.after(1)
        await other.after(1)
        assert kitchen.cooked == other.cooked == ["soup"]


async def test_order_outlives_an_error_that_passes(kafka, kitchen):
    fault = kafka.inject(Fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER", count=1))
    await kitchen.order("soup")
    await kitchen.after(1)
    assert fault.hits == 1


async def test_slow_fetch_is_waited_for(kafka, kitchen):
    kafka.inject(Fault(api="Fetch", delay_ms=200, count=1))
    await kitchen.order("soup")
    await kitchen.after(1)
    assert kitchen.cooked == ["soup"]


async def test_order_waits_for_a_paused_replica(kafka, kitchen):
    partition = 1
    with kafka.paused(kafka.followers("orders", partition)[0]):
        ordering = asyncio.create_task(kitchen.order("soup", partition=partition))
        await asyncio.sleep(0.3)
        assert not ordering.done()
    await ordering
