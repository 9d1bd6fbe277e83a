"""What requests take of the cluster's memory: counted from their first bytes to their answer."""

import tracemalloc

import pytest

MB = 1 << 20


def begin_request(wire, size, sent):
    wire.send_bytes(size.to_bytes(4, "big") + bytes(sent))


def lose(connection):
    connection.connection_lost(None)


def test_unfinished_requests_take_no_memory_once_their_connection_is_lost(connect):
    wire = connect()
    connections = []
    tracemalloc.start()
    try:
        for _ in range(3):
            wire.connection, _ = wire.connect()
            connections.append(wire.connection)  # as a cycle keeps it until it is collected
            begin_request(wire, 4 * MB, 3 * MB)
            lose(wire.connection)
        left_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left_bytes < MB
    assert wire.memory.used_bytes == 0


@pytest.mark.parametrize("sent", [100_000, 3 * MB])
def test_unfinished_request_counts_until_its_connection_is_lost(connect, sent):
    wire = connect(memory_limit=8 * MB)
    wire.memory.grow_requests(MB)  # the share of requests is used up
    begin_request(wire, 4 * MB - 4, sent)
    assert wire.memory.used_bytes == sent + 4
    lose(wire.connection)
    assert wire.memory.used_bytes == 0


def test_request_counts_until_it_is_answered(connect):
    wire = connect(lambda _: True, memory_limit=8 * MB)
    wire.memory.grow_requests(MB)
    wire.send(bytes(3 * MB))
    assert wire.memory.used_bytes == 3 * MB
    wire.answer()
    assert wire.memory.used_bytes == 0


def test_small_requests_are_not_counted(connect):
    wire = connect(lambda _: True, memory_limit=8 * MB)
    wire.memory.grow_requests(MB)
    wire.send(bytes(60_000))
    assert wire.memory.used_bytes == 0


def test_request_beyond_the_limit_closes_its_connection_and_no_other(connect):
    wire = connect(lambda _: True, memory_limit=8 * MB)
    other_transport = wire.transport
    wire.send(bytes(3 * MB))
    wire.connection, transport = wire.connect()
    begin_request(wire, 4 * MB - 4, 4 * MB - 5)
    assert not transport.closing
    wire.connection, last_transport = wire.connect()
    begin_request(wire, 4 * MB - 4, 3 * MB)
    assert last_transport.closing
    assert not transport.closing
    assert not other_transport.closing


def test_request_for_full_logs_is_read_so_that_it_can_be_rejected(connect):
    wire = connect(memory_limit=8 * MB)
    wire.memory.grow(8 * MB)
    wire.send(bytes(MB - 4))
    assert len(wire.requests) == 1
    assert not wire.transport.closing


def test_requests_that_never_get_a_response_are_not_counted(connect):
    wire = connect(lambda _: True, memory_limit=8 * MB)
    wire.memory.grow_requests(MB)
    wire.send(bytes(2 * MB))
    wire.process.kill()
    wire.connection.abort()
    lose(wire.connection)
    assert wire.memory.used_bytes == 0


@pytest.mark.parametrize("leaves_first", [True, False])
def test_request_counts_until_its_connection_is_closed_in_place_of_an_answer(connect, leaves_first):
    wire = connect(lambda _: True, memory_limit=8 * MB)
    wire.memory.grow_requests(MB)
    wire.send(bytes(3 * MB))
    if leaves_first:
        lose(wire.connection)
        assert wire.memory.used_bytes == 3 * MB
    wire.connection.close("acks=0")
    if not leaves_first:
        lose(wire.connection)
    assert wire.memory.used_bytes == 0


def test_requests_that_fail_are_not_counted(connect, monkeypatch):
    wire = connect(memory_limit=8 * MB)
    wire.memory.grow_requests(MB)
    monkeypatch.setattr(wire.broker, "handle_frame", lambda *_: 1 // 0)
    wire.send(bytes(2 * MB))
    assert wire.transport.closing
    lose(wire.connection)
    assert wire.memory.used_bytes == 0
