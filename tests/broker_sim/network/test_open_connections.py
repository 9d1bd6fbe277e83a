"""A broker's connections: the idle ones are closed, and all of them are held and ended together."""

from broker_sim.network.open_connections import OpenConnections

MAX_IDLE_MS = 1_000
SWEEP_MS = 100


def open_connection(wire, max_idle_ms=MAX_IDLE_MS):
    connections = OpenConnections(wire.process, max_idle_ms)
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
    connections.abort()
    assert not wire.transport.closing


def test_abort_breaks_all_connections_off_and_leaves_no_sweep_behind(connect):
    wire = connect()
    connections = open_connection(wire)
    connections.abort()
    assert wire.transport.closing
    assert wire.scheduler.loop.next_due_ns() is None


def test_connection_made_while_the_network_is_cut_is_held_too(connect):
    wire = connect()
    connections = OpenConnections(wire.process, -1)
    connections.hold(wire.connection.listener)
    connections.add(wire.connection)
    assert not wire.transport.reading
    connections.release(wire.connection.listener)
    assert wire.transport.reading


def test_paused_broker_neither_takes_nor_rejects_connections_until_it_goes_on(connect):
    first, second = connect(), connect()
    connections = OpenConnections(first.process, -1, max_connections_per_ip=1)
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


def test_paused_broker_takes_nobody_in_the_place_of_one_that_leaves(connect):
    first, second = connect(), connect()
    connections = OpenConnections(first.process, -1, max_connections=1)
    for wire in (first, second):
        connections.add(wire.connection)
    first.process.pause()
    connections.discard(first.connection)
    assert not second.transport.reading
    first.process.resume()
    assert second.transport.reading


def test_killed_while_paused_a_broker_breaks_off_the_connections_it_has_not_taken(connect):
    wire = connect()
    connections = OpenConnections(wire.process, -1)
    wire.process.pause()
    connections.add(wire.connection)
    wire.process.kill()
    connections.abort()
    assert wire.transport.closing


class Rates:
    """Answers what the test has said, in order; 0 when nothing is left."""

    def __init__(self, broker=(), address=()):
        self.broker = list(broker)
        self.address = list(address)

    def accept(self):
        return self.broker.pop(0) if self.broker else 0

    def accept_from(self, ip):
        assert ip
        return self.address.pop(0) if self.address else 0


def connections_with(rates, *wires):
    """Add the connections of all wires, which have one process, to one broker with these rates."""
    process = wires[0].process
    connections = OpenConnections(process, -1, quotas=rates)
    for wire in wires:
        connections.add(wire.connection)
    return connections


def test_listener_stands_still_for_a_connection_and_those_behind_it(connect):
    wires = [connect() for _ in range(3)]
    connections = connections_with(Rates(broker=[0, 500, 0]), *wires)
    assert [wire.transport.reading for wire in wires] == [True, False, False]
    wires[0].scheduler.advance_to(499)
    assert len(connections) == 1
    wires[0].scheduler.advance_to(500)
    assert len(connections) == 3
    assert all(wire.transport.reading for wire in wires)


def test_those_behind_are_counted_one_after_the_other(connect):
    wires = [connect() for _ in range(3)]
    connections = connections_with(Rates(broker=[500, 300, 0]), *wires)
    wires[0].scheduler.advance_to(500)
    assert len(connections) == 1
    wires[0].scheduler.advance_to(800)
    assert len(connections) == 3


def test_client_that_gives_up_lets_the_next_one_in(connect):
    wires = [connect() for _ in range(2)]
    connections = connections_with(Rates(broker=[500, 0]), *wires)
    connections.discard(wires[0].connection)
    assert len(connections) == 1
    wires[0].scheduler.advance_to(500)
    assert (len(connections), wires[0].transport.reading) == (1, False)


def test_address_above_its_rate_is_closed_after_its_time_and_never_served(connect):
    first, second = connect(), connect()
    connections = connections_with(Rates(address=[700, 0]), first, second)
    assert (len(connections), first.transport.reading) == (1, False)
    assert second.transport.reading
    first.scheduler.advance_to(699)
    assert not first.transport.closing
    first.scheduler.advance_to(700)
    assert first.transport.closing
    assert not second.transport.closing


def test_refused_and_standing_connections_end_with_the_broker(connect):
    wires = [connect() for _ in range(3)]
    connections_with(Rates(broker=[0, 500], address=[700]), *wires).abort()
    assert all(wire.transport.closing for wire in wires)
