"""Parser for the metrics in a push: OpenTelemetry's `MetricsData` in protobuf.

It reads only what clients send: gauges and sums with one number for each set of attributes.

    MetricsData.resource_metrics 1 > ResourceMetrics.scope_metrics 2 > ScopeMetrics.metrics 2
    Metric.name 1, gauge 5, sum 7 > data_points 1 > attributes 7, as_double 4, as_int 6
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5
_RESOURCE_METRICS, _SCOPE_METRICS, _METRICS, _NAME, _GAUGE, _SUM, _POINTS = 1, 2, 2, 1, 5, 7, 1
_AS_DOUBLE, _AS_INT, _ATTRIBUTES = 4, 6, 7
_MAX_VARINT_BITS: Final = 70


class ClientMetric(NamedTuple):
    """One value of a metric that a client has pushed."""

    name: str
    """OpenTelemetry name, such as `org.apache.kafka.producer.connection.creation.total`."""
    value: float
    attributes: dict[str, str]
    """Attributes of the value, such as `{"node_id": "1"}`."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return self._asdict()


def parse_metrics(payload: bytes) -> list[ClientMetric]:
    """Return the metrics of a push. Raises ValueError if the payload is not a `MetricsData`."""
    data = memoryview(payload)
    return [
        metric
        for resource in _messages(data, _RESOURCE_METRICS)
        for scope in _messages(resource, _SCOPE_METRICS)
        for message in _messages(scope, _METRICS)
        for metric in _metrics(message)
    ]


def _metrics(message: memoryview) -> Iterator[ClientMetric]:
    name = "".join(_text(text) for text in _messages(message, _NAME))
    for kind in (_GAUGE, _SUM):
        for numbers in _messages(message, kind):
            for point in _messages(numbers, _POINTS):
                yield _point(name, point)


def _point(name: str, point: memoryview) -> ClientMetric:
    value = 0.0
    for number, wire_type, content in _fields(point):
        if wire_type == _FIXED64 and number in {_AS_DOUBLE, _AS_INT}:
            (value,) = struct.unpack("<d" if number == _AS_DOUBLE else "<q", content)
    pairs = (list(_fields(attribute)) for attribute in _messages(point, _ATTRIBUTES))
    return ClientMetric(name, value, dict(_attribute(pair) for pair in pairs))


def _attribute(fields: list[tuple[int, int, Any]]) -> tuple[str, str]:
    """Return the key and value of an attribute, the value as text."""
    key = value = ""
    for number, wire_type, content in fields:
        if wire_type != _BYTES:
            raise ValueError("an attribute needs a key and a value")
        if number == 1:
            key = _text(content)
        else:
            for _, kind, item in _fields(content):
                value = _text(item) if kind == _BYTES else str(item)
    return key, value


def _messages(data: memoryview, number: int) -> Iterator[memoryview]:
    """Yield the embedded messages or strings of a field."""
    for field, wire_type, content in _fields(data):
        if field == number:
            if wire_type != _BYTES:
                raise ValueError(f"field {number} has wire type {wire_type}")
            yield content


def _fields(data: memoryview) -> Iterator[tuple[int, int, Any]]:
    """Yield number, wire type and content of each field."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        wire_type = tag & 7
        if wire_type == _VARINT:
            content, position = _varint(data, position)
            yield tag >> 3, wire_type, content
            continue
        if wire_type == _BYTES:
            length, position = _varint(data, position)
        elif wire_type in {_FIXED64, _FIXED32}:
            length = 8 if wire_type == _FIXED64 else 4
        else:
            raise ValueError(f"unknown wire type {wire_type}")
        if position + length > len(data):
            raise ValueError("a field is longer than its message")
        yield tag >> 3, wire_type, data[position : position + length]
        position += length


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    number = shift = 0
    while position < len(data) and shift < _MAX_VARINT_BITS:
        byte = data[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
        shift += 7
    raise ValueError("a varint is truncated")


def _text(content: memoryview) -> str:
    return bytes(content).decode()
