"""One request on a new connection, and its response; for programs without a Kafka client.

It blocks, and the caller chooses the broker, while a client library may ask any broker.
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Final, TypeVar

from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from broker_sim.protocol.message import Message

if TYPE_CHECKING:
    from io import BufferedReader

    from broker_sim.runtime.system import StandardSocket

R = TypeVar("R", bound=Message)

_SIZE: Final = struct.Struct(">i")


def ask(
    servers: str, message: Message, version: int, expected: type[R], *, timeout_s: float, client_id: str = "broker-sim"
) -> R:
    """Send a request to the first of `host:port,...` that can be reached, and return the response.

    Raises OSError if none can be reached within `timeout_s`: a TimeoutError, or the error of the connection.
    """
    assert message.API_KEY is not None
    header = RequestHeader(ApiKey(message.API_KEY), version, 1, client_id)
    with _connected(servers, timeout_s) as connection:
        connection.sendall(b"".join(encode_request(header, message)))
        with connection.makefile("rb") as stream:
            (size,) = _SIZE.unpack(_read(stream, _SIZE.size))
            frame = _read(stream, size)
    _correlation_id, answer = decode_response(message.API_KEY, version, frame)
    assert isinstance(answer, expected)
    return answer


def _connected(servers: str, timeout_s: float) -> StandardSocket:
    wrong: OSError | None = None
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            return socket.create_connection((host.strip("[]"), int(port)), timeout=timeout_s)
        except OSError as error:
            wrong = error
    assert wrong is not None
    raise wrong


def _read(stream: BufferedReader, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise ConnectionResetError("the broker closed the connection instead of answering")
    return data
