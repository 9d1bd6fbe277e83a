"""A `Connection` with both of its ends in the test: no sockets, and virtual time."""

import asyncio

import pytest

from broker_sim.log import MemoryAccount
from broker_sim.network import Connection
from broker_sim.protocol.errors import ProtocolError
from broker_sim.runtime.process import Process
from broker_sim.runtime.virtual.run import VirtualScheduler

MAX_REQUEST_BYTES = 1 << 22


def frame(data):
    return len(data).to_bytes(4, "big") + data


class MemoryTransport(asyncio.Transport):
    """Keeps each response that is written, and whether it reads."""

    def __init__(self):
        super().__init__()
        self.written = []
        self.closing = False
        self.reading = True
        self.is_paused = False

    def get_extra_info(self, name, default=None):
        return default

    def writelines(self, list_of_data):
        self.written.append(b"".join(list_of_data))

    def is_closing(self):
        return self.closing

    def close(self):
        self.closing = True

    abort = close

    def is_reading(self):
        return not self.is_paused and not self.closing

    def pause_reading(self):
        if self.is_reading():
            self.is_paused, self.reading = True, False

    def resume_reading(self):
        self.is_paused, self.reading = False, True


class Broker:
    """Answers a request with its own bytes, at once, or when `Wire.answer` is called if it parks it.

    The requests `no answer`, `malformed` and `fatal` do what their names say.
    """

    def __init__(self, parks):
        self.parks = parks
        self.requests = []
        self.parked = []

    def handle_frame(self, frame, connection, send_response):
        if frame == b"malformed":
            raise ProtocolError("not a request")
        if frame == b"fatal":
            raise KeyError("a mistake of the broker")
        self.requests.append(frame)
        if frame == b"no answer":
            send_response(None)
        elif self.parks(frame):
            self.parked.append((frame, send_response))
        else:
            send_response([frame])


class ReportingScheduler(VirtualScheduler):
    """Keeps the errors that real time would log."""

    def __init__(self):
        super().__init__()
        self.errors = []

    def report_error(self, message, error):
        self.errors.append(error)


class Wire:
    """A client's side of one connection, and all that is behind it."""

    def __init__(
        self, parks=lambda _: False, max_request_bytes=MAX_REQUEST_BYTES, memory_limit=1 << 40, principal_of=None
    ):
        self.principal_of = principal_of
        self.scheduler = ReportingScheduler()
        self.process = Process("broker", self.scheduler)
        self.broker = Broker(parks)
        self.open = set()
        self.memory = MemoryAccount(memory_limit)
        self.max_request_bytes = max_request_bytes
        self.connection, self.transport = self.connect()

    def connect(self):
        connection = Connection(
            self.process,
            self.broker,
            self.max_request_bytes,
            self.open.add,
            self.open.discard,
            self.memory,
            principal_of=self.principal_of,
        )
        transport = MemoryTransport()
        connection.connection_made(transport)
        return connection, transport

    @property
    def requests(self):
        return list(map(bytes, self.broker.requests))

    def send(self, *requests):
        self.send_bytes(b"".join(map(frame, requests)))

    def send_bytes(self, data, at_most=1 << 20):
        """Read `data` into the connection's buffers, at most so many bytes at a time."""
        while data:
            buffer = self.connection.get_buffer(-1)
            count = min(len(buffer), at_most, len(data))
            buffer[:count] = data[:count]
            self.connection.buffer_updated(count)
            data = data[count:]

    def answer(self):
        """Answer the request that has been parked for longest, and all that follow from it."""
        request, send_response = self.broker.parked.pop(0)
        send_response([request])
        while self.scheduler.step():
            pass


@pytest.fixture(scope="session")
def connect():
    """Return a function that makes a connection between a client and a broker."""
    return Wire
