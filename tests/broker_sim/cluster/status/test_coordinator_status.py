"""Groups, transactions and producers in the status of a cluster."""

import json

import pytest

from broker_sim.cluster.status.coordinator_status import GroupOffsetStatus
from broker_sim.group.consumer_protocol import encode_assignment
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.protocol.records import build_batch

METADATA = b"\x00\x01"


def assigned(*partitions):
    return encode_assignment([("t", partitions)], METADATA)


def stable_group(user, assignment):
    member_id = user.joined().member_id
    user.ask(user.sync(member_id, assignments=[(member_id, assignment)]), 3, user.leader("g"))
    return member_id


def test_classic_group_has_its_members_offsets_and_lag(user):
    member_id = stable_group(user, assigned(0, 1))
    user.cluster.produce("t", "a", partition=0)
    user.cluster.produce("t", "b", partition=0)
    user.cluster.produce("t", "c", partition=1)
    user.commit("g", {0: 1}, member=member_id, generation=1)
    group = user.cluster.group("g")
    assert (group.id, group.type, group.state, group.assignor) == (
        "g",
        "classic",
        "Stable",
        "range",
    )
    assert group.coordinator == user.leader("g")
    (member,) = group.members
    assert (member.id, member.instance_id) == (member_id, None)
    assert member.client_id == user.client.host
    assert member.assignment == (TopicPartition("t", 0), TopicPartition("t", 1))
    assert group.offsets == (
        GroupOffsetStatus("t", 0, 1, high_watermark=2, lag=1),
        GroupOffsetStatus("t", 1, None, high_watermark=1, lag=1),
    )
    assert (group.lag, group.committed("t"), group.committed("t", 1)) == (2, 1, None)
    assert user.cluster.status().group("g") == group
    assert user.cluster.groups() == (group,)


def test_group_of_the_consumer_protocol_has_its_members(user):
    request = messages.ConsumerGroupHeartbeatRequest(
        "g", "m", 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert not user.ask(request, 1, user.leader("g")).error_code
    group = user.cluster.group("g")
    assert (group.type, group.state, group.assignor) == ("consumer", "Stable", "uniform")
    (member,) = group.members
    assert (member.id, member.assignment) == (
        "m",
        (TopicPartition("t", 0), TopicPartition("t", 1)),
    )


@pytest.mark.parametrize("assignment", [b"", b"\x00", b"no assignment at all"])
def test_assignment_that_only_the_members_understand_is_empty(user, assignment):
    stable_group(user, assignment)
    assert user.cluster.group("g").members[0].assignment == ()


def test_offsets_without_members_are_told(user):
    user.commit("g", {0: 0})
    group = user.cluster.group("g")
    assert (group.state, group.members) == ("Empty", ())
    assert group.offsets == (GroupOffsetStatus("t", 0, 0, high_watermark=0, lag=0),)


def test_partition_that_does_not_exist_has_no_lag(user):
    stable_group(user, encode_assignment([("gone", [3])], METADATA))
    group = user.cluster.group("g")
    assert group.offsets == (GroupOffsetStatus("gone", 3, None, high_watermark=None, lag=None),)
    assert group.lag == 0


def test_unknown_group_is_refused_with_those_that_there_are(user):
    user.commit("g", {0: 0})
    with pytest.raises(LookupError, match="no group 'h'; there are g"):
        user.cluster.group("h")


def test_group_is_told_by_its_new_coordinator_only(user):
    user.commit("g", {0: 0})
    old = user.leader("g")
    user.cluster.pause(old)
    user.cluster.run_until(lambda: user.leader("g") != old)
    user.cluster.run_until(user.cluster.groups)
    assert [group.coordinator for group in user.cluster.groups()] == [user.leader("g")]


def test_transactions_and_producers_are_told(user):
    cluster = user.cluster
    coordinator = user.find("tx", key_type=1)
    user.until(lambda: not user.find("tx", key_type=1).error_code)
    coordinator = user.find("tx", key_type=1).node_id
    init = messages.InitProducerIdRequest("tx", transaction_timeout_ms=5_000)
    user.until(lambda: not user.ask(init, 4, coordinator).error_code)
    producer = user.ask(init, 4, coordinator)
    add = messages.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[
            messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic("t", [0]),
        ],
    )
    user.ask(add, 3, coordinator)
    data = messages.ProduceRequest.TopicProduceData(
        name="t",
        partition_data=[
            messages.ProduceRequest.PartitionProduceData(
                0,
                build_batch(
                    [b"v"],
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    base_sequence=0,
                    is_transactional=True,
                ),
            )
        ],
    )
    produce = messages.ProduceRequest(
        transactional_id="tx", acks=-1, timeout_ms=10_000, topic_data=[data]
    )
    user.ask(produce, 11, cluster.leader("t"))
    status = cluster.status()
    (transaction,) = status.transactions
    assert (transaction.transactional_id, transaction.state) == ("tx", "Ongoing")
    assert (transaction.coordinator, transaction.timeout_ms) == (coordinator, 5_000)
    assert transaction.partitions == (TopicPartition("t", 0),)
    (known,) = status.producers
    assert (known.topic, known.partition, known.last_sequence) == ("t", 0, 0)
    assert (known.producer_id, known.producer_epoch) == (
        transaction.producer_id,
        transaction.producer_epoch,
    )
    assert known.transaction_start_offset == 0
    plain = status.to_json()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["transactions"][0]["partitions"] == [{"topic": "t", "partition": 0}]
