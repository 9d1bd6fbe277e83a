"""Which brokers one broker knows, asked on a separate connection.

A client library may ask any broker; here it matters which broker answers.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["listed_brokers"]

METADATA_VERSION = 12
SIZE_BYTES = 4


def listed_brokers(address: str, *, timeout_s: float) -> Mapping[int, str]:
    """Return number and address of every broker that is not fenced, as the one asked knows it.

    Raises `OSError` when it does not answer within `timeout_s`.
    """
    host, _, port = address.rpartition(":")
    header = RequestHeader(ApiKey.METADATA, METADATA_VERSION, 1, "broker-sim-reference")
    request = messages.MetadataRequest(topics=[], allow_auto_topic_creation=False)
    with socket.create_connection((host, int(port)), timeout=timeout_s) as connection:
        connection.sendall(b"".join(encode_request(header, request)))
        size = int.from_bytes(_receive(connection, SIZE_BYTES), "big")
        _, response = decode_response(ApiKey.METADATA, METADATA_VERSION, _receive(connection, size))
    assert isinstance(response, messages.MetadataResponse)
    return {broker.node_id: f"{broker.host}:{broker.port}" for broker in response.brokers}


def _receive(connection: socket.socket, count: int) -> bytes:
    received = bytearray()
    while len(received) < count:
        chunk = connection.recv(count - len(received))
        if not chunk:
            raise ConnectionResetError("the broker closed the connection instead of answering")
        received += chunk
    return bytes(received)
