"""Claims about the partition of a group: clients and brokers have to agree on it."""

import pytest

from broker_sim.coordinator.hashing import java_hash_code, partition_of_hash


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("g1", 3242), ("my-group", 2388469534), ("é", 233), ("\U0001f600", 1772899)],
)
def test_hash_is_that_of_java(text, code):
    assert java_hash_code(text) == code


@pytest.mark.parametrize("size", [1, 63, 64, 65, 128, 300])
def test_hash_of_a_long_text_is_31_times_that_before_and_the_next_unit(size):
    text = "".join(chr(0x61 + index * 997 % 20_000) for index in range(size))
    code = 0
    for unit in text:
        code = (31 * code + ord(unit)) & 0xFFFFFFFF
    assert java_hash_code(text) == code


@pytest.mark.parametrize(
    ("code", "partition"),
    [(0, 0), (57, 7), (0x7FFFFFFF, 47), (0xFFFFFFFF, 1), (0xFFFFFFFF - 56, 7), (0x80000000, 0)],
)
def test_partition_is_that_of_the_hash_without_its_sign(code, partition):
    assert partition_of_hash(code, 50) == partition
