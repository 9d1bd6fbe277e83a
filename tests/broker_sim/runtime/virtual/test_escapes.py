from __future__ import annotations

import asyncio
import signal

import pytest

from broker_sim.runtime.virtual import EscapeError, VirtualEventLoop
from broker_sim.runtime.virtual.escapes import ADVICE


@pytest.mark.parametrize("name", sorted(ADVICE))
def test_what_leaves_virtual_time_is_refused_with_advice(name):
    loop = VirtualEventLoop()
    with pytest.raises(EscapeError, match=rf"loop\.{name}: .*; "):
        getattr(loop, name)(1, 2)
    assert ADVICE[name] in getattr(type(loop), name).__doc__


def test_asyncios_own_functions_get_the_same_refusal(run):
    async def main():
        loop = asyncio.get_running_loop()
        with pytest.raises(EscapeError, match="subprocess runs in real time"):
            await asyncio.create_subprocess_exec("true")
        with pytest.raises(EscapeError, match="carries TCP only"):
            await loop.create_datagram_endpoint(asyncio.DatagramProtocol)
        with pytest.raises(EscapeError, match="signal comes in real time"):
            loop.add_signal_handler(signal.SIGTERM, print)
        with pytest.raises(EscapeError, match="no Unix sockets"):
            await asyncio.open_unix_connection("/tmp/nowhere")

    run(main)
