"""How a socket fills a `Connection`'s buffers: small frames together, a large one in its place."""

import pytest

from broker_sim.runtime.virtual.scheduler import VirtualScheduler
from broker_sim.network import Connection
from broker_sim.runtime.process import Process


class Socket:
    """Both ends: a transport that can be paused, and the broker's side, which keeps every frame.

    A frame is answered at once, or with ``parks`` when the test says so.
    """

    def __init__(self, max_request_bytes=1 << 22, parks=False):
        self.reading = True
        self.frames = []
        self.parks = parks
        self.answers = []
        self.scheduler = VirtualScheduler()
        self.process = Process("broker", self.scheduler)
        self.connection = Connection(
            self.process, self, max_request_bytes, lambda _: None, lambda _: None
        )
        self.connection.connection_made(self)

    @property
    def contents(self):
        return list(map(bytes, self.frames))

    def handle_frame(self, frame, connection, respond):
        self.frames.append(frame)
        if self.parks:
            self.answers.append(respond)
        else:
            respond([b"done"])

    def answer(self):
        self.answers.pop(0)([b"done"])
        while self.scheduler.step():
            pass

    def read(self, data, at_most=1 << 20):
        """Fill the buffers with ``data``, at most so many bytes at a time."""
        while data:
            buffer = self.connection.get_buffer(-1)
            count = min(len(buffer), at_most, len(data))
            buffer[:count] = data[:count]
            self.connection.buffer_updated(count)
            data = data[count:]

    def get_extra_info(self, name):
        return None

    def writelines(self, chunks):
        pass

    def is_closing(self):
        return False

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True


def frame(data):
    return len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize("at_most", [1_000, 32_768, 40_000, 1 << 20])
@pytest.mark.parametrize("size", [1, 32_763, 32_764, 32_765, 100_000, 2_097_148, 2_097_149])
def test_frames_of_all_sizes_come_out_of_the_socket_as_they_went_in(size, at_most):
    socket = Socket()
    frames = [b"before", (bytes(range(256)) * (size // 256 + 1))[:size], b"after"]
    socket.read(b"".join(map(frame, frames)), at_most)
    assert socket.contents == frames


def test_a_large_frame_is_read_into_its_place_and_not_copied():
    socket = Socket()
    data = frame(bytes(500_000))
    socket.read(data[:20_000])
    place = socket.connection.get_buffer(-1)
    assert len(place) == len(data) - 20_000
    socket.connection.buffer_updated(len(place))
    assert socket.frames[0].obj is place.obj


def test_a_frame_that_is_parked_stays_as_it_was_while_the_next_ones_are_read():
    socket = Socket(parks=True)
    frames = [b"a" * 100_000, b"b" * 10, b"c" * 100_000]
    socket.read(b"".join(map(frame, frames)))
    while socket.answers:
        socket.answer()
    assert socket.contents == frames


@pytest.mark.parametrize("until", [60_000, 200_004])
def test_a_paused_broker_reads_no_more_of_a_large_frame_and_goes_on_with_it_later(until):
    socket = Socket()
    data = frame(b"x" * 200_000)
    socket.read(data[:50_000])
    socket.process.pause()
    socket.read(data[50_000:until])
    assert not socket.reading
    assert socket.frames == []
    socket.process.resume()
    assert socket.reading
    socket.read(data[until:])
    assert socket.contents == [b"x" * 200_000]


def test_who_announces_a_huge_frame_is_given_little_room_before_it_sends_more():
    socket = Socket(max_request_bytes=100 << 20)
    socket.read((100 << 20).to_bytes(4, "big") + b"x" * 100)
    assert len(socket.connection.get_buffer(-1)) < 100_000
