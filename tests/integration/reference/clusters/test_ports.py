"""Free ports are free, different, and outside the range of outgoing connections."""

import random
import socket

from broker_sim_integration.reference.clusters.ports import FIRST_PORT, LAST_PORT, free_ports


def test_ports_are_different_and_can_be_bound_at_once():
    ports = free_ports(9)
    assert len(set(ports)) == 9
    sockets = []
    for port in ports:
        assert FIRST_PORT <= port <= LAST_PORT
        sockets.append(socket.create_server(("127.0.0.1", port)))
    for one in sockets:
        one.close()


def test_port_in_use_is_skipped():
    first = free_ports(1, random.Random(7))[0]
    with socket.create_server(("127.0.0.1", first)):
        assert first not in free_ports(3, random.Random(7))


def test_the_search_wraps_around_at_the_last_port():
    class AtTheEnd(random.Random):
        def randrange(self, span):
            return span - 1

    ports = free_ports(3, AtTheEnd())
    assert all(FIRST_PORT <= port <= LAST_PORT for port in ports)
    assert min(ports) < FIRST_PORT + 1000
