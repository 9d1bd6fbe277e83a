"""Tests of the orders of topics and partitions in Kafka's hash maps of share groups."""

import pytest

from broker_sim.group.record_messages import ShareGroupCurrentMemberAssignmentValue as Value
from broker_sim.group.share.assignors import ShareGroupSpec, ShareMemberSpec, assign
from broker_sim.group.share.member import ShareMember
from broker_sim.group.share.persister_calls import partitions_in_order, topics_in_order
from broker_sim.hash_order.hash_codes import string_hash, uuid_hash
from broker_sim.hash_order.java_order import hash_order


def topic_id(number):
    """Return an id whose hash code is the number."""
    return number.to_bytes(16, "big")


ONE, FOUR, FIVE = map(topic_id, (1, 4, 5))
"""In a map of four buckets FOUR comes first, in one of sixteen ONE does."""


def topics_of(member):
    return [each for each, _ in member.assigned_in_order]


@pytest.mark.parametrize("last", [{}, {ONE: (0,), FOUR: (0,)}], ids=["new member", "member that has enough"])
def test_target_copy_has_the_smallest_table(last):
    spec = ShareGroupSpec({"m": ShareMemberSpec([ONE, FOUR], last)}, homogeneous=True, assignable={ONE: [0], FOUR: [0]})
    assert list(assign(spec)["m"]) == [FOUR, ONE]


def test_assignment_order_differs_after_loading():
    target = {FOUR: (17, 0), ONE: (0,)}
    member = ShareMember("m").towards(1, target, [ONE, FOUR], subscription_changed=True)
    assert member.assigned_in_order == ((FOUR, (17, 0)), (ONE, (0,)))
    stored = [Value.TopicPartitions(*topic) for topic in member.assigned_in_order]
    loaded = member.with_assignment(Value(1, 0, 0, stored))
    assert loaded == member
    assert loaded.assigned_in_order == ((ONE, (0,)), (FOUR, (0, 17)))


def test_target_with_unsubscribed_topics_is_copied():
    target = {FIVE: (0,), ONE: (0,), FOUR: (0,)}
    member = ShareMember("m").towards(1, target, [FIVE, ONE, FOUR], subscription_changed=True)
    assert topics_of(member) == [FIVE, ONE, FOUR]
    member = ShareMember("m").towards(1, target, [FIVE, FOUR], subscription_changed=True)
    assert topics_of(member) == [FOUR, FIVE]  # of eight buckets


def test_later_persister_call_comes_first_in_its_bucket():
    assert topics_in_order([topic_id(1), topic_id(17), FOUR, topic_id(33)]) == [
        topic_id(33),
        topic_id(17),
        topic_id(1),
        FOUR,
    ]
    assert partitions_in_order([1, 17, 4, 1]) == [17, 1, 4]


def test_offsets_of_all_topics_are_in_initialization_order(shares):
    names = [f"topic{number}" for number in range(30)]  # of which some are in one bucket
    ids = {name: shares.bench.set_topic(name, 1) for name in names}
    member = shares.member("m", *names)
    member.join()
    shares.settle(member)
    topic_ids = [topic.topic_id for topic in shares.offsets().topics]
    assert topic_ids == topics_in_order(ids[name] for name in hash_order(names, string_hash))
    assert topic_ids != hash_order([ids[name] for name in names], uuid_hash)
