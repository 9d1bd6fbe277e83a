"""Frames in, responses out: a `Connection` on a transport that only remembers."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_sim.runtime.virtual.scheduler import VirtualScheduler
from broker_sim.network import Connection
from broker_sim.network.open_connections import OpenConnections
from broker_sim.protocol.errors import ProtocolError
from broker_sim.runtime.process import Process

MAX_REQUEST_BYTES = 1_000


class Transport(asyncio.Transport):
    def __init__(self):
        super().__init__()
        self.written = []
        self.closing = False
        self.reading = True

    def get_extra_info(self, name, default=None):
        return default

    def writelines(self, list_of_data):
        self.written.append(b"".join(list_of_data))

    def write(self, data):
        self.written.append(bytes(data))

    def is_closing(self):
        return self.closing

    def close(self):
        self.closing = True

    abort = close

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True


class Sink:
    """Answers at once with the request itself, or keeps it until `release`."""

    def __init__(self, parks=lambda _: False):
        self.parks = parks
        self.frames = []
        self.parked = []

    def handle_frame(self, frame, connection, respond):
        data = bytes(frame)
        if data == b"malformed":
            raise ProtocolError("not a request")
        if data == b"fatal":
            raise KeyError("a mistake of the broker")
        self.frames.append(data)
        if self.parks(data):
            self.parked.append((data, respond))
        else:
            respond([data])

    def release(self):
        data, respond = self.parked.pop(0)
        respond([data])


class ReportingScheduler(VirtualScheduler):
    """Keeps the errors that real time would log."""

    def __init__(self):
        super().__init__()
        self.errors = []

    def report_error(self, message, error):
        self.errors.append(error)


class Setup:
    def __init__(self, parks=lambda _: False):
        self.scheduler = ReportingScheduler()
        self.process = Process("broker", self.scheduler)
        self.sink = Sink(parks)
        self.transport = Transport()
        self.open = set()
        self.connection = Connection(
            self.process, self.sink, MAX_REQUEST_BYTES, self.open.add, self.open.discard
        )
        self.connection.connection_made(self.transport)

    def settle(self):
        while self.scheduler.step():
            pass


def frame(data):
    return len(data).to_bytes(4, "big") + data


@given(
    frames=st.lists(st.binary(min_size=1, max_size=60), max_size=8),
    cuts=st.lists(st.integers(1, 40), min_size=1),
)
def test_frames_arrive_whole_and_in_order_however_the_stream_is_cut(frames, cuts):
    setup = Setup()
    stream = b"".join(map(frame, frames))
    position, turn = 0, 0
    while position < len(stream):
        step = cuts[turn % len(cuts)]
        setup.connection.data_received(stream[position : position + step])
        position, turn = position + step, turn + 1
    assert setup.sink.frames == frames
    assert setup.transport.written == frames


def test_nothing_behind_a_parked_request_is_looked_at_before_its_answer():
    setup = Setup(parks=lambda data: data.startswith(b"park"))
    setup.connection.data_received(frame(b"one") + frame(b"park") + frame(b"two") + frame(b"park2"))
    assert setup.sink.frames == [b"one", b"park"]
    setup.sink.release()
    setup.settle()
    assert setup.sink.frames == [b"one", b"park", b"two", b"park2"]
    assert setup.transport.written == [b"one", b"park", b"two"]


def test_nothing_passes_while_the_network_is_cut_and_all_of_it_afterwards():
    setup = Setup(parks=lambda data: data == b"park")
    setup.connection.data_received(frame(b"one") + frame(b"park"))
    setup.connection.hold()
    assert not setup.transport.reading
    setup.sink.release()
    setup.settle()
    assert setup.transport.written == [b"one"]
    assert not setup.transport.reading
    setup.connection.release()
    assert setup.transport.reading
    assert setup.transport.written == [b"one", b"park"]


def test_a_connection_made_while_the_network_is_cut_is_held_too():
    setup = Setup()
    connections = OpenConnections(setup.process, -1)
    connections.hold()
    connections.add(setup.connection)
    assert not setup.transport.reading
    connections.release()
    assert setup.transport.reading


def test_what_a_loop_reads_before_it_lets_itself_be_paused_waits_for_the_network_too():
    setup = Setup()
    setup.connection.hold()
    setup.transport.reading = True
    setup.connection.data_received(frame(b"one") + frame(b"two")[:3])
    assert not setup.transport.reading
    assert setup.sink.frames == []
    setup.connection.release()
    assert setup.transport.reading
    setup.connection.data_received(frame(b"two")[3:])
    assert setup.transport.written == [b"one", b"two"]


def test_what_arrives_while_a_request_is_parked_is_kept():
    setup = Setup(parks=lambda data: data == b"park")
    setup.connection.data_received(frame(b"park"))
    setup.connection.data_received(frame(b"two")[:3])
    setup.connection.data_received(frame(b"two")[3:] + frame(b"three"))
    assert setup.sink.frames == [b"park"]
    setup.sink.release()
    setup.settle()
    assert setup.transport.written == [b"park", b"two", b"three"]


def test_a_client_that_goes_on_sending_behind_a_parked_request_is_no_longer_read():
    setup = Setup(parks=lambda data: data == b"park")
    setup.connection.data_received(frame(b"park"))
    for _ in range(300):
        setup.connection.data_received(frame(b"x" * 996))
    assert not setup.transport.reading
    setup.sink.release()
    setup.settle()
    assert setup.transport.reading
    assert len(setup.sink.frames) == 301


@pytest.mark.parametrize("size", [-1, -(1 << 31), 0, MAX_REQUEST_BYTES + 1, (1 << 31) - 1])
def test_a_frame_of_an_impossible_size_closes_the_connection(size):
    setup = Setup()
    setup.connection.data_received(frame(b"good") + size.to_bytes(4, "big", signed=True))
    assert setup.transport.closing
    assert setup.sink.frames == [b"good"]


def test_a_frame_of_the_largest_allowed_size_is_taken():
    setup = Setup()
    setup.connection.data_received(frame(b"x" * MAX_REQUEST_BYTES))
    assert not setup.transport.closing
    assert len(setup.sink.frames[0]) == MAX_REQUEST_BYTES


def test_a_request_that_cannot_be_understood_closes_the_connection_and_ends_the_stream():
    setup = Setup()
    setup.connection.data_received(frame(b"malformed") + frame(b"after"))
    assert setup.transport.closing
    assert setup.sink.frames == []


def test_a_request_without_an_answer_lets_the_next_one_in():
    setup = Setup()

    def handle_without_an_answer(data, connection, respond):
        setup.sink.frames.append(bytes(data))
        respond(None)

    setup.sink.handle_frame = handle_without_an_answer
    setup.connection.data_received(frame(b"a") + frame(b"b"))
    assert setup.sink.frames == [b"a", b"b"]
    assert setup.transport.written == []


def test_a_paused_broker_reads_nothing_and_answers_all_of_it_when_it_goes_on():
    setup = Setup()
    setup.process.pause()
    setup.connection.data_received(frame(b"a"))
    assert setup.sink.frames == []
    assert not setup.transport.reading
    setup.process.resume()
    assert setup.transport.written == [b"a"]
    assert setup.transport.reading


def test_a_client_that_does_not_read_its_responses_gets_no_more_of_them():
    setup = Setup()
    setup.connection.pause_writing()
    setup.connection.data_received(frame(b"a"))
    assert setup.sink.frames == []
    setup.connection.resume_writing()
    assert setup.transport.written == [b"a"]


def test_what_a_client_sent_before_it_left_is_served_though_nobody_reads_the_answers():
    setup = Setup(parks=lambda data: data == b"park")
    setup.connection.data_received(frame(b"park") + frame(b"two"))
    setup.connection.connection_lost(None)
    setup.sink.release()
    setup.settle()
    assert setup.sink.frames == [b"park", b"two"]
    assert setup.transport.written == []


def test_an_answer_after_the_client_has_left_goes_nowhere():
    setup = Setup(parks=lambda _: True)
    setup.connection.data_received(frame(b"a"))
    assert setup.open
    setup.connection.connection_lost(None)
    assert not setup.open
    setup.sink.release()
    assert setup.transport.written == []


def test_a_handler_that_fails_costs_its_connection_and_is_reported():
    setup = Setup()
    setup.connection.data_received(frame(b"good") + frame(b"fatal") + frame(b"after"))
    assert setup.transport.closing
    assert setup.sink.frames == [b"good"]
    assert [type(error) for error in setup.scheduler.errors] == [KeyError]


def test_a_client_that_reads_its_responses_again_is_read_again_too():
    setup = Setup()
    setup.connection.pause_writing()
    for _ in range(300):
        setup.connection.data_received(frame(b"x" * 996))
    assert not setup.transport.reading
    setup.connection.resume_writing()
    assert len(setup.sink.frames) == 300
    assert setup.transport.reading


def test_a_connection_that_comes_up_while_its_broker_dies_is_broken_off():
    setup = Setup()
    setup.process.kill()
    late = Connection(
        setup.process, setup.sink, MAX_REQUEST_BYTES, setup.open.add, setup.open.discard
    )
    transport = Transport()
    late.connection_made(transport)
    assert transport.closing


class IdleSetup(Setup):
    """A connection that its broker closes when it is idle for so long."""

    def __init__(self, max_idle_ms, parks=lambda _: False):
        super().__init__(parks)
        self.connections = OpenConnections(self.process, max_idle_ms)
        self.connections.add(self.connection)


def test_a_connection_that_nobody_uses_is_closed_after_its_time():
    setup = IdleSetup(1_000)
    setup.scheduler.advance_to(1_000)
    assert not setup.transport.closing
    setup.scheduler.advance_to(1_200)
    assert setup.transport.closing


def test_a_connection_in_use_stays_open():
    setup = IdleSetup(1_000)
    for time_ms in range(0, 10_000, 900):
        setup.scheduler.advance_to(time_ms)
        setup.connection.data_received(frame(b"a"))
    assert not setup.transport.closing


def test_a_connection_whose_request_is_parked_is_idle_as_with_kafka():
    setup = IdleSetup(1_000, parks=lambda _: True)
    setup.connection.data_received(frame(b"a"))
    setup.scheduler.advance_to(1_200)
    assert setup.transport.closing


def test_a_negative_idle_time_closes_nothing():
    setup = IdleSetup(-1)
    setup.scheduler.advance_to(10_000_000)
    assert not setup.transport.closing


def test_a_closed_connection_is_forgotten_and_the_others_are_broken_off_with_their_broker():
    setup = IdleSetup(1_000)
    assert len(setup.connections) == 1
    setup.connections.discard(setup.connection)
    assert len(setup.connections) == 0
    setup.connections.add(setup.connection)
    setup.connections.abort()
    assert setup.transport.closing
    assert setup.scheduler.next_due_ms() is None, "no sweep is left behind"
