"""Records of a coordinator, byte for byte as Kafka writes them; mirrors `CoordinatorRecordSerde`.

A key begins with two bytes for the record type, a value with two bytes for its version.
"""

from __future__ import annotations

import os
from functools import cache
from json import loads
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker_sim.protocol.codec import decode, encode
from broker_sim.protocol.message import Message, make_message_class
from broker_sim.protocol.records import Record, iter_records
from broker_sim.protocol.schema import parse_message, read_schema_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_VERSION: Final = Struct(">h")
KEY_VERSION: Final = 0
"""Version of all keys."""
RECORD_OVERHEAD_BYTES: Final = 31
"""`DefaultRecord.MAX_RECORD_OVERHEAD` plus the largest varint sizes of the key's and value's lengths."""


class CoordinatorRecord(NamedTuple):
    """A key and its new value; a value of None is a tombstone."""

    key: Message
    value: Message | None
    value_version: int | None = None
    """Version to write the value in; None means Kafka's default."""


class UnknownRecordError(ValueError):
    """The record has an unknown type, for example from a later release; loading skips it."""


class RecordSerde:
    """Encodes and decodes the records of one internal topic.

    `classes` is the module of the key and value classes, `names` maps type numbers to record names, and
    `written_version(value)` returns the version that Kafka writes a value in.
    """

    def __init__(self, classes: Any, names: Mapping[int, str], written_version: Callable[[Message], int]) -> None:
        self._classes = classes
        self._names = names
        self._written_version = written_version

    def encode_key(self, key: Message) -> bytes:
        """Return the encoded key, prefixed with its type."""
        assert key.API_KEY is not None
        return _VERSION.pack(key.API_KEY) + b"".join(encode(key, KEY_VERSION))

    def encode_value(self, value: Message | None, version: int | None = None) -> bytes | None:
        """Return the encoded value, prefixed with its version; None for None."""
        if value is None:
            return None
        if version is None:
            version = self._written_version(value)
        return _VERSION.pack(version) + b"".join(encode(value, version))

    def decode_record(self, key: bytes, value: bytes | None) -> CoordinatorRecord:
        """Return the decoded record. Raises UnknownRecordError, or ProtocolError if it is malformed."""
        (number,) = _VERSION.unpack_from(key)
        name = self._names.get(number)
        if name is None:
            raise UnknownRecordError(f"unknown record type {number}")
        decoded_key = decode(getattr(self._classes, f"{name}Key"), KEY_VERSION, key[2:])
        if value is None:
            return CoordinatorRecord(decoded_key, None)
        (version,) = _VERSION.unpack_from(value)
        decoded_value = decode(getattr(self._classes, f"{name}Value"), version, value[2:])
        return CoordinatorRecord(decoded_key, decoded_value, version)

    def encode_record(self, record: CoordinatorRecord, timestamp_ms: int) -> Record:
        """Return the encoded record; `timestamp_ms` is wall-clock time."""
        value = self.encode_value(record.value, record.value_version)
        return Record(value, self.encode_key(record.key), timestamp_ms)

    def decode_batch(self, batch: bytes | memoryview) -> Iterator[tuple[int, CoordinatorRecord]]:
        """Yield the batch's records with their offsets; records of unknown types are skipped.

        Raises `ApiError` and ProtocolError as the decoders of batches and messages do.
        """
        for record in iter_records(batch):
            if record.key is None:
                continue
            try:
                yield record.offset, self.decode_record(record.key, record.value)
            except UnknownRecordError:
                continue


def size_in_batch(record: Record) -> int:
    """Return an upper bound for the size of an encoded record in a batch, in bytes."""
    return len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD_BYTES


def record_classes(module: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a module of key and value classes, each created on first use.

    `module` are the module's globals; the schemas are in the `record_schemas.jsonl` beside it. `__getattr__` raises
    AttributeError for an unknown name.
    """
    module_name: str = module["__name__"]

    @cache
    def schemas() -> dict[str, str]:
        directory = os.path.dirname(module["__file__"])  # noqa: PTH120 - see `read_schema_lines`
        return read_schema_lines(module["__spec__"].loader, directory, "record_schemas.jsonl")

    def make(name: str) -> Any:
        line = schemas().get(name)
        if line is None:
            raise AttributeError(f"module {module_name!r} has no attribute {name!r}")
        return module.setdefault(name, make_message_class(parse_message(loads(line)), module_name))

    return make, lambda: list(schemas())
