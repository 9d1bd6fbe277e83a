"""One TCP connection to a broker, real or simulated, based on our own codec: exact fields, exact times.

Requests may be pipelined. A thread of the connection reads the responses and takes the time of each at its
arrival, independently of what the scenario does at that time.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from broker_sim.protocol.message import Message
from broker_sim_integration.clients.stopwatch import now_ms

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_MS = 60_000.0
CLIENT_ID = "broker-sim-compare"

_SIZE = struct.Struct(">i")

R = TypeVar("R", bound=Message)


class ConnectionEndedError(ConnectionError):
    """The broker closed the connection before the response, `elapsed_ms` after the request."""

    def __init__(self, text: str, elapsed_ms: float, answered_ms: float) -> None:
        super().__init__(text)
        self.elapsed_ms = elapsed_ms
        self.answered_ms = answered_ms


class NoAnswerError(TimeoutError):
    """The broker has sent no response for longer than any scenario waits."""


@dataclass(frozen=True, slots=True)
class Reply(Generic[R]):
    """A response, and the times (`now_ms`) at which the request was sent and the response arrived."""

    message: R
    sent_ms: float
    answered_ms: float

    @property
    def elapsed_ms(self) -> float:
        """Time in ms from the request to the response."""
        return self.answered_ms - self.sent_ms


class Pending(Generic[R]):
    """A request that waits for its response. Any thread may use it."""

    def __init__(self, api_key: int, version: int, expected: type[R]) -> None:
        self.sent_ms = now_ms()
        """Time just before the request's bytes are written."""
        self._api_key = api_key
        self._version = version
        self._expected = expected
        self._arrived = threading.Event()
        self._answered_ms = 0.0
        self._frame: bytes | None = None

    @property
    def answered(self) -> bool:
        """Whether the response, or the end of the connection, has arrived."""
        return self._arrived.is_set()

    @property
    def answered_ms(self) -> float:
        """Time at which that arrived; only valid once `answered` is true."""
        assert self.answered
        return self._answered_ms

    @property
    def elapsed_ms(self) -> float:
        """Time in ms from the request until that arrived; only valid once `answered` is true."""
        assert self.answered
        return self._answered_ms - self.sent_ms

    def arrive(self, frame: bytes | None, at_ms: float) -> None:
        """Store the response's bytes, or None for the end of the connection, and wake the waiting threads."""
        self._frame = frame
        self._answered_ms = at_ms
        self._arrived.set()

    def result(self, timeout_ms: float = ANSWER_TIMEOUT_MS) -> Reply[R]:
        """Wait for the response. Raise `ConnectionEndedError` or `NoAnswerError`."""
        frame = self.frame(timeout_ms)
        _correlation_id, message = decode_response(self._api_key, self._version, frame)
        assert isinstance(message, self._expected)
        return Reply(message, self.sent_ms, self._answered_ms)

    def frame(self, timeout_ms: float = ANSWER_TIMEOUT_MS) -> bytes:
        """Wait for the response's bytes; errors as in `result`."""
        if not self._arrived.wait(timeout_ms / 1000):
            raise NoAnswerError(f"no answer to {self._name()} within {timeout_ms / 1000:g} s")
        if self._frame is None:
            elapsed_ms = self._answered_ms - self.sent_ms
            text = f"closed instead of answering {self._name()}"
            raise ConnectionEndedError(text, elapsed_ms, self._answered_ms)
        return self._frame

    def _name(self) -> str:
        known = self._api_key in set(ApiKey)
        return f"{ApiKey(self._api_key).name if known else self._api_key} v{self._version}"


class RawConnection:
    """A connection to one broker; a context manager. One thread sends, any thread may wait."""

    def __init__(self, host: str, port: int, *, client_id: str = CLIENT_ID) -> None:
        self._client_id = client_id
        self._socket = socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S)
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._next_correlation_id = 0
        self._lock = threading.Lock()
        self._awaited: deque[Pending[Message]] = deque()
        self._ended = threading.Event()
        self._reader = threading.Thread(target=self._read_answers, name=f"raw-{host}:{port}", daemon=True)
        self._reader.start()

    @property
    def ended(self) -> threading.Event:
        """Set when either side has closed the connection."""
        return self._ended

    def send(self, message: Message, version: int, expected: type[R]) -> Pending[R]:
        """Send a request without waiting; the broker responds in the order of the requests.

        Raise ProtocolError if `message` does not fit `version`, or OSError.
        """
        assert message.API_KEY is not None
        frame = self._encode(message, message.API_KEY, version)
        return self.send_frame(frame, api_key=message.API_KEY, version=version, expected=expected)

    def send_unanswered(self, message: Message, version: int) -> None:
        """Send a request without a response: a produce with acks=0."""
        assert message.API_KEY is not None
        self._socket.sendall(self._encode(message, message.API_KEY, version))

    def send_frame(self, frame: bytes, *, api_key: int, version: int, expected: type[R]) -> Pending[R]:
        """Send bytes unchanged, size included; the response is decoded as one of `api_key`."""
        pending = Pending(api_key, version, expected)
        with self._lock:
            if self._ended.is_set():
                pending.arrive(None, now_ms())
                return pending
            self._awaited.append(pending)  # type: ignore[arg-type]  # a queue of mixed responses
        # As late as possible: a stall of this process before this must not count as the broker's time.
        pending.sent_ms = now_ms()
        try:
            self._socket.sendall(frame)
        except OSError:
            self._end()
        return pending

    def request(
        self, message: Message, version: int, expected: type[R], timeout_ms: float = ANSWER_TIMEOUT_MS
    ) -> Reply[R]:
        """Send a request and wait for its response."""
        return self.send(message, version, expected).result(timeout_ms)

    def close(self) -> None:
        """Close at once; requests without a response raise `ConnectionEndedError`."""
        self._end()
        if threading.current_thread() is not self._reader:
            self._reader.join()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _encode(self, message: Message, api_key: int, version: int) -> bytes:
        header = RequestHeader(ApiKey(api_key), version, self._next_correlation_id, self._client_id)
        self._next_correlation_id += 1
        return b"".join(encode_request(header, message))

    def _read_answers(self) -> None:
        while (frame := self._read_frame()) is not None:
            arrived_ms = now_ms()
            with self._lock:
                pending = self._awaited.popleft() if self._awaited else None
            if pending is not None:
                pending.arrive(frame, arrived_ms)
        self._end()

    def _read_frame(self) -> bytes | None:
        size = self._read(_SIZE.size)
        return None if size is None else self._read(_SIZE.unpack(size)[0])

    def _read(self, size: int) -> bytes | None:
        chunks = []
        while size > 0:
            try:
                chunk = self._socket.recv(size)
            except OSError:
                return None
            if not chunk:
                return None
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def _end(self) -> None:
        ended_ms = now_ms()
        with self._lock:
            self._ended.set()
            left = list(self._awaited)
            self._awaited.clear()
        with suppress(OSError):  # the broker has closed it already
            self._socket.shutdown(socket.SHUT_RDWR)
        for pending in left:
            pending.arrive(None, ended_ms)
