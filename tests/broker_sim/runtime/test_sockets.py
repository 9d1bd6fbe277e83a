"""Ports: real ones, those of a loop with its own network, and errors that say what to do."""

import asyncio
import errno
import os
import socket

import pytest
import uvloop

from broker_sim.runtime.sockets import bind


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop])
def loop(request):
    made = request.param()
    yield made
    made.close()


class LoopWithNetwork:
    """As much as `bind` sees of a loop that has a network of its own."""

    def __init__(self):
        self.taken = {("127.0.0.1", 9092)}

    def bind(self, host, port):
        if (host, port) in self.taken:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        return host, port


def test_port_zero_takes_a_free_port(loop):
    with bind(loop, "127.0.0.1", 0) as bound:
        host, port = bound.getsockname()
    assert host == "127.0.0.1"
    assert port > 0


def test_host_may_be_an_address_of_ip_version_6(loop):
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    with bind(loop, "::1", 0) as bound:
        assert bound.getsockname()[0] == "::1"


def test_bound_port_refuses_clients_until_it_listens(loop):
    with bind(loop, "127.0.0.1", 0) as bound, pytest.raises(ConnectionRefusedError):
        socket.create_connection(bound.getsockname(), timeout=60)


def test_port_in_use_is_refused_with_the_option_to_change(loop):
    with bind(loop, "127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=r"\d") as refused:
            bind(loop, "127.0.0.1", port, argument="control", option="--control-port")
    assert refused.value.errno == errno.EADDRINUSE
    assert refused.value.strerror == (
        f"cannot listen on 127.0.0.1:{port} (Address already in use); "
        "choose another (control= in Python, --control-port of a command), or 0 for any free one"
    )


def test_error_of_a_foreign_host_says_what_it_must_be(loop):
    with pytest.raises(OSError, match=r"192\.0\.2\.1:0 .*must be an address of this machine"):
        bind(loop, "192.0.2.1", 0)


def test_loop_with_a_network_of_its_own_binds_there():
    assert bind(LoopWithNetwork(), "broker-1", 9092) == ("broker-1", 9092)


def test_port_in_use_in_the_network_of_a_loop_is_refused_with_the_same_advice():
    with pytest.raises(OSError, match=r"choose another \(ports= in Python, --port of a command\), or 0 for") as refused:
        bind(LoopWithNetwork(), "127.0.0.1", 9092)
    assert refused.value.errno == errno.EADDRINUSE
