"""Partitions stand in answers as Scala's maps have them, and are fetched next in the order in which they were told."""

from broker_sim.hash_order.hash_codes import topic_id_partition_hash
from broker_sim.hash_order.scala_order import mutable_map_order, to_map_order

PARTITIONS = 9


def hash_in(bench, topic="topic"):
    return lambda number: topic_id_partition_hash(bench.topic_id, number, topic)


def answered_partitions(pending):
    return [one.partition_index for topic in pending.response.responses for one in topic.partitions]


def test_partitions_are_answered_in_the_order_of_a_map(make_bench):
    bench = make_bench(PARTITIONS)
    expected = to_map_order(range(PARTITIONS), hash_in(bench))
    assert expected != sorted(expected)
    assert answered_partitions(bench.wait(bench.member("first", opens=False).fetch())) == expected


def test_acknowledgements_are_answered_in_the_order_of_a_map(make_bench):
    bench = make_bench(PARTITIONS)
    member = bench.member("first")
    for number in range(PARTITIONS):
        bench.produce(partition=number)
    bench.wait(member.fetch())
    wrong = {number: [(5, 1, 1)] for number in range(PARTITIONS)}
    expected = mutable_map_order(range(PARTITIONS), hash_in(bench))
    assert answered_partitions(bench.wait(member.acknowledge(wrong))) == expected
    right = {number: [(0, 0, 1)] for number in range(PARTITIONS)}
    expected = to_map_order(range(PARTITIONS), hash_in(bench))
    assert answered_partitions(bench.wait(member.acknowledge(right))) == expected
