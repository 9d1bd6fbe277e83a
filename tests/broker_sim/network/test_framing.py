"""The framer alone: the same frames come out however the bytes come in."""

import struct
import tracemalloc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_sim.network.framing import Framer
from broker_sim.protocol.errors import ProtocolError

MAX_FRAME_BYTES = 200
UNLIMITED = (1 << 31) - 1
FIRST_SCRATCH_BYTES, SCRATCH_BYTES = 2 * 1024, 32 * 1024
MAX_PLACE_BYTES = 2 * 1024 * 1024


def framed(data):
    return struct.pack(">i", len(data)) + data


def receive_data(framer, data):
    framer.receive_data(data)


def read_into_buffers(framer, data):
    while data:
        buffer = framer.get_buffer()
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        framer.buffer_updated(count)
        data = data[count:]


def take_all(framer):
    """Return the frames that are complete, and whether a length was refused."""
    frames = []
    try:
        while (frame := framer.next_frame()) is not None:
            frames.append(frame)
    except ProtocolError:
        return frames, True
    return frames, False


def cut_at_once(stream, max_frame_bytes):
    """Return what `take_all` has to return for a whole stream: the model of the framer."""
    frames = []
    while len(stream) >= 4:
        (size,) = struct.unpack(">i", stream[:4])
        if not 0 < size <= max_frame_bytes:
            return frames, True
        if len(stream) < 4 + size:
            break
        frames.append(stream[4 : 4 + size])
        stream = stream[4 + size :]
    return frames, False


def pieces_of(stream, lengths):
    """Cut the stream into pieces of these lengths, again and again."""
    position, turn = 0, 0
    while position < len(stream):
        length = lengths[turn % len(lengths)]
        yield turn, stream[position : position + length]
        position, turn = position + length, turn + 1


def feed(framer, stream, lengths, ways, takes):
    """Feed the stream in pieces; return as `take_all` does, with the contents of the frames.

    `ways` are the functions that the pieces are fed with, `takes` tells after which of them
    frames are taken, both from the beginning again when they end.
    """
    frames, refused = [], False
    for turn, piece in pieces_of(stream, lengths):
        ways[turn % len(ways)](framer, piece)
        if takes[turn % len(takes)]:
            taken, refused = take_all(framer)
            frames += taken
    taken, refused = take_all(framer)
    return [bytes(frame) for frame in frames + taken], refused


streams = st.one_of(
    st.lists(st.binary(min_size=1, max_size=60).map(framed), max_size=8).map(b"".join),
    st.lists(st.binary(min_size=1, max_size=250).map(framed), max_size=4).map(b"".join),
    st.binary(max_size=100),
    st.lists(st.sampled_from([0, 1, 2, 255]), max_size=60).map(bytes),
)
decisions = st.lists(st.booleans(), min_size=1, max_size=8)


@pytest.mark.parametrize("way", [receive_data, read_into_buffers])
@given(stream=streams, lengths=st.lists(st.integers(1, 40), min_size=1), takes=decisions)
def test_any_stream_in_any_pieces_gives_the_frames_of_the_whole(way, stream, lengths, takes):
    framer = Framer(MAX_FRAME_BYTES)
    assert feed(framer, stream, lengths, [way], takes) == cut_at_once(stream, MAX_FRAME_BYTES)


@pytest.mark.parametrize("way", [receive_data, read_into_buffers])
@given(
    sizes=st.lists(st.sampled_from([1, 100, 32_763, 32_764, 32_765, 100_000]), max_size=4),
    lengths=st.lists(st.integers(500, 120_000), min_size=1),
    takes=decisions,
)
def test_large_frames_in_any_pieces_come_out_as_they_are(way, sizes, lengths, takes):
    frames = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    framer = Framer(UNLIMITED)
    stream = b"".join(map(framed, frames))
    assert feed(framer, stream, lengths, [way], takes) == (frames, False)
    assert framer.buffered_bytes == 0


@pytest.mark.parametrize("length", [1_000, SCRATCH_BYTES, 1 << 20])
@pytest.mark.parametrize("size", [MAX_PLACE_BYTES - 4, MAX_PLACE_BYTES - 3, 3 * MAX_PLACE_BYTES])
def test_frames_around_the_largest_place_come_out_as_they_are(size, length):
    frames = [b"before", (bytes(range(256)) * (size // 256 + 1))[:size], b"after"]
    stream = memoryview(b"".join(map(framed, frames)))
    framer = Framer(UNLIMITED)
    assert feed(framer, stream, [length], [read_into_buffers], [True]) == (frames, False)


@pytest.mark.parametrize("size", [-(1 << 31), -1, 0, MAX_FRAME_BYTES + 1, (1 << 31) - 1])
def test_length_that_is_not_allowed_is_refused_at_every_call(size):
    framer = Framer(MAX_FRAME_BYTES)
    framer.receive_data(framed(b"good") + struct.pack(">i", size))
    assert framer.next_frame() == b"good"
    framer.receive_data(framed(b"after"))
    for _ in range(2):
        with pytest.raises(ProtocolError, match=f"frame of {size} bytes, allowed are 1 to 200"):
            framer.next_frame()


def test_frame_of_the_largest_allowed_size_is_taken():
    framer = Framer(MAX_FRAME_BYTES)
    framer.receive_data(framed(b"x" * MAX_FRAME_BYTES))
    assert framer.next_frame() == b"x" * MAX_FRAME_BYTES


def test_buffered_bytes_are_those_that_are_not_in_a_frame_yet():
    framer = Framer(MAX_FRAME_BYTES)
    framer.receive_data(framed(b"one") + framed(b"two") + b"\0\0")
    assert framer.buffered_bytes == 7 + 7 + 2
    framer.next_frame()
    assert framer.buffered_bytes == 7 + 2
    framer.next_frame()
    framer.receive_data(b"\0")
    assert framer.next_frame() is None
    assert framer.buffered_bytes == 3


def test_received_frame_is_not_copied():
    framer = Framer(MAX_FRAME_BYTES)
    data = framed(b"frame")
    framer.receive_data(data)
    assert framer.next_frame().obj is data


def test_large_frame_is_read_into_its_place_and_not_copied():
    framer = Framer(UNLIMITED)
    read_into_buffers(framer, framed(bytes(500_000))[:20_000])
    assert framer.next_frame() is None
    place = framer.get_buffer()
    assert len(place) == 500_004 - 20_000
    framer.buffer_updated(len(place))
    assert framer.next_frame().obj is place.obj


def test_large_frame_is_complete_with_its_last_byte():
    framer = Framer(UNLIMITED)
    data = framed(b"x" * 100_000)
    read_into_buffers(framer, data[:20_000])
    assert framer.next_frame() is None
    read_into_buffers(framer, data[20_000:-1])
    assert framer.next_frame() is None
    read_into_buffers(framer, data[-1:])
    assert framer.next_frame() == b"x" * 100_000


def test_announced_huge_frame_takes_little_memory_before_it_comes():
    framer = Framer(UNLIMITED)
    read_into_buffers(framer, struct.pack(">i", 100 << 20) + b"x" * 100)
    assert framer.next_frame() is None
    assert len(framer.get_buffer()) == FIRST_SCRATCH_BYTES


def test_connection_has_the_large_buffer_only_once_a_read_has_filled_the_small_one():
    framer = Framer(UNLIMITED)
    stream = struct.pack(">i", FIRST_SCRATCH_BYTES - 5) + b"x" * (FIRST_SCRATCH_BYTES - 5)
    read_into_buffers(framer, stream)
    assert len(framer.get_buffer()) == FIRST_SCRATCH_BYTES
    assert framer.next_frame() == stream[4:]
    read_into_buffers(framer, struct.pack(">i", 3_000) + b"y" * 3_000)
    assert len(framer.get_buffer()) == SCRATCH_BYTES
    assert framer.next_frame() == b"y" * 3_000


def test_huge_frame_in_tiny_pieces_takes_no_more_memory_than_its_bytes():
    framer = Framer(UNLIMITED)
    read_into_buffers(framer, struct.pack(">i", 100 << 20))
    assert framer.next_frame() is None
    tracemalloc.start()
    try:
        for _ in range(50_000):
            framer.get_buffer()[:2] = b"xx"
            framer.buffer_updated(2)
        used_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert framer.buffered_bytes == 4 + 100_000
    assert used_bytes < 200_000


class Received(bytearray):
    """Bytes that a weak reference can point to."""


def test_received_bytes_are_released_with_their_last_frame():
    framer = Framer(MAX_FRAME_BYTES)
    data = Received(framed(b"one") + framed(b"two"))
    released = weakref.ref(data)
    framer.receive_data(data)
    del data
    frames = [framer.next_frame(), framer.next_frame()]
    assert released() is not None
    frames.clear()
    assert released() is None


# -- the end of a connection ----------------------------------------------------------------------


@pytest.mark.parametrize("put", [receive_data, read_into_buffers])
@pytest.mark.parametrize("size", [100, 100_000, 3_000_000])
def test_what_came_of_an_unfinished_frame_goes_with_the_connection(put, size):
    framer = Framer(UNLIMITED)
    put(framer, framed(b"whole") + framed(bytes(size))[:-1])
    assert framer.next_frame() == b"whole"
    assert framer.next_frame() is None
    assert framer.held_bytes > size
    framer.end()
    assert framer.held_bytes == 0
    assert framer.next_frame() is None


@pytest.mark.parametrize("size", [100, 100_000, 3_000_000])
def test_whole_frames_of_a_connection_that_has_ended_can_still_be_taken(size):
    framer = Framer(UNLIMITED)
    framer.receive_data(framed(b"one") + framed(b"two") + framed(bytes(size))[:-1])
    framer.end()
    assert [bytes(framer.next_frame()), bytes(framer.next_frame())] == [b"one", b"two"]
    assert framer.next_frame() is None
    assert framer.held_bytes == 0
