"""Certificates of a cluster that are replaced while it runs, in virtual time."""

import asyncio
import ssl
from contextlib import asynccontextmanager

import pytest

from broker_sim import VirtualCluster
from broker_sim.cluster.virtual.simulated_cluster import SimulatedCluster
from broker_sim.errors import ConfigError, ErrorCode, WrongStateError
from broker_sim.protocol import messages
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from broker_sim.runtime.virtual import VirtualEventLoop
from broker_sim.security import Certificates


@pytest.fixture
def play():
    """Return a function that runs a coroutine function with an open cluster of one broker with TLS."""
    loop = VirtualEventLoop()
    cluster = SimulatedCluster(loop, 1, security="ssl")

    async def run(test):
        async with cluster:
            await test(cluster)

    yield lambda test: loop.run_until_complete(run(test))
    loop.close()


@asynccontextmanager
async def connected(cluster, certificates=None):
    """Connect over TLS, for as long as this lasts; trust the authority of these, or what the cluster says."""
    if certificates is None:
        context = cluster.client_config("aiokafka")["ssl_context"]
    else:
        context = ssl.create_default_context(cadata=certificates.authority)
    reader, writer = await asyncio.open_connection(*cluster.address(1), ssl=context)
    yield reader, writer
    writer.close()


async def is_refused(cluster, message):
    with pytest.raises(ssl.SSLCertVerificationError, match=message):
        async with connected(cluster):
            pass


async def ask(streams):
    """Return how many bytes answer a request."""
    reader, writer = streams
    request = messages.ApiVersionsRequest("x", "1")
    writer.write(b"".join(encode_request(RequestHeader(18, 3, 1, "c"), request)))
    return int.from_bytes(await reader.readexactly(4), "big")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"expired": True}, "has expired"), ({"wrong_host": True}, "Hostname mismatch|not valid for")],
)
def test_new_connections_see_the_new_certificate_and_open_ones_stay(play, options, message):
    async def test(cluster):
        async with connected(cluster) as before:
            cluster.renew_certificates(**options)
            await is_refused(cluster, message)
            assert await ask(before) > 0
        cluster.kill(1)
        await cluster.start(1)
        await is_refused(cluster, message)
        await cluster.reset()
        async with connected(cluster) as after:
            assert await ask(after) > 0

    play(test)


PREFIX = "listener.name.ssl.ssl."


async def alter(streams, values, **options):
    """Set configurations of the broker; return the error code and text."""
    reader, writer = streams
    request = messages.IncrementalAlterConfigsRequest
    configs = [request.AlterableConfig(PREFIX + name, 0, text) for name, text in values.items()]
    resource = request.AlterConfigsResource(4, "1", configs)
    header = RequestHeader(44, 1, 1, "c")
    writer.write(b"".join(encode_request(header, request([resource], **options))))
    frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
    (response,) = decode_response(44, 1, frame)[1].responses
    # Until the broker has heard of it.
    await asyncio.sleep(1)
    return response.error_code, response.error_message


def test_certificates_are_replaced_by_configurations(play):
    async def test(cluster):
        made, others = cluster.certificates, Certificates()
        both = {"truststore.type": "PEM", "truststore.certificates": made.authority + others.authority}
        pair = others.issue("broker", ["localhost", "127.0.0.1"])
        store = {"keystore.type": "PEM", "keystore.certificate.chain": pair.chain, "keystore.key": pair.key}
        async with connected(cluster) as before:
            code, text = await alter(before, store)
            assert code == ErrorCode.INVALID_REQUEST
            assert "Path does not chain with any of the trust anchors" in text
            assert await alter(before, both) == (0, None)
            assert await alter(before, store, validate_only=True) == (0, None)
            async with connected(cluster):
                pass
            assert await alter(before, store) == (0, None)
            async with connected(cluster, others) as after:
                assert await ask(after) > 0
            with pytest.raises(ssl.SSLCertVerificationError):
                async with connected(cluster, made):
                    pass
            assert await ask(before) > 0
        await cluster.reset()
        async with connected(cluster, made) as after:
            assert await ask(after) > 0

    play(test)


def test_handshake_hangs_while_clients_are_cut_off(play):
    async def test(cluster):
        async with connected(cluster) as before:
            cluster.disconnect_clients(1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(30), connected(cluster):
                    pass
            later = asyncio.create_task(one_answer(cluster))
            asked = asyncio.create_task(ask(before))
            await asyncio.sleep(30)
            assert not later.done()
            assert not asked.done()
            cluster.reconnect_clients(1)
            assert await later > 0
            assert await asked > 0
            assert await one_answer(cluster) > 0

    play(test)


async def one_answer(cluster):
    async with connected(cluster) as streams:
        return await ask(streams)


def test_clients_of_one_listener_can_be_cut_off():
    listeners = "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0"
    with VirtualCluster(1, listeners=listeners) as cluster:
        cluster.disconnect_clients(1, listener="outside")
        assert cluster.status().brokers[0].clients_cut_off
        inside, outside = (cluster.inside.listeners.addresses_of(name)[1] for name in ("INSIDE", "OUTSIDE"))
        waiting = cluster.loop.create_task(versions(outside))
        assert cluster.wait_for(versions(inside)) > 0
        cluster.advance(10_000)
        assert not waiting.done()
        cluster.reconnect_clients(1, listener="OUTSIDE")
        assert not cluster.status().brokers[0].clients_cut_off
        cluster.run_until(waiting.done)
        assert waiting.result() > 0
        with pytest.raises(ConfigError, match="unknown listener 'other'; listeners: INSIDE, OUTSIDE"):
            cluster.disconnect_clients(1, listener="other")


async def versions(address):
    reader, writer = await asyncio.open_connection(*address)
    answered = await ask((reader, writer))
    writer.close()
    return answered


def test_without_tls_there_is_nothing_to_renew():
    with VirtualCluster(1) as cluster, pytest.raises(WrongStateError, match="no listener has TLS"):
        cluster.renew_certificates()
