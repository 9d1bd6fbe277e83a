"""Twenty tests as users write them: topics, records with acks=all, a group, a rebalance, with confluent-kafka.

`SUITE_SERVERS` names the cluster; without it the fixture `kafka` is one, reset between tests.
"""

import os
import time
import uuid

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS, RECORDS, TIMEOUT_S = 4, 20, 30
SERVERS = os.environ.get("SUITE_SERVERS")
TIMES_FIVE = pytest.mark.parametrize("turn", range(5))

pytestmark = pytest.mark.kafka(configs={"group.initial.rebalance.delay.ms": 0})


@pytest.fixture
def servers(request):
    return SERVERS or request.getfixturevalue("kafka").bootstrap_servers


@pytest.fixture
def topic(servers):
    name = f"orders-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    (made,) = admin.create_topics([NewTopic(name, PARTITIONS, 1)]).values()
    made.result(TIMEOUT_S)
    return name


def produce(servers, topic):
    failures = []
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 0})
    for number in range(RECORDS):
        producer.produce(topic, str(number), partition=number % PARTITIONS, on_delivery=lambda e, _: failures.append(e))
    assert producer.flush(TIMEOUT_S) == 0
    assert failures == [None] * RECORDS


def member(servers, group):
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 100,
            "fetch.wait.max.ms": 20,
        }
    )


def values_of(consumer, count):
    values, deadline = [], time.monotonic() + TIMEOUT_S
    while len(values) < count:
        assert time.monotonic() < deadline
        values += [int(message.value()) for message in consumer.consume(count, 0.05)]
    return sorted(values)


@TIMES_FIVE
def test_topic_has_its_partitions(servers, topic, turn):
    metadata = AdminClient({"bootstrap.servers": servers}).list_topics(topic, TIMEOUT_S)
    assert len(metadata.topics[topic].partitions) == PARTITIONS


@TIMES_FIVE
def test_acknowledged_records_are_read(servers, topic, turn):
    produce(servers, topic)
    consumer = member(servers, "nobody")
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    assert values_of(consumer, RECORDS) == list(range(RECORDS))
    consumer.close()


@TIMES_FIVE
def test_group_goes_on_where_it_has_committed(servers, topic, turn):
    for first in (True, False):
        produce(servers, topic)
        consumer = member(servers, topic)
        consumer.subscribe([topic])
        assert values_of(consumer, RECORDS) == list(range(RECORDS)), first
        consumer.commit(asynchronous=False)
        consumer.close()


@TIMES_FIVE
def test_second_member_takes_half_of_the_partitions(servers, topic, turn):
    members = [member(servers, topic), member(servers, topic)]
    deadline = time.monotonic() + TIMEOUT_S
    for one in members:
        one.subscribe([topic])
        while not one.assignment():
            assert time.monotonic() < deadline
            for each in members[: members.index(one) + 1]:
                each.poll(0.02)
    while [len(each.assignment()) for each in members] != [PARTITIONS // 2] * 2:
        assert time.monotonic() < deadline
        for each in members:
            each.poll(0.02)
    for each in members:
        each.close()
