"""Servers and brokers run in their own context when a process calls them, and outlive it."""

import asyncio

from broker_sim_purgatory import TimerTask

from broker_sim.runtime.process import Process
from broker_sim.runtime.purgatories import PurgatoryFactory
from broker_sim.runtime.scheduler import Scheduler
from broker_sim.runtime.virtual import run


def test_data_sent_before_the_server_accepts_is_handled_by_the_server():
    heard = []

    class Server(asyncio.Protocol):
        def data_received(self, data):
            # Later than the other process lives.
            asyncio.get_running_loop().call_later(5, heard.append, data)

    async def main(loop):
        loop.network.latency_ms = 100
        await loop.create_server(Server, "shop", 80)

        async def call():
            _, writer = await asyncio.open_connection("shop", 80)
            await asyncio.sleep(0.05)  # the last packet of the handshake is on its way
            writer.write(b"hello")
            await asyncio.sleep(60)

        process = loop.process("worker")
        process.start(call())
        await asyncio.sleep(1)
        process.kill()
        await asyncio.sleep(10)
        assert heard == [b"hello"]

    run(main)


def test_timer_of_a_broker_outlives_the_process_that_added_to_it():
    ran = []

    class Note(TimerTask):
        def run(self):
            ran.append(asyncio.get_running_loop().time())

    async def main(loop):
        scheduler = Scheduler(loop)
        broker = Process("broker", scheduler)
        timer = PurgatoryFactory(scheduler).make_timer("timer", broker)

        async def add():
            timer.add(Note(2_000))
            timer.add(Note(0))
            await asyncio.sleep(60)

        process = loop.process("worker")
        process.start(add())
        await asyncio.sleep(1)
        process.kill()
        await asyncio.sleep(2)
        assert ran == [0, 2]

    run(main)
