"""What a user's client does, with confluent-kafka, against any cluster: the work that is measured."""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from peers import Peer

PARTITIONS = 3
VALUE = b"x" * 100
TIMEOUT_S = 60
POLL_EVERY = 1000
WARM_UP = 50


@contextmanager
def topic(peer: Peer, replication_factor: int) -> Iterator[str]:
    """Make a topic whose partitions all have leaders; delete it afterwards."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": peer.bootstrap_servers, "log_level": 0})
    if peer.creates_topics:
        (made,) = admin.create_topics([NewTopic(name, PARTITIONS, replication_factor)]).values()
        made.result(TIMEOUT_S)
    deadline = time.monotonic() + TIMEOUT_S
    while not _has_leaders(admin, name):
        assert time.monotonic() < deadline, f"{peer.name}: {name} has no leaders"
        time.sleep(0.05)
    yield name
    if peer.creates_topics:
        admin.delete_topics([name])[name].result(TIMEOUT_S)


def leader_of(peer: Peer, name: str, partition: int) -> tuple[str, int]:
    """Return the address of a partition's leader."""
    admin = AdminClient({"bootstrap.servers": peer.bootstrap_servers, "log_level": 0})
    found = admin.list_topics(name, timeout=10)
    leader = found.brokers[found.topics[name].partitions[partition].leader]
    return leader.host, leader.port


def _has_leaders(admin: AdminClient, name: str) -> bool:
    found = admin.list_topics(name, timeout=10).topics[name]
    leaders = [partition.leader for partition in found.partitions.values()]
    return found.error is None and len(leaders) >= PARTITIONS and min(leaders) >= 0


def _producer(peer: Peer, acks: int, **configs: object) -> Producer:
    return Producer(
        {
            "bootstrap.servers": peer.bootstrap_servers,
            "acks": acks,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
            "log_level": 0,
            **configs,
        }
    )


def _consumer(peer: Peer, name: str, *, at_end: bool) -> Consumer:
    """Return a consumer of all partitions, from the first record on or from what comes next."""
    consumer = Consumer(
        {
            "bootstrap.servers": peer.bootstrap_servers,
            "group.id": "bench",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            # By default the client stops to fetch for a second whenever it is well supplied.
            "queued.min.messages": 1_000_000,
            "fetch.queue.backoff.ms": 1,
            "log_level": 0,
        }
    )
    partitions = [TopicPartition(name, index, 0) for index in range(PARTITIONS)]
    if at_end:
        # A number, so that a record that comes before the first fetch is read too.
        for partition in partitions:
            _, partition.offset = consumer.get_watermark_offsets(partition, TIMEOUT_S)
    consumer.assign(partitions)
    return consumer


def produce(peer: Peer, name: str, acks: int, count: int) -> float:
    """Produce `count` messages of 100 bytes; return messages per second until all are answered."""
    failures: list[KafkaError] = []
    # Failures only: a call per message would measure the client.
    producer = _producer(peer, acks, **{"linger.ms": 5, "delivery.report.only.error": True})

    def on_delivery(error, _):
        if error is not None:
            failures.append(error)

    for partition in range(PARTITIONS):
        producer.produce(name, VALUE, partition=partition)
    producer.flush(TIMEOUT_S)
    send, poll = producer.produce, producer.poll
    start = time.perf_counter()
    for index in range(count):
        send(name, VALUE, on_delivery=on_delivery)
        if index % POLL_EVERY == 0:
            poll(0)
    left = producer.flush(TIMEOUT_S)
    elapsed_s = time.perf_counter() - start
    assert left == 0, f"{peer.name}: {left} messages were not answered"
    assert failures == [], f"{peer.name}: {failures[0]}"
    return count / elapsed_s


def consume(peer: Peer, name: str, count: int) -> float:
    """Read `count` messages from the topic's begin on; return messages per second."""
    consumer = _consumer(peer, name, at_end=False)
    try:
        read, deadline = len(consumer.consume(1, TIMEOUT_S)), time.monotonic() + TIMEOUT_S
        start = time.perf_counter()
        while read < count:
            read += len(consumer.consume(10_000, 0.1))
            assert time.monotonic() < deadline, f"{peer.name}: only {read} of {count} came"
        return (count - 1) / (time.perf_counter() - start)
    finally:
        consumer.close()


def synchronous_ms(peer: Peer, name: str, count: int) -> list[float]:
    """Produce messages one after the other with acks=all; return how long each took."""
    producer = _producer(peer, -1, **{"linger.ms": 0, "socket.nagle.disable": True})
    latencies_ms = []
    for _ in range(WARM_UP + count):
        start = time.perf_counter()
        producer.produce(name, b"y", partition=0)
        producer.flush(TIMEOUT_S)
        latencies_ms.append((time.perf_counter() - start) * 1e3)
    return latencies_ms[WARM_UP:]


def wake_up_ms(peer: Peer, name: str, count: int) -> list[float]:
    """Return how long each message took from a producer to a consumer that waits for it."""
    producer = _producer(peer, 1, **{"linger.ms": 0, "socket.nagle.disable": True})
    consumer = _consumer(peer, name, at_end=True)
    latencies_ms: list[float] = []
    try:
        for _ in range(WARM_UP + count):
            start = time.perf_counter()
            producer.produce(name, b"z", partition=1)
            message = consumer.poll(TIMEOUT_S)
            latencies_ms.append((time.perf_counter() - start) * 1e3)
            assert message is not None, f"{peer.name}: no message came"
            assert message.error() is None, f"{peer.name}: {message.error()}"
            producer.poll(0)
        return latencies_ms[WARM_UP:]
    finally:
        consumer.close()
