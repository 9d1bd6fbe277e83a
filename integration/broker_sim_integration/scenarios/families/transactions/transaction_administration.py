"""Describing and listing transactions and producers, like kafka-transactions. Kafka: KafkaApis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker_sim.protocol import messages
from broker_sim_integration.clients.groups import Offset
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import (
    QUICK_TRANSACTIONS,
    TransactionsUnderTest,
)
from broker_sim_integration.scenarios.helpers.groups import ready_group
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation


def _producers(client: BrokerClient, *partitions: tuple[str, int]) -> Reply[messages.DescribeProducersResponse]:
    request = messages.DescribeProducersRequest
    topics = [request.TopicRequest(name, [partition]) for name, partition in partitions]
    return client.request(request(topics), 0, messages.DescribeProducersResponse)


def _listed(
    cluster: ClusterUnderTest, client: BrokerClient, version: int = 2, **filters: Any
) -> Reply[messages.ListTransactionsResponse]:
    """List the transactions of a broker, without those of other scenarios."""
    request = messages.ListTransactionsRequest(**filters)
    reply = client.request(request, version, messages.ListTransactionsResponse)
    ours = cluster.topics.name("id.")
    reply.message.transaction_states = [
        state for state in reply.message.transaction_states if state.transactional_id.startswith(ours)
    ]
    return reply


@scenario(topology="2 partitions x 3 replicas, a group", configs=QUICK_TRANSACTIONS)
def a_transaction_is_described_in_each_state(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its partitions, including that of the offsets; an id that was never used is unknown."""
    transactions = TransactionsUnderTest(cluster)
    group = ready_group(cluster)
    topic = transactions.topic(partitions=2)
    leader = cluster.connect(cluster.first)
    unused = transactions.uninitialised()
    producer = transactions.producer(timeout_ms=12_345)
    yield transactions.seen("empty", transactions.describe(producer, unused))
    producer.produce(leader, topic, b"1", partition=1)
    yield transactions.seen("one partition", transactions.describe(producer))
    producer.produce(leader, topic, b"0")
    yield transactions.seen("two partitions", transactions.describe(producer))
    producer.commit_offsets(group.tool, group.name, Offset(topic, 0, 1))
    described = transactions.describe(producer)
    for state in described.message.transaction_states:
        for data in state.topics:
            if data.topic == "__consumer_offsets":
                data.partitions = [0 for _ in data.partitions]
    yield transactions.seen("with offsets", described)
    for committed in (True, False):
        if not committed:
            producer.produce(leader, topic, b"2")
        transactions.ended(producer, committed=committed)
        yield transactions.seen(f"committed {committed}", transactions.describe(producer))
    empty = producer.again()
    empty.transactional_id = ""
    yield transactions.seen("empty id", transactions.describe(empty, producer))
    reply = producer.client.request(messages.DescribeTransactionsRequest([]), 0, messages.DescribeTransactionsResponse)
    yield transactions.seen("none", reply)


@scenario(topology="2 partitions x 3 replicas", configs=QUICK_TRANSACTIONS)
def transactions_are_listed_by_filters(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Filters are state, producer id, duration and pattern; the response lists unknown states."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    empty, open_, over = (transactions.producer() for _ in range(3))
    open_.produce(leader, topic, b"open")
    over.produce(leader, topic, b"over")
    transactions.ended(over)
    client = cluster.connect(cluster.first)
    for version in range(3):
        yield transactions.seen(f"all v{version}", _listed(cluster, client, version))
    for states in (["Ongoing"], ["Empty", "CompleteCommit"], ["ongoing"], ["NoState", "Ongoing"]):
        reply = _listed(cluster, client, state_filters=states)
        yield transactions.seen(f"states {states}", reply)
    for step, ids in (
        ("one", [empty.producer_id]),
        ("two", [open_.producer_id, over.producer_id]),
        ("unknown", [10**12]),
    ):
        yield transactions.seen(step, _listed(cluster, client, producer_id_filters=ids))
    both = _listed(cluster, client, producer_id_filters=[empty.producer_id], state_filters=["Ongoing"])
    yield transactions.seen("both", both)
    for duration in (-1, 0, 600_000):
        reply = _listed(cluster, client, version=1, duration_filter=duration)
        yield transactions.seen(f"longer than {duration} ms", reply)
    exact = open_.transactional_id.replace(".", "\\.")
    for step, pattern in (
        ("exact", exact),
        ("prefix", cluster.topics.name("id").replace(".", "\\.")),
        ("any", ".*"),
        ("empty", ""),
        ("none", "no such id"),
        ("invalid", "(open"),
    ):
        reply = _listed(cluster, client, transactional_id_pattern=pattern)
        yield transactions.seen(f"pattern: {step}", reply)
    yield transactions.seen("elsewhere", _listed(cluster, cluster.connect(cluster.second)))


@scenario(topology="2 partitions x 3 replicas", configs=QUICK_TRANSACTIONS)
def producers_of_a_partition_are_described(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Epoch, last sequence and start offset of an open transaction; only the leader returns them."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic(partitions=2)
    leader, follower = cluster.connect(cluster.first), cluster.connect(cluster.second)
    producer = transactions.producer()
    yield transactions.seen("none", _producers(leader, (topic.name, 0)))
    leader.produce(topic, b"plain")
    producer.produce(leader, topic, b"1", b"2")
    yield transactions.seen("open", _producers(leader, (topic.name, 0), (topic.name, 1)))
    transactions.ended(producer)
    yield transactions.seen("committed", _producers(leader, (topic.name, 0)))
    producer.produce(leader, topic, b"3")
    yield transactions.seen("next", _producers(leader, (topic.name, 0)))
    transactions.ended(producer, committed=False)
    yield transactions.seen("aborted", _producers(leader, (topic.name, 0)))
    yield transactions.seen("follower", _producers(follower, (topic.name, 0)))
    unknown = cluster.topics.unknown().name
    for step, where in (
        ("unknown topic", (unknown, 0)),
        ("unknown partition", (topic.name, 7)),
        ("invalid name", ("not/valid", 0)),
    ):
        yield transactions.seen(step, _producers(leader, where))
    yield transactions.seen("nothing", _producers(leader))


@scenario(topology="1 partition x 3 replicas", configs=QUICK_TRANSACTIONS)
def a_hanging_transaction_is_found_and_aborted(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The steps of kafka-transactions: the producer's state, the coordinator's state, and a marker."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    producer = transactions.producer()
    producer.produce(leader, topic, b"hangs")
    leader.produce(topic, b"plain")
    described = _producers(leader, (topic.name, 0))
    yield transactions.seen("producers", described)
    (found,) = described.message.topics[0].partitions[0].active_producers
    yield transactions.seen("coordinator", transactions.describe(producer))
    request = messages.WriteTxnMarkersRequest
    marker = request.WritableTxnMarker(
        found.producer_id,
        found.producer_epoch,
        False,
        [request.WritableTxnMarkerTopic(topic.name, [0])],
        max(found.coordinator_epoch, 0),
    )
    reply = leader.request(request([marker]), 1, messages.WriteTxnMarkersResponse)
    yield transactions.seen("abort", reply)
    yield transactions.read("free", leader, topic)
    yield transactions.seen("producers after it", _producers(leader, (topic.name, 0)))
    yield transactions.seen("coordinator after it", transactions.describe(producer))
    yield transactions.seen("the coordinator ends it too", producer.end(committed=False))
    transactions.completed(producer)
    yield transactions.read("end", leader, topic)
