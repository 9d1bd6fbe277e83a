"""Thirteen tests of `fastapi_shop`, in real and in virtual time."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from fastapi_shop import make_shop
from httpx import ASGITransport, AsyncClient

from broker_sim import Fault

TOPICS = ["orders:2:3:min.insync.replicas=2"]
in_real_time = [pytest.mark.anyio, pytest.mark.kafka(topics=TOPICS)]
in_virtual_time = pytest.mark.virtual_time(topics=TOPICS, seeds=3, order="seeded")


@asynccontextmanager
async def browser_of(kafka, **options):
    app = make_shop(kafka.bootstrap_servers, **options)
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://shop") as client,
    ):
        yield client


class TestInRealTime:
    pytestmark = in_real_time

    async def test_order_is_confirmed(self, kafka):
        async with browser_of(kafka) as browser:
            answer = await browser.post("/orders", json={"goods": "apples", "count": 3})
        assert answer.status_code == 201
        assert answer.json()["number"] == 1

    async def test_order_is_in_kafka(self, kafka):
        async with browser_of(kafka) as browser:
            await browser.post("/orders", json={"goods": "apples", "count": 3})
        (record,) = kafka.records("orders")
        assert record.key == b"apples"
        assert json.loads(record.value) == {"number": 1, "goods": "apples", "count": 3}

    @pytest.mark.parametrize("order", [{}, {"goods": ""}, {"goods": "apples", "count": 0}])
    async def test_what_is_no_order_does_not_reach_kafka(self, kafka, order):
        async with browser_of(kafka) as browser:
            answer = await browser.post("/orders", json=order)
        assert answer.status_code == 422
        assert not kafka.records("orders")

    async def test_orders_of_the_same_goods_are_in_order(self, kafka):
        async with browser_of(kafka) as browser:
            answers = [await browser.post("/orders", json={"goods": "pears"}) for _ in range(3)]
        assert [answer.json()["offset"] for answer in answers] == [0, 1, 2]

    async def test_order_can_be_read(self, kafka):
        async with browser_of(kafka) as browser:
            for goods in ("apples", "pears"):
                await browser.post("/orders", json={"goods": goods})
            assert (await browser.get("/orders/2")).json()["goods"] == "pears"

    async def test_order_that_is_not_there_is_not_found(self, kafka):
        async with browser_of(kafka) as browser:
            assert (await browser.get("/orders/1")).status_code == 404

    async def test_error_that_passes_is_not_seen(self, kafka):
        fault = kafka.inject(Fault(api="Produce", error="NOT_LEADER_OR_FOLLOWER", count=1))
        async with browser_of(kafka) as browser:
            assert (await browser.post("/orders", json={"goods": "apples"})).status_code == 201
        assert fault.hits == 1


class TestInVirtualTime:
    pytestmark = in_virtual_time

    async def test_order_waits_until_a_paused_replica_leaves_the_isr(self, kafka):
        loop = asyncio.get_running_loop()
        async with browser_of(kafka, timeout_ms=60_000) as browser:
            answer = await browser.post("/orders", json={"goods": "apples"})
            kafka.pause(kafka.followers("orders", answer.json()["partition"])[0])
            began = loop.time()
            answer = await browser.post("/orders", json={"goods": "apples"})
        assert answer.status_code == 201
        assert 5 < loop.time() - began < 60

    async def test_shop_is_closed_while_no_replica_follows(self, kafka):
        async with browser_of(kafka, timeout_ms=5_000) as browser:
            answer = await browser.post("/orders", json={"goods": "apples"})
            for follower in kafka.followers("orders", answer.json()["partition"]):
                kafka.pause(follower)
            answer = await browser.post("/orders", json={"goods": "apples"})
        assert answer.status_code == 503

    async def test_shop_goes_on_when_a_leader_dies(self, kafka):
        async with browser_of(kafka, timeout_ms=60_000) as browser:
            answer = await browser.post("/orders", json={"goods": "apples"})
            kafka.kill(kafka.leader("orders", answer.json()["partition"]))
            answer = await browser.post("/orders", json={"goods": "apples"})
        assert (answer.status_code, answer.json()["offset"]) == (201, 1)

    async def test_forty_customers_at_once_are_all_served(self, kafka):
        async with browser_of(kafka) as browser:
            orders = [browser.post("/orders", json={"goods": f"box {n}"}) for n in range(40)]
            answers = await asyncio.gather(*orders)
        assert {answer.json()["number"] for answer in answers} == set(range(1, 41))
