"""A cluster in a process that forks, or whose test has replaced parts of the standard library."""

import _socket
import asyncio
import os
import socket
import sys
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import pytest
from broker_sim_integration.clients.raw_client import RawConnection

from broker_sim import AsyncCluster, Cluster
from broker_sim.errors import WrongStateError
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from broker_sim.protocol.messages import ApiVersionsRequest, ApiVersionsResponse

TIMEOUT_S = 60

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture(scope="module")
def cluster():
    with Cluster(1, topics=["orders:1:1"]) as opened:
        yield opened


def in_child(work):
    """Return the text that `work()` returns in a forked child."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text


@contextmanager
def living_child():
    """Let a forked child, which has let go of everything, live for the duration of the block."""
    reading, writing = os.pipe()
    forked, runs = os.pipe()
    child = os.fork()
    if not child:
        os.close(writing)
        os.write(runs, b"x")
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    os.read(forked, 1)
    os.close(forked)
    os.close(runs)
    try:
        yield
    finally:
        os.close(writing)
        os.waitpid(child, 0)


def error_of(call):
    try:
        call()
    except WrongStateError as error:
        return str(error)
    return "no error"


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda cluster: cluster.status(), id="verb"),
        pytest.param(lambda cluster: cluster.wait_for_isr("orders", 0, 1), id="waiting verb"),
        pytest.param(lambda cluster: cluster.wait_until(lambda: True), id="wait_until"),
    ],
)
def test_cluster_in_a_forked_child_raises_an_error_with_the_remedy(cluster, call):
    text = in_child(lambda: error_of(lambda: call(cluster)))
    assert text.startswith(f"the cluster runs in process {os.getpid()}, from which this one was forked")
    assert "Clients may connect to it from here" in text


def test_forked_child_closes_a_cluster_for_itself_only(cluster):
    def close():
        servers = cluster.bootstrap_servers
        cluster.close()
        return servers

    assert in_child(close) == cluster.bootstrap_servers
    assert cluster.produce("orders", "x").partition == 0


def test_forked_child_opens_a_cluster_of_its_own(cluster):
    def open_another():
        with Cluster(1, topics=["orders:1:1"]) as own:
            own.produce("orders", "x")
            return str(len(own.records("orders")))

    assert in_child(open_another) == "1"


def test_async_cluster_in_a_forked_child_raises_an_error_with_the_remedy():
    async def check():
        async with AsyncCluster(1) as opened:
            return in_child(lambda: error_of(lambda: opened.status()))  # noqa: PLW0108 - the verb is bound in the child

    assert "from which this one was forked" in asyncio.run(check())


def test_kill_ends_connections_and_port_although_a_child_lives():
    with Cluster(1) as cluster:
        address = cluster.address(1)
        with RawConnection(*address) as client:
            client.request(ApiVersionsRequest(), 0, ApiVersionsResponse)
            with living_child():
                cluster.kill(1)
                with pytest.raises(ConnectionError):
                    client.request(ApiVersionsRequest(), 0, ApiVersionsResponse)
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection(address, TIMEOUT_S)


def test_data_directory_can_be_opened_again_although_a_child_lives(tmp_path):
    first = Cluster(1, topics=["orders:1:1"], data_dir=tmp_path).open()
    first.produce("orders", "x")
    with living_child():
        first.close()
        with Cluster(1, data_dir=tmp_path) as second:
            assert len(second.records("orders")) == 1


def asked_without_the_socket_module(address):
    """Return the correlation id of an answer to a request that goes over a socket of the interpreter."""
    frame = b"".join(encode_request(RequestHeader(ApiKey.API_VERSIONS, 0, 7, "test"), ApiVersionsRequest()))
    client = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        client.settimeout(TIMEOUT_S)
        client.connect(address)
        client.sendall(frame)
        size = int.from_bytes(client.recv(4))
        answer = b""
        while len(answer) < size:
            answer += client.recv(size - len(answer))
    finally:
        client.close()
    return decode_response(ApiKey.API_VERSIONS, 0, answer)[0]


def test_clients_get_in_while_sockets_and_threads_are_replaced():
    with mock.patch("socket.socket"), mock.patch("threading.Thread"), Cluster(1) as cluster:
        assert asked_without_the_socket_module(cluster.address(1)) == 7


def test_cluster_is_refused_where_green_threads_have_replaced_real_ones(monkeypatch):
    monkeypatch.setitem(sys.modules, "gevent.monkey", SimpleNamespace(is_module_patched={"thread": True}.get))
    with pytest.raises(WrongStateError, match=r"gevent has replaced .*: start them as a separate process with broker-"):
        Cluster(1).open()
