"""Records of a coordinator, byte for byte as Kafka writes them; mirrors `CoordinatorRecordSerde`.

The first two bytes of a key tell the type of the record, those of a value its version.
"""

from __future__ import annotations

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
"""Every type of key has one version."""
RECORD_OVERHEAD_BYTES: Final = 31
"""Mirrors `DefaultRecord.MAX_RECORD_OVERHEAD`, rounded up by that of the sizes of key and value."""


class CoordinatorRecord(NamedTuple):
    """A key, and the value that it has from now on; None removes it (a tombstone)."""

    key: Message
    value: Message | None
    value_version: int | None = None
    """The version that the value is written in; None means the one that Kafka writes."""


class UnknownRecordError(ValueError):
    """A record of a type that is not known, such as one of a later release; loading skips it."""


class RecordSerde:
    """Writes and reads the records of one internal topic.

    `classes` is the module of the keys and values, `names` tells the type of a record by its number,
    `written_version(value)` the version that Kafka writes a value in.
    """

    def __init__(self, classes: Any, names: Mapping[int, str], written_version: Callable[[Message], int]) -> None:
        self._classes = classes
        self._names = names
        self._written_version = written_version

    def encode_key(self, key: Message) -> bytes:
        """Return the key with its type in front."""
        assert key.API_KEY is not None
        return _VERSION.pack(key.API_KEY) + b"".join(encode(key, KEY_VERSION))

    def encode_value(self, value: Message | None, version: int | None = None) -> bytes | None:
        """Return the value with its version in front; None stays None."""
        if value is None:
            return None
        if version is None:
            version = self._written_version(value)
        return _VERSION.pack(version) + b"".join(encode(value, version))

    def decode_record(self, key: bytes, value: bytes | None) -> CoordinatorRecord:
        """Return the record. Raises UnknownRecordError, or ProtocolError for one that lies."""
        (number,) = _VERSION.unpack_from(key)
        name = self._names.get(number)
        if name is None:
            raise UnknownRecordError(f"a record of type {number}")
        decoded_key = decode(getattr(self._classes, f"{name}Key"), KEY_VERSION, key[2:])
        if value is None:
            return CoordinatorRecord(decoded_key, None)
        (version,) = _VERSION.unpack_from(value)
        decoded_value = decode(getattr(self._classes, f"{name}Value"), version, value[2:])
        return CoordinatorRecord(decoded_key, decoded_value, version)

    def encode_record(self, record: CoordinatorRecord, timestamp_ms: int) -> Record:
        """Return the record as it stands in a batch, with that timestamp (wall clock)."""
        value = self.encode_value(record.value, record.value_version)
        return Record(value, self.encode_key(record.key), timestamp_ms)

    def decode_batch(self, batch: bytes | memoryview) -> Iterator[tuple[int, CoordinatorRecord]]:
        """Yield the batch's records with their offsets, without those that are not known.

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
    """Return at most how many bytes an encoded record takes in a batch."""
    return len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD_BYTES


class RecordClasses:
    """Makes the classes of a module's keys and values from the schemas in `record_schemas.jsonl` beside it."""

    def __init__(self, module: str, loader: Any, directory: str) -> None:
        """`loader` and `directory` are the module's, as for `read_schema_lines`."""
        self._module = module
        self._loader = loader
        self._directory = directory
        self._lines: dict[str, str] = {}

    def _schemas(self) -> dict[str, str]:
        if not self._lines:
            self._lines = read_schema_lines(self._loader, self._directory, "record_schemas.jsonl")
        return self._lines

    def make(self, name: str) -> type[Message]:
        """Return a new class for the schema of that name. Raises AttributeError without one."""
        line = self._schemas().get(name)
        if line is None:
            raise AttributeError(f"module {self._module!r} has no attribute {name!r}")
        return make_message_class(parse_message(loads(line)), self._module)

    def names(self) -> list[str]:
        """Return the names of all schemas."""
        return list(self._schemas())
