"""The parts of the wire format that generated code calls by name.

Mirrors Kafka's `ByteUtils` (unsigned varints) and the variable-length parts of
`Readable` and `Writable`. All integers are big-endian. In flexible versions a length or
count n is written as the varint n + 1, and 0 is null (KIP-482).
"""

from collections.abc import Callable, Sequence
from functools import cache
from struct import Struct

from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.file_view import FileView
from broker_sim.protocol.message import BytesLike, Chunk, Records

BY_REFERENCE_BYTES = 4096
"""Records and bytes of at least this size become separate chunks without a copy."""

_MAX_STRING_BYTES = 32767
_MAX_VARINT = 0x7FFF_FFFF
MAX_ELEMENTS = 1_000_000
"""Maximum number of array elements that brokers from 4.4 on accept."""
MAX_TAGGED_FIELDS = 10_000
"""Maximum number of tagged fields of a struct that brokers from 4.4 on accept."""
_MEMORISED_LENGTHS = 1 << 14
_BYTES_TYPES = (memoryview, bytes, bytearray)
_BYTES_TYPES_AND_VIEWS = (*_BYTES_TYPES, FileView)
_PIECES_TYPES = (list, tuple)
_ONLY_BYTES = frozenset({bytes, bytearray})


def read_varint(buffer: BytesLike, offset: int) -> tuple[int, int]:
    """Return the varint at `offset`, as an int32 like Kafka, and the offset after it."""
    byte = buffer[offset]
    if byte < 0x80:
        return byte, offset + 1
    return finish_varint(buffer, offset + 1, byte)


def finish_varint(buffer: BytesLike, offset: int, first: int) -> tuple[int, int]:
    """Return the same as `read_varint` once `first` has been read, a byte with its high bit set."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFF_FFFF
            return (value if value <= _MAX_VARINT else value - (1 << 32)), offset
    raise ProtocolError("a varint has at most five bytes")


def finish_length(buffer: BytesLike, offset: int, first: int) -> tuple[int, int]:
    """Return the same as `finish_varint` for a length plus one; values up to 0 stand for null."""
    length, offset = finish_varint(buffer, offset, first)
    if length < -_MAX_VARINT:
        raise ProtocolError(f"a length of {_MAX_VARINT} bytes")  # an int32 less one wraps around
    return length, offset


def finish_string_length(buffer: BytesLike, offset: int, first: int) -> tuple[int, int]:
    """Return the same as `finish_length` for a string, which has at most 32767 bytes."""
    length, offset = finish_length(buffer, offset, first)
    if length - 1 > _MAX_STRING_BYTES:
        raise ProtocolError(f"a string of {length - 1} bytes is longer than {_MAX_STRING_BYTES}")
    return length, offset


def finish_array_length(buffer: BytesLike, offset: int, first: int) -> tuple[int, int]:
    """Return the same as `finish_length` for an array of at most `MAX_ELEMENTS`."""
    length, offset = finish_length(buffer, offset, first)
    if length - 1 > MAX_ELEMENTS:
        raise ProtocolError(f"an array of {length - 1} elements has more than {MAX_ELEMENTS}")
    return length, offset


def finish_tag_count(buffer: BytesLike, offset: int, first: int) -> tuple[int, int]:
    """Return the same as `finish_varint` for a number of tagged fields, at most `MAX_TAGGED_FIELDS`."""
    count, offset = finish_varint(buffer, offset, first)
    if not 0 <= count <= MAX_TAGGED_FIELDS:
        raise ProtocolError(f"{count} tagged fields are not between 0 and {MAX_TAGGED_FIELDS}")
    return count, offset


def skip_few_tagged_fields(buffer: BytesLike, offset: int, count: int) -> int:
    """Return the same as `skip_tagged_fields` for at most `MAX_TAGGED_FIELDS`."""
    if count > 0x7F:
        finish_tag_count(buffer, offset, count)
    return skip_tagged_fields(buffer, offset, count)


def skip_tagged_fields(buffer: BytesLike, offset: int, count: int) -> int:
    """Return the offset after the tagged fields; `count` is the first byte of their count."""
    if count > 0x7F:
        count, offset = finish_varint(buffer, offset, count)
    for _ in range(count):
        _, offset = read_varint(buffer, offset)
        size, offset = read_varint(buffer, offset)
        offset = skip_tagged_field(buffer, offset, size)
    return offset


def skip_tagged_field(buffer: BytesLike, offset: int, size: int) -> int:
    """Return the offset after one unknown tagged field."""
    if not 0 <= size <= len(buffer) - offset:
        raise ProtocolError(f"tagged field: {size} bytes announced, {len(buffer) - offset} left")
    return offset + size


def varint(value: int) -> bytes:
    """Return `value` as an unsigned varint of one to five bytes."""
    if not 0 <= value <= _MAX_VARINT:
        raise ProtocolError(f"{value} does not fit into a varint of 31 bits")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


class _Varints(dict[int, bytes]):
    """`varint` as a table: `varints[n]`, faster than a call."""

    def __missing__(self, value: int) -> bytes:
        encoded = varint(value)
        if value < _MEMORISED_LENGTHS:
            self[value] = encoded
        return encoded


class _StringLengths(_Varints):
    """Varints of string lengths plus one."""

    def __missing__(self, value: int) -> bytes:
        if value - 1 > _MAX_STRING_BYTES:
            raise ProtocolError(f"a string of {value - 1} bytes is longer than {_MAX_STRING_BYTES}")
        return super().__missing__(value)


varints = _Varints()
string_lengths = _StringLengths()


class ArrayPackers(dict[int, Callable[..., bytes]]):
    """Packers of arrays of one fixed format, by count: `packers[3](3, 7, 8, 9)`.

    The first argument is the number to write as the count: in flexible versions a varint of
    count + 1, otherwise an int32.
    """

    def __init__(self, element_format: str, flexible: bool) -> None:
        super().__init__()
        self._element_format = element_format
        self._flexible = flexible

    def __missing__(self, count: int) -> Callable[..., bytes]:
        if self._flexible and count >= 0x7F:
            elements = Struct(f">{count}{self._element_format}").pack
            return lambda written, *values: varint(written) + elements(*values)
        count_format = "B" if self._flexible else "i"
        packer = Struct(f">{count_format}{count}{self._element_format}").pack
        if count < 0x7F:
            self[count] = packer
        return packer


@cache
def array_packers(element_format: str, flexible: bool) -> ArrayPackers:
    """Return the packers, shared by all generated functions."""
    return ArrayPackers(element_format, flexible)


def join_uuids(uuids: Sequence[bytes]) -> bytes:
    """Return the elements of an array of UUIDs."""
    return b"".join(map(checked_uuid, uuids))


def checked_uuid(uuid: bytes) -> bytes:
    """Return `uuid` when it has 16 bytes."""
    if len(uuid) != 16:
        raise ProtocolError(f"a UUID has 16 bytes, not {len(uuid)}")
    return uuid


def size_of(value: Records) -> int:
    """Return the number of bytes of a bytes-like value, of a list of them, or of a part of a file."""
    if isinstance(value, _BYTES_TYPES):
        size = len(value)
        if isinstance(value, memoryview) and value.nbytes != size:
            raise ProtocolError("a memoryview of records or bytes has items of one byte")
        return size
    if isinstance(value, _PIECES_TYPES):
        # A fetch may return thousands of small batches: len() is enough for pieces of bytes.
        return sum(map(len if _ONLY_BYTES.issuperset(map(type, value)) else size_of, value))
    if isinstance(value, FileView):
        return len(value)
    raise ProtocolError(f"{type(value).__name__} is not bytes-like")


def append_bytes(out: list[BytesLike], chunks: list[Chunk], value: Records | None) -> None:
    """Append `value` to the small pieces `out`; if it is large or in a file, make it a chunk after them."""
    if isinstance(value, _BYTES_TYPES_AND_VIEWS):
        if not isinstance(value, FileView) and len(value) < BY_REFERENCE_BYTES:
            out.append(value)
            return
        if out:
            chunks.append(b"".join(out))
            out.clear()
        chunks.append(value)
    elif value and max(map(len, value)) < BY_REFERENCE_BYTES:
        out += value
    elif value is not None:
        for piece in value:
            append_bytes(out, chunks, piece)
