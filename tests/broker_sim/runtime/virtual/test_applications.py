"""HTTP clients and servers of applications run in virtual time, unmodified."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool

ADDRESS = ("127.0.0.1", 8080)
URL = "http://127.0.0.1:8080/"


def aiohttp_application():
    async def answer(request):
        await asyncio.sleep(2)
        return web.json_response({"now": time.monotonic()})

    application = web.Application()
    application.router.add_get("/", answer)
    return application


def fastapi_application():
    application = FastAPI()

    @application.get("/async")
    async def answer():
        await asyncio.sleep(3)
        return await run_in_threadpool(time.monotonic)

    @application.get("/in-a-thread")
    def answer_in_a_thread():
        time.sleep(5)
        return time.monotonic()

    return application


async def served_by_aiohttp(ask):
    runner = web.AppRunner(aiohttp_application())
    await runner.setup()
    await web.TCPSite(runner, *ADDRESS).start()
    answer = await ask()
    await runner.cleanup()
    return answer


async def ask_with_aiohttp():
    async with aiohttp.ClientSession() as session, session.get(URL) as response:
        return await response.json()


async def ask_with_httpx():
    async with httpx.AsyncClient() as client:
        return (await client.get(URL)).json()


async def ask_a_test_server():
    async with TestServer(aiohttp_application()) as server, TestClient(server) as client:
        return await (await client.get("/")).json(), server.port


async def ask_fastapi():
    transport = httpx.ASGITransport(fastapi_application())
    async with httpx.AsyncClient(transport=transport, base_url="http://application") as client:
        requests = [client.get(path) for path in ("/async", "/in-a-thread", "/in-a-thread")]
        return [response.json() for response in await asyncio.gather(*requests)]


PROGRAMS = {
    lambda: served_by_aiohttp(ask_with_aiohttp): {"now": 2},
    lambda: served_by_aiohttp(ask_with_httpx): {"now": 2},
    ask_a_test_server: ({"now": 2}, 49_152),
    ask_fastapi: [3, 5, 5],
}


@pytest.mark.parametrize("program", PROGRAMS, ids=["aiohttp", "httpx", "test-server", "fastapi"])
@pytest.mark.parametrize("order", ["fifo", "seeded"])
def test_program_takes_virtual_time_and_its_runs_are_the_same(run, program, order):
    digests = set()
    for _ in range(2):
        assert run(program, order=order, trace_steps=True, limit_s=60) == PROGRAMS[program]
        digests.add(run.loop.trace.digest())
    assert len(digests) == 1
