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
    connections.hold()
    connections.add(wire.connection)
    assert not wire.transport.reading
    connections.release()
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
