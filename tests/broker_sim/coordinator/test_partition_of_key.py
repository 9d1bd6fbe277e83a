"""Claims about the partition of a group: clients and brokers have to agree on it."""

import pytest

from broker_sim.coordinator.runtime import partition_of_hash


@pytest.mark.parametrize(
    ("code", "partition"), [(0, 0), (57, 7), (0x7FFFFFFF, 47), (0xFFFFFFFF, 1), (0xFFFFFFFF - 56, 7), (0x80000000, 0)]
)
def test_partition_is_absolute_hash_code_modulo_partitions(code, partition):
    assert partition_of_hash(code, 50) == partition
