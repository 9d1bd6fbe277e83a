"""Real time on an asyncio loop: what the loop does not do by itself."""

import asyncio
import time

import pytest
import uvloop

from broker_sim.runtime.process import Process
from broker_sim.runtime.scheduler import Scheduler


def test_unexpected_error_goes_to_the_exception_handler_of_the_loop():
    async def main():
        contexts = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: contexts.append(context))
        process = Process("broker-1", Scheduler(loop))
        process.pause()
        process.deliver(lambda: 1 / 0)
        process.resume()
        return contexts

    (context,) = asyncio.run(main())
    assert context["message"] == "a callback of broker-1 failed"
    assert isinstance(context["exception"], ZeroDivisionError)
    assert context["exception"].__traceback__ is not None


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_no_delay_ends_before_its_full_length_has_passed(new_loop):
    async def main():
        loop = asyncio.get_running_loop()
        scheduler = Scheduler(loop)
        lateness = []
        for _ in range(100):
            over = loop.create_future()
            started = time.monotonic()
            scheduler.call_later(2, over.set_result, None)
            await over
            lateness.append(time.monotonic() - started - 0.002)
        return lateness

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert min(runner.run(main())) >= 0
