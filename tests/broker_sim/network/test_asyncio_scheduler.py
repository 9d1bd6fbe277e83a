"""Real time on an asyncio loop: what the loop does not do by itself."""

import asyncio

from broker_sim.network import AsyncioScheduler
from broker_sim.process import Process


def test_an_unexpected_error_goes_to_the_loops_exception_handler_with_its_traceback():
    async def main():
        contexts = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: contexts.append(context))
        process = Process("broker-1", AsyncioScheduler(loop))
        process.pause()
        process.deliver(lambda: 1 / 0)
        process.resume()
        return contexts

    (context,) = asyncio.run(main())
    assert context["message"] == "a callback of broker-1 failed"
    assert isinstance(context["exception"], ZeroDivisionError)
    assert context["exception"].__traceback__ is not None
