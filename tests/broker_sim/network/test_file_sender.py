"""Parts of files on their way into a socket; the test says when the loop finds room in it."""

import asyncio
import errno
import os
import socket

import pytest

from broker_sim.network.file_sender import MAX_BYTES_AT_ONCE, FileSender
from broker_sim.protocol.file_view import FileView, OpenFile
from broker_sim.runtime.process import Process
from broker_sim.runtime.system import open_descriptor
from broker_sim.runtime.virtual.run import VirtualScheduler

MB = 1 << 20
CONTENT = bytes(range(251)) * (8 * MB // 251 + 1)


class Loop:
    """Knows who waits for room in a socket, and tells them when the test says so."""

    def __init__(self):
        self.writers = {}

    def add_writer(self, descriptor, callback):
        assert descriptor not in self.writers
        self.writers[descriptor] = callback

    def remove_writer(self, descriptor):
        del self.writers[descriptor]

    def run(self):
        for callback in list(self.writers.values()):
            callback()


class Transport(asyncio.Transport):
    """One end of a pair of sockets, and what it has in its buffer."""

    def __init__(self, to, **extra):
        super().__init__(extra={"socket": to} | extra)
        self.buffered_bytes = 0
        self.limits = None

    def get_write_buffer_size(self):
        return self.buffered_bytes

    def set_write_buffer_limits(self, high=None, low=None):
        self.limits = high


class Way:
    """A sender with both of its ends in the test."""

    def __init__(self, path):
        self.ours, self.client = socket.socketpair()
        self.ours.setblocking(False)
        self.client.setblocking(False)
        self.path = path
        path.write_bytes(CONTENT)
        self.loop = Loop()
        self.process = Process("broker-1", VirtualScheduler())
        self.transport = Transport(self.ours)
        self.progress = 0
        self.done = 0
        self.failures = []
        self.sender = FileSender(
            self.transport,
            self.loop,
            self.process,
            on_progress=self._on_progress,
            on_done=self._on_done,
            on_failed=self.failures.append,
        )

    def _on_progress(self):
        self.progress += 1

    def _on_done(self):
        self.done += 1

    def view(self, position, size_bytes):
        return FileView(OpenFile(open_descriptor(str(self.path), os.O_RDONLY)), position, size_bytes)

    def part(self, position, size_bytes):
        return CONTENT[position : position + size_bytes]

    def receive(self):
        """Return what is in the socket now."""
        found = bytearray()
        try:
            while data := self.client.recv(MB):
                found += data
        except BlockingIOError:
            return bytes(found)
        return bytes(found)

    def receive_all(self):
        """Return all that comes while the loop goes on."""
        found = self.receive()
        while self.sender.is_busy:
            before = len(found)
            self.loop.run()
            found += self.receive()
            assert len(found) > before or not self.sender.is_busy
        return found + self.receive()

    def close(self):
        self.sender.abort()
        self.ours.close()
        self.client.close()


@pytest.fixture
def way(tmp_path):
    made = Way(tmp_path / "file")
    yield made
    made.close()


@pytest.mark.parametrize("size", [1, 4_096, 5 * MB])
def test_pieces_and_parts_of_files_arrive_in_order(way, size):
    way.sender.send([b"first", way.view(7, size), b"between", way.view(0, 3), b"last"])
    way.sender.send([b"second", way.view(size, 100)])
    expected = b"first" + way.part(7, size) + b"between" + way.part(0, 3) + b"last"
    assert way.receive_all() == expected + b"second" + way.part(size, 100)
    assert way.done
    assert not way.loop.writers
    way.sender.send([b"later", way.view(1, size)])
    assert way.receive_all() == b"later" + way.part(1, size)
    assert not way.failures


def test_full_socket_is_awaited_without_polling(way):
    way.sender.send([b"head", way.view(0, 5 * MB)])
    assert way.sender.is_busy
    assert len(way.loop.writers) == 1
    progress = way.progress
    way.loop.run()
    assert way.progress == progress
    assert way.receive_all() == b"head" + way.part(0, 5 * MB)
    assert way.done == 1


def test_one_turn_sends_no_more_than_others_can_wait_for(way, monkeypatch):
    asked = []

    def endless(to, descriptor, position, count):
        asked.append((position, count))
        return count

    monkeypatch.setattr(os, "sendfile", endless)
    way.sender.send([way.view(0, 6 * MB)])
    assert asked == [(0, MAX_BYTES_AT_ONCE)]
    way.loop.run()
    assert asked[1:] == [(MAX_BYTES_AT_ONCE, 6 * MB - MAX_BYTES_AT_ONCE)]
    assert way.done == 1


def test_what_the_transport_has_goes_first(way):
    way.transport.buffered_bytes = 3
    way.sender.send([b"head", way.view(0, 10)])
    way.sender.transport_has_room()  # it has some, but is not empty
    assert way.receive() == b""
    assert way.transport.limits == 0
    way.ours.send(b"old")
    way.transport.buffered_bytes = 0
    way.sender.transport_has_room()
    assert way.receive() == b"old" + b"head" + way.part(0, 10)
    assert way.transport.limits is None
    assert way.done == 1


def test_cut_file_ends_the_connection_with_the_missing_size(way):
    way.sender.send([b"head", way.view(0, 8 * MB)])
    os.truncate(way.path, 100)
    way.receive()
    way.loop.run()
    (reason,) = way.failures
    sent = int(reason.split("ends ")[1].split()[0])
    assert 0 < sent < 8 * MB
    assert "before what was promised to the client" in reason
    assert not way.sender.is_busy
    assert not way.loop.writers


def test_a_client_that_goes_away_ends_the_connection_without_a_reason(way):
    way.sender.send([b"head", way.view(0, 5 * MB)])
    way.client.close()
    way.loop.run()
    assert way.failures == [""]
    assert not way.loop.writers


def test_an_unreadable_file_ends_the_connection(way, monkeypatch):
    def fails(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "sendfile", fails)
    way.sender.send([b"head", way.view(0, 10)])
    assert way.failures == ["a response could not be sent: Input/output error"]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
@pytest.mark.parametrize("works_for", [0, 1])
def test_where_the_file_system_knows_no_sendfile_the_bytes_are_read(way, monkeypatch, number, works_for):
    real, calls = os.sendfile, []

    def knows_not(*arguments):
        calls.append(arguments)
        if len(calls) > works_for:
            raise OSError(number, "not here")
        return real(*arguments[:-1], 1_000)

    monkeypatch.setattr(os, "sendfile", knows_not)
    way.sender.send([b"head", way.view(3, 5 * MB), b"tail"])
    assert way.receive_all() == b"head" + way.part(3, 5 * MB) + b"tail"
    assert not way.failures


def test_a_short_file_is_found_where_bytes_are_read_too(way, monkeypatch):
    def knows_not(*_):
        raise OSError(errno.EINVAL, "not here")

    monkeypatch.setattr(os, "sendfile", knows_not)
    os.truncate(way.path, 6)
    way.sender.send([b"head", way.view(0, 10)])
    (reason,) = way.failures
    assert "ends 4 bytes before" in reason


def test_a_stopped_process_sends_nothing_and_the_loop_has_peace(way):
    way.sender.send([b"head", way.view(0, 5 * MB)])
    way.process.pause()
    found = way.receive()
    way.loop.run()
    assert not way.loop.writers
    assert way.receive() == b""
    way.process.resume()
    assert found + way.receive_all() == b"head" + way.part(0, 5 * MB)
    assert way.done == 1


def test_held_data_continues_where_it_stopped(way):
    way.sender.send([b"head", way.view(0, 5 * MB)])
    way.sender.hold()
    found = way.receive()
    assert not way.loop.writers
    way.sender.send([b"behind"])
    assert way.receive() == b""
    way.sender.release()
    assert found + way.receive_all() == b"head" + way.part(0, 5 * MB) + b"behind"


def test_held_before_the_transport_is_empty(way):
    way.transport.buffered_bytes = 3
    way.sender.send([way.view(0, 10)])
    way.sender.hold()
    way.transport.buffered_bytes = 0
    way.sender.transport_has_room()
    assert way.receive() == b""
    way.sender.release()
    assert way.receive() == way.part(0, 10)


def test_an_aborted_sender_gives_file_and_socket_back(way):
    view = way.view(0, 5 * MB)
    descriptor = view.descriptor
    way.sender.send([b"head", view])
    del view
    os.fstat(descriptor)
    way.sender.abort()
    assert not way.loop.writers
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    way.ours.close()
    way.receive()
    assert way.client.recv(1) == b""


def test_a_file_that_is_sent_is_closed(way):
    view = way.view(0, 10)
    descriptor = view.descriptor
    way.sender.send([view])
    del view
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


@pytest.mark.parametrize("extra", [{"socket": None}, {"sslcontext": object()}])
def test_only_a_plain_socket_takes_files(way, extra):
    assert FileSender.can_send_on(way.transport)
    assert not FileSender.can_send_on(Transport(way.ours, **extra))
