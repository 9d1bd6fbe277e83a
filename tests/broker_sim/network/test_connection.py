"""Requests in, responses out: a `Connection` between a client and a broker in memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_sim.security import ANONYMOUS, KafkaPrincipal

SEND_BUFFER_BYTES = 100 * 1024


def framed(data):
    return len(data).to_bytes(4, "big") + data


def parks_requests_named_park(request):
    return bytes(request[:4]) == b"park"


def parks_all(_):
    return True


@given(requests=st.lists(st.binary(min_size=1, max_size=60), max_size=8), cuts=st.lists(st.integers(1, 40), min_size=1))
def test_requests_arrive_whole_and_in_order_however_the_stream_is_cut(connect, requests, cuts):
    wire = connect()
    stream = b"".join(map(framed, requests))
    position, turn = 0, 0
    while position < len(stream):
        step = cuts[turn % len(cuts)]
        wire.connection.data_received(stream[position : position + step])
        position, turn = position + step, turn + 1
    assert wire.requests == requests
    assert wire.transport.written == requests


@pytest.mark.parametrize("at_most", [1_000, 32_768, 40_000, 1 << 20])
@pytest.mark.parametrize("size", [1, 32_763, 32_764, 32_765, 100_000, 2_097_148, 2_097_149])
def test_requests_of_all_sizes_come_out_of_the_socket_as_they_went_in(connect, size, at_most):
    wire = connect()
    requests = [b"before", (bytes(range(256)) * (size // 256 + 1))[:size], b"after"]
    wire.send_bytes(b"".join(map(framed, requests)), at_most)
    assert wire.requests == requests


# -- order ----------------------------------------------------------------------------------------


def test_nothing_behind_a_parked_request_is_looked_at_before_its_answer(connect):
    wire = connect(parks_requests_named_park)
    wire.send(b"one", b"park", b"two", b"park2")
    assert wire.requests == [b"one", b"park"]
    wire.answer()
    assert wire.requests == [b"one", b"park", b"two", b"park2"]
    assert wire.transport.written == [b"one", b"park", b"two"]


def test_requests_that_arrive_behind_a_parked_one_are_kept(connect):
    wire = connect(parks_requests_named_park)
    wire.send(b"park")
    wire.send_bytes(framed(b"two")[:3])
    wire.send_bytes(framed(b"two")[3:] + framed(b"three"))
    assert wire.requests == [b"park"]
    wire.answer()
    assert wire.transport.written == [b"park", b"two", b"three"]


def test_next_request_is_not_handled_inside_the_answer_before_it(connect):
    wire = connect(parks_requests_named_park)
    wire.send(b"park", b"two")
    _, send_response = wire.broker.parked[0]
    send_response([b"answer"])
    assert wire.requests == [b"park"]


def test_requests_that_are_answered_at_once_schedule_nothing(connect):
    wire = connect()
    wire.send(b"one", b"two")
    assert wire.transport.written == [b"one", b"two"]
    assert wire.scheduler.loop.next_due_ns() is None


def test_parked_request_stays_as_it_was_while_the_next_ones_are_read(connect):
    wire = connect(parks_all)
    requests = [b"a" * 100_000, b"b" * 10, b"c" * 100_000]
    wire.send(*requests)
    while wire.broker.parked:
        wire.answer()
    assert wire.requests == requests


def test_request_without_a_response_admits_the_next_one(connect):
    wire = connect()
    wire.send(b"no answer", b"two")
    assert wire.requests == [b"no answer", b"two"]
    assert wire.transport.written == [b"two"]


def test_request_that_is_answered_twice_is_a_programmers_error(connect):
    wire = connect(parks_all)
    wire.send(b"one")
    _, send_response = wire.broker.parked[0]
    send_response([b"answer"])
    with pytest.raises(AssertionError, match="once"):
        send_response([b"answer"])


# -- who the client is ----------------------------------------------------------------------------


def test_principal_of_a_client_comes_from_its_certificate(connect):
    assert connect().connection.principal == ANONYMOUS
    billing = KafkaPrincipal("User", "CN=billing")
    assert connect(principal_of=lambda _: billing).connection.principal == billing


def test_only_an_authenticated_client_may_request_tokens(connect):
    assert not connect().connection.may_ask_for_tokens
    # TLS without a certificate tells nothing.
    assert not connect(principal_of=lambda _: ANONYMOUS).connection.may_ask_for_tokens
    billing = KafkaPrincipal("User", "CN=billing")
    assert connect(principal_of=lambda _: billing).connection.may_ask_for_tokens


def test_client_whose_certificate_no_rule_matches_is_cut_off(connect):
    wire = connect(principal_of=lambda _: None)
    wire.send(b"one")
    assert wire.transport.closing
    assert wire.requests == []


# -- reading no more than helps -------------------------------------------------------------------


def test_reading_stops_while_a_client_sends_behind_a_parked_request(connect):
    wire = connect(parks_requests_named_park)
    wire.send(b"park")
    for _ in range(300):
        wire.send(b"x" * 996)
    assert not wire.transport.reading
    wire.answer()
    assert wire.transport.reading
    assert len(wire.requests) == 301


def test_client_that_does_not_read_its_responses_gets_no_more_of_them(connect):
    wire = connect()
    wire.connection.pause_writing()
    wire.send(b"a")
    assert wire.requests == []
    wire.connection.resume_writing()
    assert wire.transport.written == [b"a"]


def test_client_that_reads_its_responses_again_is_read_again_too(connect):
    wire = connect()
    wire.connection.pause_writing()
    for _ in range(300):
        wire.send(b"x" * 996)
    assert not wire.transport.reading
    wire.connection.resume_writing()
    assert len(wire.requests) == 300
    assert wire.transport.reading


def test_transport_that_fills_and_drains_while_it_is_written_to_keeps_the_order(connect):
    wire = connect()
    requests = [str(number).encode() for number in range(2_000)]
    remember = wire.transport.writelines

    def fill_and_drain(chunks):
        remember(chunks)
        wire.connection.pause_writing()
        wire.connection.resume_writing()

    wire.transport.writelines = fill_and_drain
    wire.send(*requests)
    assert wire.requests == requests
    assert wire.transport.written == requests


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [-1, -(1 << 31), 0, 1_001, (1 << 31) - 1])
def test_request_of_an_impossible_size_closes_the_connection_with_one_log_line(connect, caplog, size):
    wire = connect(max_request_bytes=1_000)
    wire.send_bytes(framed(b"good") + size.to_bytes(4, "big", signed=True) + framed(b"after"))
    assert wire.transport.closing
    assert wire.requests == [b"good"]
    (line,) = caplog.messages
    assert "connection_closed" in line
    assert f"frame of {size} bytes, allowed are 1 to 1000" in line


def test_request_of_the_largest_allowed_size_is_taken(connect):
    wire = connect(max_request_bytes=1_000)
    wire.send(b"x" * 1_000)
    assert not wire.transport.closing
    assert wire.requests == [b"x" * 1_000]


def test_malformed_request_closes_the_connection_and_ends_the_stream(connect, caplog):
    wire = connect()
    wire.send(b"malformed", b"after")
    wire.send(b"later")
    assert wire.transport.closing
    assert wire.requests == []
    (line,) = caplog.messages
    assert "not a request" in line


def test_failing_handler_costs_its_connection_and_is_reported(connect):
    wire = connect()
    wire.send(b"good", b"fatal", b"after")
    assert wire.transport.closing
    assert wire.requests == [b"good"]
    assert [type(error) for error in wire.scheduler.errors] == [KeyError]


# -- a broker that is paused or killed ------------------------------------------------------------


def test_paused_broker_reads_nothing_and_serves_all_when_resumed(connect):
    wire = connect()
    wire.process.pause()
    wire.send(b"a")
    assert wire.requests == []
    assert not wire.transport.reading
    wire.process.resume()
    assert wire.transport.written == [b"a"]
    assert wire.transport.reading


@pytest.mark.parametrize("until", [60_000, 200_004])
def test_paused_broker_reads_the_rest_of_a_large_request_when_resumed(connect, until):
    wire = connect()
    data = framed(b"x" * 200_000)
    wire.send_bytes(data[:50_000])
    wire.process.pause()
    wire.send_bytes(data[50_000:until])
    assert not wire.transport.reading
    assert wire.requests == []
    wire.process.resume()
    assert wire.transport.reading
    wire.send_bytes(data[until:])
    assert wire.requests == [b"x" * 200_000]


def test_killed_broker_handles_nothing(connect):
    wire = connect(parks_all)
    wire.send(b"one", b"two")
    wire.process.kill()
    wire.answer()
    wire.send(b"three")
    assert wire.requests == [b"one"]


def test_connection_that_comes_up_while_its_broker_dies_is_broken_off(connect):
    wire = connect()
    wire.process.kill()
    _, late_transport = wire.connect()
    assert late_transport.closing


# -- a client that leaves, or is cut off ----------------------------------------------------------


def test_requests_of_a_client_that_has_left_are_still_served(connect):
    wire = connect(parks_requests_named_park)
    wire.send(b"park", b"two")
    wire.connection.connection_lost(None)
    wire.answer()
    assert wire.requests == [b"park", b"two"]
    assert wire.transport.written == []


def test_connection_is_known_to_its_broker_until_the_client_leaves(connect):
    wire = connect()
    assert wire.open == {wire.connection}
    wire.connection.connection_lost(None)
    assert not wire.open


def test_nothing_passes_while_the_network_is_cut_and_all_of_it_afterwards(connect):
    wire = connect(parks_requests_named_park)
    wire.send(b"one", b"park")
    wire.connection.hold()
    assert not wire.transport.reading
    wire.answer()
    assert wire.transport.written == [b"one"]
    assert not wire.transport.reading
    wire.connection.release()
    assert wire.transport.reading
    assert wire.transport.written == [b"one", b"park"]


def test_requests_that_came_before_the_cut_are_served_until_the_send_buffer_is_full(connect):
    wire = connect(parks_requests_named_park)
    requests = [b"park", b"a" * SEND_BUFFER_BYTES, b"b", b"c"]
    wire.send(*requests)
    wire.connection.hold()
    wire.answer()
    assert wire.requests == requests[:2]
    wire.connection.release()
    assert wire.requests == requests
    assert b"".join(wire.transport.written) == b"".join(requests)


def test_bytes_that_a_loop_reads_from_a_held_connection_wait_for_the_network_too(connect):
    wire = connect()
    wire.connection.hold()
    wire.transport.reading = True
    wire.connection.data_received(framed(b"one") + framed(b"two")[:3])
    assert not wire.transport.reading
    assert wire.requests == []
    wire.connection.release()
    assert wire.transport.reading
    wire.connection.data_received(framed(b"two")[3:])
    assert wire.transport.written == [b"one", b"two"]


# -- throttling -------------------------------------------------------------------------------------


def test_throttled_connection_answers_and_takes_nothing_until_the_last_throttling_ends(connect):
    wire = connect(parks_requests_named_park)
    wire.send(b"park", b"two")
    wire.connection.start_throttling()
    wire.connection.start_throttling()
    wire.answer()
    assert wire.transport.written == [b"park"]
    wire.send(b"three")
    wire.connection.end_throttling()
    assert wire.requests == [b"park"]
    wire.connection.end_throttling()
    while wire.scheduler.step():
        pass
    assert wire.requests == [b"park", b"two", b"three"]


def test_request_that_is_parked_while_the_throttling_ends_is_still_waited_for(connect):
    wire = connect(parks_requests_named_park)
    wire.send(b"park", b"two")
    wire.connection.start_throttling()
    wire.connection.end_throttling()
    while wire.scheduler.step():
        pass
    assert wire.requests == [b"park"]
    wire.answer()
    assert wire.requests == [b"park", b"two"]


def test_reading_stops_while_a_throttled_client_sends(connect):
    wire = connect()
    wire.connection.start_throttling()
    for _ in range(300):
        wire.send(b"x" * 996)
    assert not wire.transport.reading
    wire.connection.end_throttling()
    while wire.scheduler.step():
        pass
    assert wire.transport.reading
    assert len(wire.requests) == 300
