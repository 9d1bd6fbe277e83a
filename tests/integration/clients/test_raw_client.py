"""The raw connection against a scripted peer on a real socket."""

import socket
import struct
import threading

import pytest
from broker_sim_integration.clients import raw_client
from broker_sim_integration.clients.raw_client import ConnectionEndedError, NoAnswerError, RawConnection
from broker_sim_integration.clients.stopwatch import now_ms

from broker_sim.protocol import messages
from broker_sim.protocol.headers import decode_request_header, encode_response

API_VERSIONS = 18
PATIENCE_S = 60


class Peer:
    """Accepts one connection and answers only when a test calls `answer`."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self._accepted = threading.Event()
        self.correlation_ids = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        self._connection, _ = self._listener.accept()
        self._accepted.set()

    def read(self) -> bytes:
        assert self._accepted.wait(PATIENCE_S)
        (size,) = struct.unpack(">i", self._connection.recv(4, socket.MSG_WAITALL))
        frame = self._connection.recv(size, socket.MSG_WAITALL)
        self.correlation_ids.append(decode_request_header(frame)[0].correlation_id)
        return frame

    def answer(self, throttle_time_ms: int) -> None:
        message = messages.ApiVersionsResponse(throttle_time_ms=throttle_time_ms)
        correlation_id = self.correlation_ids.pop(0)
        self._connection.sendall(b"".join(encode_response(API_VERSIONS, 3, correlation_id, message)))

    def close(self) -> None:
        if self._accepted.wait(PATIENCE_S):
            self._connection.close()
        self._listener.close()


@pytest.fixture
def peer():
    peer = Peer()
    yield peer
    peer.close()


def send(connection):
    request = messages.ApiVersionsRequest("client", "1")
    return connection.send(request, 3, messages.ApiVersionsResponse)


def test_pipelined_requests_get_the_answers_in_order(peer):
    with RawConnection(*peer.address) as connection:
        pending = [send(connection) for _ in range(3)]
        for number in range(3):
            peer.read()
            peer.answer(number)
        assert [waiting.result().message.throttle_time_ms for waiting in pending] == [0, 1, 2]


def test_correlation_ids_count_up(peer):
    with RawConnection(*peer.address) as connection:
        for _ in range(3):
            send(connection)
            peer.read()
    assert peer.correlation_ids == [0, 1, 2]


def test_elapsed_time_ends_when_the_response_arrives(peer):
    with RawConnection(*peer.address) as connection:
        pending = send(connection)
        peer.read()
        peer.answer(0)
        first = pending.result()
        threading.Event().wait(0.05)
        assert pending.result().elapsed_ms == first.elapsed_ms


def test_a_request_is_sent_when_its_bytes_are_written(peer, monkeypatch):
    """Not before: that a connection waits for its lock is no time of the broker's."""
    begun = threading.Event()
    sent = []

    def begun_at():
        begun.set()
        return now_ms()

    monkeypatch.setattr(raw_client, "now_ms", begun_at)
    with RawConnection(*peer.address) as connection:
        sender = threading.Thread(target=lambda: sent.append(send(connection)))
        with connection._lock:
            sender.start()
            assert begun.wait(PATIENCE_S)
            held_until_ms = now_ms()
        sender.join()
        assert sent[0].sent_ms >= held_until_ms


def test_connection_closed_by_the_broker_fails_all_pending_requests(peer):
    with RawConnection(*peer.address) as connection:
        pending = [send(connection), send(connection)]
        peer.read()
        peer.close()
        for waiting in pending:
            with pytest.raises(ConnectionEndedError, match="instead of answering API_VERSIONS v3"):
                waiting.result()
        with pytest.raises(ConnectionEndedError):
            send(connection).result()


def test_missing_response_is_an_error_after_the_timeout(peer):
    expected = pytest.raises(NoAnswerError, match="no answer to API_VERSIONS v3 within")
    with RawConnection(*peer.address) as connection, expected:
        send(connection).result(20)


def test_closing_fails_pending_requests(peer):
    connection = RawConnection(*peer.address)
    pending = send(connection)
    connection.close()
    with pytest.raises(ConnectionEndedError):
        pending.result()
