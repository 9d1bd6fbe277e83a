"""Consumers that subscribe: other coordinators, static members, what cooperative ones keep.

How members come, leave and die is in ../matrix.
"""

import pytest


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_group_goes_on_with_another_coordinator(groups, how):
    before = groups.produce(*map(str, range(20)))
    member = groups.member().wait_for_values(before)
    member.commit()

    groups.restart_coordinator(how)

    between = groups.produce(*map(str, range(20, 40)))
    member.wait_for_values(between)
    member.commit()
    member.leave()
    after = groups.produce(*map(str, range(40, 60)))
    assert sorted(groups.member().wait_for_values(after).values) == sorted(after)


@pytest.mark.parametrize("groups", ["confluent_kafka", "kafka_python", "aiokafka"], indirect=True)
def test_static_member_that_restarts_gets_its_partitions_back(groups):
    first = groups.member(instance="one").wait_for_partitions(4)
    second = groups.member(instance="two").wait_for_partitions(2)
    first.wait_for_partitions(2)
    second.kill()
    again = groups.member(instance="two").wait_for_partitions(2)
    assert again.assignment == second.assignment
    values = groups.produce(*map(str, range(20)))
    again.wait(lambda: len(again.values) == 10)
    first.wait(lambda: len(first.values) == 10)
    assert sorted(first.values + again.values) == sorted(values)


@pytest.mark.parametrize("groups", ["confluent_kafka", "kafka_python"], indirect=True)
def test_cooperative_members_keep_what_they_need_not_give(groups):
    first = groups.member("cooperative-sticky").wait_for_partitions(4)
    second = groups.member("cooperative-sticky").wait_for_partitions(2)
    first.wait_for_partitions(2)
    revoked = [event["partitions"] for event in first.events if event["event"] == "revoked"]
    assert revoked == [second.assignment]
    assert sorted(first.assignment + second.assignment) == [0, 1, 2, 3]
    assert [] not in [event.get("partitions") for event in first.events[1:]]


@pytest.mark.parametrize("groups", ["confluent_kafka_of_the_consumer_protocol", "java"], indirect=True)
def test_static_member_of_the_consumer_protocol_leaves_and_gets_its_partitions_back(groups):
    first = groups.member(instance="one").wait_for_partitions(4)
    second = groups.member(instance="two").wait_for_partitions(2)
    first.wait_for_partitions(2)
    second.leave()
    again = groups.member(instance="two").wait_for_partitions(2)
    assert again.assignment == second.assignment
