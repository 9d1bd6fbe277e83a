"""A cluster on an event loop: its arguments, open and close."""

import asyncio
import socket
import time

import pytest
import uvloop

from broker_sim.cluster.async_cluster import AsyncCluster
from broker_sim.errors import ConfigError, ErrorCode, WrongStateError
from broker_sim.protocol import messages
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        ({"brokers": 0}, ValueError, "a cluster needs at least one broker, not 0"),
        ({"brokers": 2, "ports": [9092]}, ValueError, "2 brokers need 2 ports, not 1"),
        ({"configs": {"nonsense": 1}}, ConfigError, "Unknown broker config name: nonsense"),
        ({"as_version": "1.9"}, ValueError, "1.9"),
    ],
)
def test_bad_argument_is_refused_when_the_cluster_is_made(arguments, error, reason):
    with pytest.raises(error, match=reason):
        AsyncCluster(**arguments)


def test_verb_is_refused_before_the_cluster_is_open():
    with pytest.raises(WrongStateError, match="is not running"):
        AsyncCluster(1).status()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_client_that_has_just_closed_its_connection_is_not_listed(new_loop):
    async def main():
        async with AsyncCluster(brokers=1) as cluster:
            with socket.create_connection(cluster.address(1)):
                while not await cluster.clients():  # noqa: ASYNC110 - each turn of the loop may accept it
                    await asyncio.sleep(0)
            return await cluster.clients()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(main()) == ()


@pytest.mark.threads
def test_it_serves_clients_on_the_loop_of_its_caller():
    async def main():
        async with AsyncCluster(brokers=1) as cluster:
            host, port = cluster.address(1)
            reader, writer = await asyncio.open_connection(host, port)
            header = RequestHeader(18, 0, 1, None)
            writer.writelines(encode_request(header, messages.ApiVersionsRequest()))
            size = int.from_bytes(await reader.readexactly(4), "big")
            answer = await reader.readexactly(size)
            writer.close()
            return answer

    _, response = decode_response(18, 0, asyncio.run(main()))
    assert response.error_code == ErrorCode.NONE


@pytest.mark.threads
def test_kill_ends_a_controlled_shutdown_that_cannot_finish():
    async def live():
        async with AsyncCluster(brokers=1) as cluster:
            cluster.disconnect(1)  # so the controller never hears that it wants to stop
            stopping = asyncio.ensure_future(cluster.stop(1))
            await asyncio.sleep(0)
            assert not stopping.done()
            with pytest.raises(WrongStateError, match="shutting down already"):
                await cluster.stop(1)
            cluster.kill(1)
            await stopping

    asyncio.run(live())


@pytest.mark.threads
def test_second_open_is_refused_and_the_cluster_still_serves():
    async def main():
        async with AsyncCluster(brokers=1) as cluster:
            with pytest.raises(RuntimeError, match="only once"):
                await cluster.open()
            _, writer = await asyncio.open_connection(*cluster.address(1))
            writer.close()

    asyncio.run(main())


@pytest.mark.threads
def test_program_that_holds_up_the_loop_for_longer_than_a_session_has_no_broker_fenced(caplog):
    caplog.set_level("INFO", "broker_sim.controller")
    sessions = {"broker.session.timeout.ms": 600, "broker.heartbeat.interval.ms": 200}

    async def main():
        async with AsyncCluster(3, topics=["orders:1:3"], configs=sessions) as cluster:
            await cluster.wait_until_in_sync()
            time.sleep(1)  # noqa: ASYNC251 - this is what the program does wrong
            await cluster.produce("orders", b"an order")

    asyncio.run(main())
    assert "broker_unfenced" in caplog.text
    assert "broker_fenced" not in caplog.text
