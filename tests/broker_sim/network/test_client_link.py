"""The way between client and broker, on a transport that only remembers."""

import os
import weakref

import pytest

from broker_sim.network.client_link import ClientLink
from broker_sim.protocol.file_view import FileView, OpenFile
from broker_sim.runtime.system import open_descriptor

SEND_BUFFER_BYTES = 100 * 1024


@pytest.fixture
def transport(connect):
    return connect().transport


@pytest.fixture
def link(transport):
    made = ClientLink()
    made.attach(transport)
    return made


def test_held_link_sends_in_order_when_it_is_released(link, transport):
    link.write([b"one"])
    link.hold()
    link.write([b"two", b"and"])
    link.hold()
    link.write([b"three"])
    assert transport.written == [b"one"]
    link.release()
    link.write([b"four"])
    assert transport.written == [b"one", b"twoandthree", b"four"]


def test_held_link_is_full_when_it_holds_a_send_buffer(link):
    link.write([b"x" * SEND_BUFFER_BYTES])
    link.hold()
    link.write([b"x" * (SEND_BUFFER_BYTES - 1)])
    assert not link.is_full
    link.write([b"x"])
    assert link.is_full
    link.release()
    assert not link.is_full


def test_link_is_full_while_its_transport_is(link):
    link.set_transport_full(is_full=True)
    link.hold()
    link.release()
    assert link.is_full
    link.set_transport_full(is_full=False)
    assert not link.is_full


def test_held_link_is_not_read(link, transport):
    link.hold()
    assert not transport.reading
    link.set_reading(reads=True)
    assert not transport.reading
    link.release()
    link.set_reading(reads=True)
    assert transport.reading


@pytest.mark.parametrize("is_paused", [True, False], ids=["asyncio before 3.11.4", "uvloop"])
def test_reading_can_be_stopped_where_the_transport_reads_on(link, transport, is_paused):
    """Loops read from a transport that was paused in `connection_made`; asyncio's takes itself for paused."""
    link.hold()
    transport.reading, transport.is_paused = True, is_paused
    link.stop_reading()
    assert not transport.reading


@pytest.mark.parametrize("closing", [True, False])
def test_link_to_a_client_that_has_gone_writes_and_reads_nothing(link, transport, closing):
    transport.closing = closing
    if not closing:
        link.detach()
    link.write([b"one"])
    link.set_reading(reads=False)
    link.hold()
    link.write([b"two"])
    link.release()
    assert transport.written == []
    assert transport.reading


class Files:
    """A sender of files that is busy as long as the test wants it."""

    def __init__(self):
        self.is_busy = False
        self.sent = []

    def send(self, chunks):
        self.is_busy = True
        self.sent += chunks

    def abort(self):
        self.is_busy = False


def test_link_leaves_no_work_to_the_garbage_collector(link, transport):
    files = Files()
    link.attach(transport, files)
    ended = weakref.ref(files)
    del files
    link.detach()
    assert ended() is None


def test_everything_behind_a_file_goes_its_way_until_it_is_sent(transport, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    view = FileView(OpenFile(open_descriptor(str(path), os.O_RDONLY)), 0, 7)
    link, files = ClientLink(), Files()
    link.attach(transport, files)
    link.write([b"one"])
    link.write([b"two", view])
    assert link.is_full
    link.write([b"three"])
    assert files.sent == [b"two", view, b"three"]
    files.is_busy = False
    link.write([b"four"])
    assert transport.written == [b"one", b"four"]
