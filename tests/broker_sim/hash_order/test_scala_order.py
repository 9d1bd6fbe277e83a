"""Iteration orders of Scala's maps; the expected orders were printed by Scala 2.13."""

import pytest

from broker_sim.hash_order.hash_codes import integer_hash, topic_id_partition_hash
from broker_sim.hash_order.scala_order import mutable_map_order, to_map_order

FIRST, SECOND = (bytes.fromhex("fc18db54916bbd929f651ddd16a904de"), bytes.fromhex("765a9cbe77b49b9a8888f4c24a5dba95"))


def hash_of(partition):
    """Return partitions of two topics; every third one is of the second topic."""
    if partition % 3 == 2:
        return topic_id_partition_hash(SECOND, partition, "other")
    return topic_id_partition_hash(FIRST, partition, "topic")


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (3, "0 1 2"),
        (8, "6 7 5 0 1 2 3 4"),
        (11, "6 7 9 10 8 5 0 1 2 3 4"),
        (12, "6 7 9 10 0 1 3 4 11 8 5 2"),
        (24, "6 10 12 23 0 17 4 21 11 13 5 15 19 7 9 20 1 3 14 22 8 16 2 18"),
    ],
)
def test_mutable_map_doubles_before_three_quarters_are_full(count, expected):
    assert mutable_map_order(range(count), hash_of) == [int(key) for key in expected.split()]


def test_negative_hash_codes_come_first_in_a_bucket():
    numbers = mutable_map_order([15, -16, 31, 1, -2, -18], integer_hash)
    assert numbers == [-2, -18, 1, -16, 15, 31]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (4, "0 1 2 3"),
        (5, "0 3 4 1 2"),
        (12, "0 8 7 3 11 5 9 4 10 1 6 2"),
        (24, "0 7 3 15 5 9 10 6 22 12 2 17 8 11 23 20 14 4 16 1 21 19 13 18"),
        (31, "0 3 15 5 24 27 10 6 22 12 2 29 26 17 8 7 30 11 23 20 14 28 25 9 4 16 1 21 19 13 18"),
    ],
)
def test_map_of_more_than_four_keys_is_a_trie(count, expected):
    assert to_map_order(range(count), hash_of) == [int(key) for key in expected.split()]
    assert to_map_order(range(count)[::-1], hash_of) == to_map_order(range(count), hash_of)
