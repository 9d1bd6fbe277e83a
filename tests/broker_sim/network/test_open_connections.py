"""A broker's connections: the idle ones are closed, and all of them are held and ended together."""

from broker_sim.config import BrokerConfig
from broker_sim.network.open_connections import OpenConnections
from broker_sim.quota import ConnectionQuotas

MAX_IDLE_MS = 1_000
SWEEP_MS = 100
LISTENERS = ("PLAINTEXT", "INSIDE")
TWO_A_SECOND = {"quota.window.num": "2", "max.connection.creation.rate": "2"}
"""Measured over one second, so that the third one waits for half of it."""


def quotas_of(process, configs=None, inter_broker="", ips=None):
    quotas = ConnectionQuotas(BrokerConfig.from_mapping(configs or {}), process.clock)
    quotas.listen(LISTENERS, inter_broker)
    quotas.update(ips or {})
    return quotas


def connections_of(wire, max_idle_ms=-1, **limits):
    """The connections of the wire's broker, none yet."""
    return OpenConnections(wire.process, max_idle_ms, quotas_of(wire.process, **limits))


def open_connection(wire, max_idle_ms=MAX_IDLE_MS):
    connections = connections_of(wire, max_idle_ms)
    connections.add(wire.connection)
    return connections


def test_idle_connection_is_closed_after_its_time(connect):
    wire = connect()
    open_connection(wire)
    wire.scheduler.advance_to(MAX_IDLE_MS)
    assert not wire.transport.closing
    wire.scheduler.advance_to(MAX_IDLE_MS + 2 * SWEEP_MS)
    assert wire.transport.closing


def test_connection_in_use_stays_open(connect):
    wire = connect()
    open_connection(wire)
    for time_ms in range(0, 10_000, 900):
        wire.scheduler.advance_to(time_ms)
        wire.send(b"a")
    assert not wire.transport.closing


def test_connection_whose_request_is_parked_is_idle_as_with_kafka(connect):
    wire = connect(parks=lambda _: True)
    open_connection(wire)
    wire.send(b"a")
    wire.scheduler.advance_to(MAX_IDLE_MS + 2 * SWEEP_MS)
    assert wire.transport.closing


def test_negative_idle_time_closes_nothing(connect):
    wire = connect()
    open_connection(wire, max_idle_ms=-1)
    wire.scheduler.advance_to(10_000_000)
    assert not wire.transport.closing


def test_ended_connection_is_forgotten(connect):
    wire = connect()
    connections = open_connection(wire)
    assert len(connections) == 1
    connections.discard(wire.connection)
    connections.discard(wire.connection)
    assert len(connections) == 0
    connections.abort_all()
    assert not wire.transport.closing


def test_abort_breaks_all_connections_off_and_leaves_no_sweep_behind(connect):
    wire = connect()
    connections = open_connection(wire)
    connections.abort_all()
    assert wire.transport.closing
    assert wire.scheduler.loop.next_due_ns() is None


def test_connection_made_while_the_network_is_cut_is_held_too(connect):
    wire = connect()
    connections = connections_of(wire)
    connections.hold(wire.connection.listener)
    connections.add(wire.connection)
    assert not wire.transport.reading
    connections.release(wire.connection.listener)
    assert wire.transport.reading


def test_paused_broker_neither_accepts_nor_rejects_connections(connect):
    first, second = connect(), connect()
    connections = connections_of(first, configs={"max.connections.per.ip": "1"})
    first.process.pause()
    for wire in (first, second):
        connections.add(wire.connection)
        assert not wire.transport.reading
        assert not wire.transport.closing
    assert len(connections) == 0
    first.process.resume()
    assert len(connections) == 1
    assert (first.transport.closing, first.transport.reading) == (False, True)
    assert second.transport.closing


def test_paused_broker_accepts_no_connection_in_place_of_a_closed_one(connect):
    first, second = connect(), connect()
    connections = connections_of(first, configs={"max.connections": "1"})
    for wire in (first, second):
        connections.add(wire.connection)
    first.process.pause()
    connections.discard(first.connection)
    assert not second.transport.reading
    first.process.resume()
    assert second.transport.reading


def test_killed_while_paused_a_broker_breaks_off_the_connections_it_has_not_taken(connect):
    wire = connect()
    connections = connections_of(wire)
    wire.process.pause()
    connections.add(wire.connection)
    wire.process.kill()
    connections.abort_all()
    assert wire.transport.closing


# -- limits -------------------------------------------------------------------------------------------


def connections_with(wires, listeners=(), **limits):
    """Add the connections of all wires to the broker of the first one; `listeners` are theirs."""
    connections = connections_of(wires[0], **limits)
    for wire, listener in zip(wires, listeners, strict=False):
        wire.connection.listener = listener
    for wire in wires:
        connections.add(wire.connection)
    return connections


def reading(wires):
    return [wire.transport.reading for wire in wires]


def closing(wires):
    return [wire.transport.closing for wire in wires]


def test_listener_stands_still_for_a_connection_and_those_behind_it(connect):
    wires = [connect() for _ in range(4)]
    connections = connections_with(wires, configs=TWO_A_SECOND)
    assert reading(wires) == [True, True, False, False]
    wires[0].scheduler.advance_to(499)
    assert len(connections) == 2
    wires[0].scheduler.advance_to(500)
    assert reading(wires) == [True, True, True, False]


def test_those_behind_are_counted_one_after_the_other(connect):
    wires = [connect() for _ in range(4)]
    connections = connections_with(wires, configs=TWO_A_SECOND)
    wires[0].scheduler.advance_to(999)
    assert len(connections) == 3
    wires[0].scheduler.advance_to(1_000)
    assert len(connections) == 4


def test_client_that_gives_up_while_its_listener_waits_for_it_keeps_its_place(connect):
    wires = [connect() for _ in range(4)]
    connections = connections_with(wires, configs=TWO_A_SECOND)
    connections.discard(wires[2].connection)
    wires[0].scheduler.advance_to(999)
    assert len(connections) == 2
    wires[0].scheduler.advance_to(1_000)
    assert reading(wires) == [True, True, False, True]


def test_client_that_gives_up_behind_others_is_forgotten(connect):
    wires = [connect() for _ in range(5)]
    connections = connections_with(wires, configs=TWO_A_SECOND)
    connections.discard(wires[3].connection)
    wires[0].scheduler.advance_to(1_000)
    assert reading(wires) == [True, True, True, False, True]


def test_listener_that_stands_still_does_not_hold_up_another_one(connect):
    wires = [connect() for _ in range(5)]
    listeners = ["PLAINTEXT", "PLAINTEXT", "PLAINTEXT", "INSIDE", "INSIDE"]
    own = {"listener.name.plaintext.max.connections": "1"}
    connections = connections_with(wires, listeners, configs=own)
    assert reading(wires) == [True, False, False, True, True]
    connections.discard(wires[3].connection)
    assert reading(wires) == [True, False, False, True, True]
    connections.discard(wires[0].connection)
    assert reading(wires) == [True, True, False, True, True]


def test_connection_between_brokers_takes_the_place_of_the_least_recently_used_one(connect):
    wires = [connect() for _ in range(5)]
    listeners = ["PLAINTEXT", "PLAINTEXT", "INSIDE", "PLAINTEXT", "INSIDE"]
    limits = {"configs": {"max.connections": "2"}, "inter_broker": "INSIDE"}
    connections = connections_with(wires[:2], listeners, **limits)
    wires[0].send(b"used")
    for wire, listener in zip(wires[2:], listeners[2:], strict=True):
        wire.connection.listener = listener
        connections.add(wire.connection)
        assert len(connections) == 2
    assert closing(wires) == [True, True, False, False, False]
    assert reading(wires[2:]) == [True, False, True]


def test_last_used_connection_is_the_last_to_make_room(connect):
    wires = [connect() for _ in range(4)]
    limits = {"configs": {"max.connections": "3"}, "inter_broker": "INSIDE"}
    connections = connections_with(wires[:3], **limits)
    for wire in (wires[1], wires[0]):
        wire.send(b"used")
    wires[3].connection.listener = "INSIDE"
    connections.add(wires[3].connection)
    assert closing(wires) == [False, False, True, False]


def test_lower_limit_ends_connections_and_a_higher_one_serves_those_that_wait(connect):
    wires = [connect() for _ in range(4)]
    quotas = quotas_of(wires[0].process, {"max.connections": "3"})
    connections = OpenConnections(wires[0].process, -1, quotas)
    for wire in wires:
        connections.add(wire.connection)
    quotas.reconfigure({"max.connections": "1"})
    assert closing(wires) == [True, True, False, False]
    assert reading(wires[2:]) == [True, False]
    quotas.reconfigure({"max.connections": "2"})
    assert (reading(wires[2:]), len(connections)) == ([True, True], 2)


def test_lower_limit_of_a_listener_ends_nothing(connect):
    wires = [connect() for _ in range(3)]
    quotas = quotas_of(wires[0].process)
    connections = OpenConnections(wires[0].process, -1, quotas)
    for wire in wires:
        connections.add(wire.connection)
    quotas.reconfigure({"listener.name.plaintext.max.connections": "1"})
    assert closing(wires) == [False, False, False]


def test_connection_that_had_to_wait_is_held_while_the_network_is_cut(connect):
    wires = [connect() for _ in range(2)]
    connections = connections_with(wires, configs={"max.connections": "1"})
    connections.hold("PLAINTEXT")
    connections.discard(wires[0].connection)
    assert (len(connections), wires[1].transport.reading) == (1, False)
    connections.release("PLAINTEXT")
    assert wires[1].transport.reading


def test_address_above_its_rate_is_closed_after_its_time_and_never_served(connect):
    wires = [connect() for _ in range(3)]
    ips = {(("ip", None),): {"connection_creation_rate": 2.0}}
    connections = connections_with(wires, configs={"quota.window.num": "2"}, ips=ips)
    assert (len(connections), reading(wires)) == (2, [True, True, False])
    wires[0].scheduler.advance_to(499)
    assert not wires[2].transport.closing
    wires[0].scheduler.advance_to(500)
    assert closing(wires) == [False, False, True]


def test_refused_and_waiting_connections_end_with_the_broker(connect):
    wires = [connect() for _ in range(5)]
    ips = {(("ip", None),): {"connection_creation_rate": 1.0}}
    connections = connections_with(wires, configs=TWO_A_SECOND, ips=ips)
    assert len(connections) == 1
    connections.abort_all()
    assert all(closing(wires))
