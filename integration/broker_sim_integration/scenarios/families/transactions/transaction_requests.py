"""Responses of each transaction API to requests that cannot be served. Kafka: TransactionCoordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim.protocol import messages
from broker_sim_integration.clients.groups import TRANSACTION_KEY, Offset, find_coordinator, find_coordinators
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import (
    QUICK_TRANSACTIONS,
    TransactionsUnderTest,
)
from broker_sim_integration.scenarios.helpers.groups import ready_group
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation
    from broker_sim_integration.scenarios.families.transactions.support.transactional_producer import (
        TransactionalProducer,
    )

LAST_INIT: Final = 6
LAST_ADD_PARTITIONS: Final = 4
LAST_ADD_OFFSETS: Final = 5
LAST_END: Final = 6
LAST_TXN_OFFSETS: Final = 6


def _strangers(
    producer: TransactionalProducer, unknown: TransactionalProducer
) -> Iterator[tuple[str, TransactionalProducer]]:
    """Yield copies of this producer with an id, producer id or epoch that the coordinator does not know."""
    for step, transactional_id, producer_id, epoch in (
        ("unknown id", unknown.transactional_id, 0, 0),
        ("empty id", "", 0, 0),
        ("another producer id", None, 1_000_000, 0),
        ("producer id -1", None, -1 - producer.producer_id, 0),
        ("older epoch", None, 0, -1),
        ("newer epoch", None, 0, 1),
    ):
        other = producer.again()
        if transactional_id is not None:
            other.transactional_id = transactional_id
        other.producer_id += producer_id
        other.epoch += epoch
        yield step, other


def _with_history(transactions: TransactionsUnderTest) -> TransactionalProducer:
    """Return a producer in its second epoch."""
    producer = transactions.producer()
    producer.init()
    return producer


@scenario(topology="no topic", configs=QUICK_TRANSACTIONS)
def ids_are_given_to_valid_requests_only(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_REQUEST for an empty transactional id, and for a producer id without an epoch or the reverse."""
    transactions = TransactionsUnderTest(cluster)
    producer = transactions.uninitialised()
    empty = producer.again()
    empty.transactional_id = ""
    for version in range(LAST_INIT):
        yield transactions.seen(f"empty id v{version}", empty.init(version=version))
    for version in range(3, LAST_INIT):
        new = transactions.uninitialised()
        for step, producer_id, epoch in (
            ("identity of nobody", 5_000_000, 3),
            ("id only", 5_000_000, -1),
            ("epoch only", -1, 3),
        ):
            reply = new.again().init(producer_id=producer_id, epoch=epoch, version=version)
            yield transactions.seen(f"{step} v{version}", reply)
        yield transactions.seen(f"described v{version}", transactions.describe(new))
        yield transactions.seen(f"valid v{version}", new.init(version=version))


@scenario(topology="2 partitions x 1 replica", configs=QUICK_TRANSACTIONS)
def partitions_are_added_by_their_producer_only(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED and others; one unknown partition fails the whole request."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic([cluster.first], partitions=2)
    no_topic = cluster.topics.unknown()
    unknown = transactions.uninitialised()
    producer = _with_history(transactions)
    for version in range(LAST_ADD_PARTITIONS):
        for step, other in _strangers(producer, unknown):
            reply = other.add_partitions((topic, 0), version=version)
            yield transactions.seen(f"{step} v{version}", reply)
        reply = producer.add_partitions((topic, 0), (topic, 7), (no_topic, 0), version=version)
        yield transactions.seen(f"unknown partitions v{version}", reply)
        yield transactions.seen(f"none v{version}", producer.add_partitions(version=version))
    yield transactions.seen("described", transactions.describe(producer))
    yield transactions.seen("valid", producer.add_partitions((topic, 0), (topic, 1)))
    yield transactions.seen("again", producer.add_partitions((topic, 1)))
    yield transactions.seen("then", transactions.describe(producer))


@scenario(topology="2 partitions x 1 replica", configs=QUICK_TRANSACTIONS)
def brokers_add_and_verify_partitions_of_several_producers(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """AddPartitionsToTxn 4 and 5, which leaders send: one result per transaction."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic([cluster.first], partitions=2)
    unknown = transactions.uninitialised()
    for version in (4, 5):
        producer = _with_history(transactions)
        for verify_only in (True, False):
            kind = f"{'verify' if verify_only else 'add'} v{version}"
            for step, other in _strangers(producer, unknown):
                reply = other.add_as_broker((topic, 0), verify_only=verify_only, version=version)
                yield transactions.seen(f"{kind}, {step}", reply)
            partitions = (topic, 0), (cluster.topics.unknown(), 0)
            reply = producer.add_as_broker(*partitions, verify_only=verify_only, version=version)
            yield transactions.seen(f"{kind}, unknown partition", reply)
            reply = producer.add_as_broker((topic, 0), verify_only=verify_only, version=version)
            yield transactions.seen(kind, reply)
        reply = producer.add_as_broker((topic, 0), (topic, 1), verify_only=True, version=version)
        yield transactions.seen(f"one of two verified v{version}", reply)
        producer.end(version=4)
        transactions.completed(producer)
        reply = producer.add_as_broker((topic, 0), verify_only=True, version=version)
        yield transactions.seen(f"verified after the end v{version}", reply)


@scenario(topology="a group", configs=QUICK_TRANSACTIONS)
def offsets_are_added_by_their_producer_only(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """AddOffsetsToTxn has the errors of AddPartitionsToTxn; the group need not exist."""
    transactions = TransactionsUnderTest(cluster)
    group = ready_group(cluster)
    unknown = transactions.uninitialised()
    producer = _with_history(transactions)
    for version in range(LAST_ADD_OFFSETS):
        for step, other in _strangers(producer, unknown):
            reply = other.add_offsets(group.name, version=version)
            yield transactions.seen(f"{step} v{version}", reply)
    yield transactions.seen("empty group", producer.add_offsets(""))
    yield transactions.seen("valid", producer.add_offsets(group.name))


@scenario(topology="1 partition x 1 replica", configs=QUICK_TRANSACTIONS)
def a_transaction_is_ended_by_its_producer_only(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The errors of EndTxn, for transactions that are open and for those that are not."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic([cluster.first])
    unknown = transactions.uninitialised()
    for version in range(LAST_END):
        producer = _with_history(transactions)
        for state in ("empty", "open"):
            if state == "open":
                producer.add_partitions((topic, 0))
            for step, other in _strangers(producer, unknown):
                reply = other.end(version=version)
                yield transactions.seen(f"{step}, {state}, v{version}", reply)
        yield transactions.seen(f"described v{version}", transactions.describe(producer))


@scenario(topology="a group", configs=QUICK_TRANSACTIONS)
def offsets_are_committed_by_their_producer_only(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The transaction coordinator's checks come first, then those of the group coordinator."""
    transactions = TransactionsUnderTest(cluster)
    group = ready_group(cluster)
    topic = transactions.topic([cluster.first])
    unknown = transactions.uninitialised()
    for version in range(LAST_TXN_OFFSETS):
        producer = _with_history(transactions)
        producer.add_offsets(group.name)
        for step, other in _strangers(producer, unknown):
            reply = other.commit_offsets(group.tool, group.name, Offset(topic, 0, 1), version=version)
            yield transactions.seen(f"{step} v{version}", reply)
        elsewhere = cluster.connect(cluster.second)
        reply = producer.commit_offsets(elsewhere, group.name, Offset(topic, 0, 1), version=version)
        yield transactions.seen(f"another broker v{version}", reply)
        reply = producer.commit_offsets(group.tool, group.name, Offset(topic, 0, 1), version=version)
        yield transactions.seen(f"valid v{version}", reply)


@scenario(topology="a group, 1 partition", configs=QUICK_TRANSACTIONS)
def another_broker_does_not_coordinate_the_transaction(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """NOT_COORDINATOR, in the form of each API."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic([cluster.first])
    producer = transactions.producer()
    elsewhere = producer.again(cluster.connect(cluster.second))
    for version in range(LAST_INIT):
        yield transactions.seen(f"init v{version}", elsewhere.again().init(version=version))
    for version in range(LAST_ADD_PARTITIONS):
        reply = elsewhere.add_partitions((topic, 0), version=version)
        yield transactions.seen(f"add partitions v{version}", reply)
    for verify_only in (True, False):
        reply = elsewhere.add_as_broker((topic, 0), verify_only=verify_only)
        yield transactions.seen(f"as broker, verify only {verify_only}", reply)
    for version in range(LAST_ADD_OFFSETS):
        yield transactions.seen(f"add offsets v{version}", elsewhere.add_offsets("g", version=version))
    for version in range(LAST_END):
        yield transactions.seen(f"end v{version}", elsewhere.end(version=version))
    yield transactions.seen("describe", transactions.describe(elsewhere))


@scenario(topology="no topic", configs=QUICK_TRANSACTIONS)
def coordinators_of_transactions_are_found_by_key(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """FindCoordinator by transactional id, one or several; the empty id has a coordinator, too."""
    transactions = TransactionsUnderTest(cluster)
    producer, other = transactions.producer(), transactions.producer(cluster.second)
    client = cluster.connect(cluster.third)
    for version in range(1, 4):
        reply = find_coordinator(client, producer.transactional_id, key_type=TRANSACTION_KEY, version=version)
        yield transactions.seen(f"one v{version}", reply)
    for version in range(4, 7):
        ids = producer.transactional_id, other.transactional_id
        reply = find_coordinators(client, *ids, key_type=TRANSACTION_KEY, version=version)
        yield transactions.seen(f"two v{version}", reply)
    reply = find_coordinators(client, key_type=TRANSACTION_KEY)
    yield transactions.seen("none", reply)


@scenario(configs=QUICK_TRANSACTIONS)
def markers_are_written_for_who_asks(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """WriteTxnMarkers of a client: unknown partitions, old epochs, a hanging transaction that is aborted."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader, follower = cluster.connect(cluster.first), cluster.connect(cluster.second)
    producer = transactions.producer()
    producer.produce(leader, topic, b"hanging")

    def marker(
        step: str,
        *names: str,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        committed: bool = False,
        version: int = 2,
        client: object = None,
        partition: int = 0,
        transaction_version: int = 0,
    ) -> Observation:
        request = messages.WriteTxnMarkersRequest
        written = request.WritableTxnMarker(
            producer.producer_id,
            producer.epoch + epoch,
            committed,
            [request.WritableTxnMarkerTopic(name, [partition]) for name in names],
            coordinator_epoch,
        )
        if version > 1:
            written.transaction_version = transaction_version
        asked = follower if client is follower else leader
        reply = asked.request(request([written]), version, messages.WriteTxnMarkersResponse)
        return transactions.seen(step, reply)

    unknown = cluster.topics.unknown().name
    yield marker("nothing")
    yield marker("unknown topic", unknown)
    yield marker("unknown partition", topic.name, partition=7)
    yield marker("to a follower", topic.name, client=follower)
    yield marker("older epoch", topic.name, epoch=-1)
    yield marker("same epoch, as version 2", topic.name, transaction_version=2)
    yield transactions.read("hanging", leader, topic)
    yield marker("abort", topic.name, unknown)
    yield transactions.read("aborted", leader, topic)
    yield marker("again v1", topic.name, version=1)
    yield marker("newer epoch", topic.name, epoch=3, committed=True)
    yield marker("back", topic.name)
    yield marker("older coordinator", topic.name, epoch=3, coordinator_epoch=-1)
    yield marker("newer coordinator", topic.name, epoch=3, coordinator_epoch=100)
    yield marker("old coordinator again", topic.name, epoch=3, coordinator_epoch=50)
    yield transactions.read("all", leader, topic)
    reply = leader.request(messages.WriteTxnMarkersRequest(), 1, messages.WriteTxnMarkersResponse)
    yield transactions.seen("no marker", reply)
