"""confluent-kafka (librdkafka): produce, consume, time out."""

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, IsolationLevel, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from broker_sim import Cluster, Fault
from broker_sim.config import RACK_AWARE_SELECTOR

TIMEOUT_S = 60


def producer_of(simulator, **config):
    return Producer({"bootstrap.servers": simulator.bootstrap_servers, **config})


def send(producer, topic, values, partition=0):
    """Return the (error, offset) of each record."""
    delivered = []
    for value in values:
        producer.produce(
            topic,
            value,
            partition=partition,
            on_delivery=lambda error, message: delivered.append((error, message.offset())),
        )
    assert producer.flush(TIMEOUT_S) == 0
    return delivered


def produce(simulator, topic, values, partition=0, **config):
    """Return the (error, offset) of each record, sent by a producer of its own."""
    return send(producer_of(simulator, **config), topic, values, partition)


def consume(simulator, topic, number, partition=0, offset=OFFSET_BEGINNING, **config):
    """Return the values of the first records from the offset on."""
    consumer = Consumer(
        {
            "bootstrap.servers": simulator.bootstrap_servers,
            "group.id": "only assigns",
            "enable.auto.commit": False,
            **config,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, partition, offset)])
        messages = []
        while len(messages) < number:
            batch = consumer.consume(number - len(messages), TIMEOUT_S)
            assert batch, f"only {len(messages)} of {number} records came"
            messages += batch
        assert not any(message.error() for message in messages)
        return [message.value() for message in messages]
    finally:
        consumer.close()


VALUES = [f"value-{number}".encode() * 20 for number in range(50)]


@pytest.mark.parametrize("acks", ["1", "all"])
def test_records_come_back_in_order_with_their_offsets(simulator, acks):
    topic = simulator.create_topic()
    delivered = produce(simulator, topic, VALUES, acks=acks)
    assert delivered == [(None, offset) for offset in range(50)]
    assert consume(simulator, topic, 50) == VALUES


def test_acks_0_delivers_without_an_answer(simulator):
    topic = simulator.create_topic()
    assert all(error is None for error, _ in produce(simulator, topic, VALUES, acks="0"))
    assert consume(simulator, topic, 50) == VALUES


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_come_back(simulator, compression):
    topic = simulator.create_topic()
    config = {"compression.type": compression, "linger.ms": 50}
    produce(simulator, topic, VALUES, acks="all", **config)
    assert consume(simulator, topic, 50) == VALUES


def test_idempotent_producer_writes_every_record_once(simulator):
    topic = simulator.create_topic()
    delivered = produce(simulator, topic, VALUES, **{"enable.idempotence": True})
    assert delivered == [(None, offset) for offset in range(50)]
    assert consume(simulator, topic, 50) == VALUES


def test_each_partition_has_its_own_offsets(simulator):
    topic = simulator.create_topic(partitions=3)
    for partition in range(3):
        delivered = produce(simulator, topic, VALUES[:5], partition)
        assert [offset for _, offset in delivered] == [0, 1, 2, 3, 4]
    assert consume(simulator, topic, 2, partition=2, offset=3) == VALUES[3:5]


def test_watermarks_and_offsets_can_be_listed(simulator):
    topic = simulator.create_topic()
    produce(simulator, topic, VALUES)
    admin = AdminClient({"bootstrap.servers": simulator.bootstrap_servers})
    partition = TopicPartition(topic, 0)
    for spec, expected in [(OffsetSpec.earliest(), 0), (OffsetSpec.latest(), 50)]:
        futures = admin.list_offsets({partition: spec}, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        assert futures[partition].result(TIMEOUT_S).offset == expected


def test_acks_all_times_out_when_the_followers_are_frozen(simulator, frozen_followers):
    topic = simulator.create_topic()
    producer = producer_of(simulator, **{"acks": "all", "request.timeout.ms": 3000, "retries": 0})
    assert send(producer, topic, VALUES[:1]) == [(None, 0)]
    frozen_followers(topic)
    ((error, _),) = send(producer, topic, VALUES[:1])
    assert error.code() == KafkaError.REQUEST_TIMED_OUT


def test_acks_1_does_not_wait_for_frozen_followers(simulator, frozen_followers):
    topic = simulator.create_topic()
    producer = producer_of(simulator, acks="1")
    assert send(producer, topic, VALUES[:1]) == [(None, 0)]
    frozen_followers(topic)
    assert send(producer, topic, VALUES[:1]) == [(None, 1)]


def test_metadata_names_all_brokers_and_the_leader(simulator):
    topic = simulator.create_topic(partitions=2)
    metadata = AdminClient({"bootstrap.servers": simulator.bootstrap_servers}).list_topics(topic, TIMEOUT_S)
    assert sorted(metadata.brokers) == [1, 2, 3]
    for number, partition in metadata.topics[topic].partitions.items():
        assert partition.leader == simulator.partition(topic, number)["leader"]
        assert sorted(partition.isrs) == [1, 2, 3]


def test_consumer_reads_from_the_replica_in_its_rack():
    racks = {1: {"broker.rack": "a"}, 2: {"broker.rack": "b"}, 3: {"broker.rack": "c"}}
    with Cluster(3, configs={"replica.selector.class": RACK_AWARE_SELECTOR}, broker_configs=racks) as cluster:
        cluster.create_topic("t", assignments={0: [1, 2, 3]})
        cluster.produce("t", "v")
        for broker in (1, 2, 3):
            cluster.inject(Fault(api="Fetch", broker=broker, delay_ms=1))
        assert consume(cluster, "t", 1, **{"client.rack": "b"}) == [b"v"]
        hits = [fault.hits for fault in cluster.status().faults]
    assert hits[0] == 1, "the leader is asked once and names the replica"
    assert hits[1] >= 1
    assert hits[2] == 0
