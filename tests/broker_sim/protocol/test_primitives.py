import pytest

from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.primitives import (
    BY_REFERENCE_BYTES,
    ArrayPackers,
    append_bytes,
    checked_uuid,
    finish_length,
    finish_string_length,
    join_uuids,
    read_varint,
    size_of,
    skip_tagged_fields,
    string_lengths,
    varint,
    varints,
)

VARINTS = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2097151, "ffff7f"),
    (2097152, "80808001"),
    (268435455, "ffffff7f"),
    (268435456, "8080808001"),
    (2147483647, "ffffffff07"),
]


@pytest.mark.parametrize(("value", "encoded"), VARINTS)
def test_varint_has_seven_bits_per_byte_lowest_first(value, encoded):
    assert varint(value).hex() == encoded
    assert varints[value].hex() == encoded
    assert read_varint(bytes.fromhex(f"ff{encoded}ff"), 1) == (value, 1 + len(encoded) // 2)


def test_varint_longer_than_needed_is_read():
    assert read_varint(b"\x85\x80\x00", 0) == (5, 3)


@pytest.mark.parametrize(("encoded", "value"), [("8080808008", -(1 << 31)), ("ffffffff0f", -1), ("ffffffff7f", -1)])
def test_varint_of_32_bits_is_negative(encoded, value):
    assert read_varint(bytes.fromhex(encoded), 0) == (value, 5)


@pytest.mark.parametrize("encoded", ["ffffffffff", "808080808000"])
def test_varint_of_more_than_five_bytes_is_refused(encoded):
    with pytest.raises(ProtocolError, match="five bytes"):
        read_varint(bytes.fromhex(encoded), 0)


def test_length_that_wraps_around_is_refused():
    assert finish_length(bytes.fromhex("ffffff0f"), 0, 0xFF) == (-1, 4)
    with pytest.raises(ProtocolError, match="2147483647 bytes"):
        finish_length(bytes.fromhex("80808008"), 0, 0x80)


@pytest.mark.parametrize("value", [-1, 1 << 31])
def test_varint_out_of_range_is_not_written(value):
    with pytest.raises(ProtocolError, match="31 bits"):
        varints[value]


def test_truncated_varint_ends_with_the_buffer():
    with pytest.raises(IndexError):
        read_varint(b"\x80\x80", 0)


def test_strings_have_at_most_32767_bytes():
    assert string_lengths[32768] == varint(32768)
    assert finish_string_length(varint(32768), 1, 0x80) == (32768, 3)
    with pytest.raises(ProtocolError, match="32768 bytes"):
        string_lengths[32769]
    with pytest.raises(ProtocolError, match="32768 bytes"):
        finish_string_length(varint(32769), 1, 0x81)


def test_varints_of_long_lengths_are_not_cached():
    varints[1 << 20]
    assert 1 << 20 not in varints
    packers = ArrayPackers("i", flexible=False)
    assert packers[1000](1000, *range(1000))[:8].hex() == "000003e800000000"
    assert 1000 not in packers


@pytest.mark.parametrize(
    ("flexible", "count", "head"), [(False, 2, "00000002"), (True, 2, "03"), (True, 126, "7f"), (True, 127, "8001")]
)
def test_array_packers_write_count_and_elements(flexible, count, head):
    packers = ArrayPackers("h", flexible=flexible)
    written = count + 1 if flexible else count
    packed = packers[count](written, *range(count))
    assert packed.hex().startswith(head + "00000001")
    assert len(packed) == len(head) // 2 + 2 * count


def test_tagged_fields_of_any_length_are_skipped():
    many = varint(200) + b"".join(varint(tag) + b"\3abc" for tag in range(200))
    wide = b"\1" + varint(1 << 20) + varint(300) + bytes(300)
    assert skip_tagged_fields(many, 1, many[0]) == len(many)
    assert skip_tagged_fields(wide, 1, wide[0]) == len(wide)


@pytest.mark.parametrize("size", ["02", "ffffffff07", "ffffffff0f"])
def test_tagged_field_beyond_the_end_is_rejected(size):
    with pytest.raises(ProtocolError, match="bytes announced, 1 left"):
        skip_tagged_fields(b"\7" + bytes.fromhex(size) + b"x", 0, 1)


def test_too_large_count_of_tagged_fields_ends_with_the_buffer():
    with pytest.raises(IndexError):
        skip_tagged_fields(varint((1 << 31) - 1) + b"\0\0\0\0", 1, 0xFF)


def test_uuids_have_16_bytes():
    assert join_uuids([bytes(16), b"x" * 16]) == bytes(16) + b"x" * 16
    with pytest.raises(ProtocolError, match="16 bytes, not 15"):
        checked_uuid(bytes(15))


def test_small_bytes_are_joined_and_large_ones_are_passed_by_reference():
    small, large = b"s" * (BY_REFERENCE_BYTES - 1), memoryview(bytes(BY_REFERENCE_BYTES))
    out, chunks = [b"head"], []
    append_bytes(out, chunks, small)
    append_bytes(out, chunks, [large, large, b"tail"])
    append_bytes(out, chunks, None)
    assert chunks[0] == b"head" + small
    assert chunks[1] is large
    assert chunks[2] is large
    assert len(chunks) == 3
    assert out == [b"tail"]


def test_size_of_a_list_is_the_sum_of_its_pieces():
    assert size_of([b"ab", bytearray(b"c"), memoryview(b"def")]) == 6
    assert size_of(b"") == 0


@pytest.mark.parametrize("value", ["text", 5, ["text"], memoryview(bytes(8)).cast("i")])
def test_value_that_is_not_bytes_like_is_refused(value):
    with pytest.raises(ProtocolError, match=r"bytes-like|one byte"):
        size_of(value)
