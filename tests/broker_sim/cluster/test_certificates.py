"""Certificates of a cluster that are replaced while it runs, in virtual time."""

import asyncio
import ssl
from contextlib import asynccontextmanager

import pytest

from broker_sim import VirtualCluster
from broker_sim.cluster.simulated_cluster import SimulatedCluster
from broker_sim.errors import WrongStateError
from broker_sim.protocol import messages
from broker_sim.protocol.headers import RequestHeader, encode_request
from broker_sim.runtime.virtual import VirtualEventLoop


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
async def connected(cluster):
    """Connect over TLS, for as long as this lasts."""
    context = cluster.client_config("aiokafka")["ssl_context"]
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


def test_without_tls_there_is_nothing_to_renew():
    with VirtualCluster(1) as cluster, pytest.raises(WrongStateError, match="no listener has TLS"):
        cluster.renew_certificates()
