"""CRC-32C without its package in C is the same."""

import random

import pytest

crc32c = pytest.importorskip("crc32c")
from broker_sim.protocol.crc32c import crc32c_by_table  # noqa: E402 - after the package is looked for

CHECK_VALUE = 0xE3069283
"""The checksum of "123456789" in the catalogue of CRCs."""


def test_table_has_the_check_value():
    assert crc32c_by_table(b"123456789") == CHECK_VALUE


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_table_and_package_agree(make):
    seed = random.randrange(1 << 32)
    data = random.Random(seed).randbytes(random.Random(seed).randrange(300))
    before = seed & 0xFFFFFFFF
    assert crc32c_by_table(make(data)) == crc32c.crc32c(data), f"seed {seed}"
    assert crc32c_by_table(make(data), before) == crc32c.crc32c(data, before), f"seed {seed}"


def test_checksum_continues_from_another_one():
    assert crc32c_by_table(b"6789", crc32c_by_table(b"12345")) == CHECK_VALUE
