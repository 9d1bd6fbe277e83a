"""Producers that may continue with a transactional id, and zombies. Kafka: TransactionCoordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker_sim.errors import ErrorCode
from broker_sim_integration.clients.groups import Offset
from broker_sim_integration.observations import at_once, untimed
from broker_sim_integration.scenarios.families.transactions.support.transactional_producer import (
    PRODUCE_ADDS,
    PRODUCE_VERIFIES,
    TransactionalProducer,
)
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import (
    QUICK_TRANSACTIONS,
    TransactionsUnderTest,
)
from broker_sim_integration.scenarios.helpers.groups import ready_group
from broker_sim_integration.scenarios.helpers.observe import concluded, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.raw_client import Reply
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

SHORT_TIMEOUT_MS: Final = 1000
MAX_TIMEOUT_MS: Final = 900_000


def _initialised(transactions: TransactionsUnderTest, step: str, producer: TransactionalProducer) -> Observation:
    """Initialise the producer, repeatedly while a transaction is in progress, and observe the last response."""
    reply = producer.init()
    while reply.message.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
        transactions.completed(producer)
        reply = producer.init()
    return transactions.seen(step, reply, untimed("once the open transaction has been aborted"))


@scenario(configs=QUICK_TRANSACTIONS)
def a_zombie_is_fenced_by_its_successor(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each request of the older producer of an id gets an error, in each API and version with its own code."""
    reply: Reply[Any]
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    group = ready_group(cluster)
    zombie = transactions.producer()
    zombie.produce(leader, topic, b"lost")
    heir = zombie.again()
    yield transactions.seen("init", heir.init())
    transactions.wait_for_state(zombie, "CompleteAbort")
    yield _initialised(transactions, "init again", heir)
    for version in (PRODUCE_VERIFIES, PRODUCE_ADDS):
        reply = zombie.produce(leader, topic, b"zombie", version=version)
        yield produced(f"produce v{version}", reply, at_once(), topic=topic)
    for version in range(4):
        reply = zombie.add_partitions((topic, 0), version=version)
        yield transactions.seen(f"add partitions v{version}", reply)
    for version in range(5):
        yield transactions.seen(f"add offsets v{version}", zombie.add_offsets(group.name, version=version))
    for version in range(6):
        yield transactions.seen(f"end v{version}", zombie.again().end(version=version))
        reply = zombie.commit_offsets(group.tool, group.name, Offset(topic, 0, 1), version=version)
        yield transactions.seen(f"commit offsets v{version}", reply)
    for version in range(3, 6):
        reply = zombie.again().init(producer_id=zombie.producer_id, epoch=zombie.epoch, version=version)
        yield transactions.seen(f"init as itself v{version}", reply)
    yield transactions.read("read", leader, topic)


@scenario(configs=QUICK_TRANSACTIONS)
def a_new_producer_aborts_what_its_predecessor_left_open(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """CONCURRENT_TRANSACTIONS until the markers are written; then it gets the next epoch."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    for version in (0, 1, 2, 3, 4, 5):
        old = transactions.producer()
        old.produce(leader, topic, b"v%d" % version)
        new = old.again()
        yield transactions.seen(f"init v{version}", new.init(version=version))
        transactions.completed(new)
        yield transactions.seen(f"again v{version}", new.init(version=version))
        yield concluded(f"epochs v{version}", old=old.epoch, new=new.epoch)
    yield transactions.read("read", leader, topic)


@scenario(topology="no topic", configs=QUICK_TRANSACTIONS)
def a_producer_bumps_its_own_epoch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """KIP-360: a producer that sends its id and epoch gets the next epoch, also when repeated; older ones fail."""
    transactions = TransactionsUnderTest(cluster)
    producer = transactions.producer()
    known, epoch = producer.producer_id, producer.epoch
    for step, asked_id, asked_epoch in (
        ("bump", known, epoch),
        ("repeated", known, epoch),
        ("bump again", known, epoch + 1),
        ("older", known, epoch),
        ("newer", known, epoch + 7),
        ("another id", known + 1_000_000, epoch),
        ("id without epoch", known, -1),
        ("epoch without id", -1, epoch),
    ):
        other = producer.again()
        yield transactions.seen(step, other.init(producer_id=asked_id, epoch=asked_epoch))
    yield transactions.seen("plain", producer.init())


@scenario(configs=QUICK_TRANSACTIONS)
def a_transaction_whose_time_is_over_is_aborted(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The coordinator aborts it in the next epoch, and its producer is fenced."""
    reply: Reply[Any]
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    producer = transactions.producer(timeout_ms=SHORT_TIMEOUT_MS)
    yield produced("in time", producer.produce(leader, topic, b"late"), at_once(), topic=topic)
    leader.produce(topic, b"plain")
    yield transactions.read("open", leader, topic)
    transactions.wait_for_state(producer, "CompleteAbort")
    yield transactions.read("aborted", leader, topic)
    yield transactions.seen("described", transactions.describe(producer))
    for version in (PRODUCE_VERIFIES, PRODUCE_ADDS):
        reply = producer.produce(leader, topic, b"zombie", version=version)
        yield produced(f"produce v{version}", reply, at_once(), topic=topic)
    yield transactions.seen("add", producer.add_partitions((topic, 0)))
    yield transactions.seen("end", producer.again().end())
    reply = producer.again().init(producer_id=producer.producer_id, epoch=producer.epoch)
    yield transactions.seen("init as itself", reply)
    yield transactions.seen("init", producer.init())
    yield produced("anew", producer.produce(leader, topic, b"anew"), at_once(), topic=topic)
    yield transactions.seen("commit", producer.end())


@scenario(topology="no topic", configs=QUICK_TRANSACTIONS)
def the_timeout_of_transactions_has_bounds(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """INVALID_TRANSACTION_TIMEOUT above `transaction.max.timeout.ms`, and for 0 or negative timeouts."""
    transactions = TransactionsUnderTest(cluster)
    for timeout_ms in (1000, 0, -1, MAX_TIMEOUT_MS, MAX_TIMEOUT_MS + 1, 2**31 - 1):
        producer = transactions.uninitialised()
        yield transactions.seen(f"{timeout_ms} ms", producer.init(timeout_ms=timeout_ms))


@scenario(configs=QUICK_TRANSACTIONS)
def sequences_begin_anew_with_each_epoch(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A gap gets OUT_OF_ORDER_SEQUENCE_NUMBER; a duplicate of an older epoch is fenced, not recognised."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    producer = transactions.producer()

    def attempts(step: str, *sequences: int) -> Iterator[Observation]:
        for sequence in sequences:
            reply = producer.produce(leader, topic, b"%d" % sequence, sequence=sequence)
            yield produced(f"{step}, sequence {sequence}", reply, at_once(), topic=topic)

    yield from attempts("first", 0, 1, 1, 0, 3, 2)
    old = producer.again()
    yield transactions.seen("commit", producer.end())
    transactions.completed(producer)
    yield from attempts("second", 3, 1, 0, 0, 2, 1)
    reply = old.produce(leader, topic, b"old", sequence=2)
    yield produced("older epoch, duplicate", reply, at_once(), topic=topic)
    reply = old.produce(leader, topic, b"old", sequence=3)
    yield produced("older epoch, next", reply, at_once(), topic=topic)
    reply = producer.produce(leader, topic, b"new", sequence=0, epoch=producer.epoch + 1)
    yield produced("newer epoch", reply, at_once(), topic=topic)
    yield transactions.seen("abort", producer.end(committed=False))
    transactions.completed(producer)
    yield transactions.read("read", leader, topic)


@scenario(configs=QUICK_TRANSACTIONS)
def a_producer_is_transactional_or_not(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A plain batch within an open transaction, and a transactional batch without an id, get errors."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    producer = transactions.producer()
    reply = producer.produce(leader, topic, b"plain", is_transactional=False)
    yield produced("plain, nothing open", reply, at_once(), topic=topic)
    yield produced("open", producer.produce(leader, topic, b"1"), at_once(), topic=topic)
    reply = producer.produce(leader, topic, b"plain", is_transactional=False)
    yield produced("plain, open", reply, at_once(), topic=topic)
    nobody = producer.again()
    nobody.transactional_id = ""
    for version in (PRODUCE_VERIFIES, PRODUCE_ADDS):
        reply = nobody.produce(leader, topic, b"nobody", sequence=2, version=version)
        yield produced(f"empty id, open, v{version}", reply, at_once(), topic=topic)
    yield transactions.seen("commit", producer.end())
    transactions.completed(producer)
    nobody = producer.again()
    nobody.transactional_id = ""
    for version in (PRODUCE_VERIFIES, PRODUCE_ADDS):
        reply = nobody.produce(leader, topic, b"nobody", sequence=0, version=version)
        yield produced(f"empty id, over, v{version}", reply, at_once(), topic=topic)


@scenario(configs=QUICK_TRANSACTIONS)
def an_end_may_be_repeated(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A client that lost the response repeats it with the previous epoch; a different end gets an error."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    for version in (4, 5):
        producer = transactions.producer()
        producer.produce(leader, topic, b"v%d" % version)
        old = producer.again()
        yield transactions.seen(f"commit v{version}", producer.end(version=version))
        transactions.completed(producer)
        again = old.again()
        yield transactions.seen(f"repeated v{version}", again.end(version=version))
        other = old.again()
        reply = other.end(committed=False, version=version)
        yield transactions.seen(f"abort after it v{version}", reply)
        yield transactions.seen(f"as it is now v{version}", producer.again().end(version=version))
        yield transactions.seen(f"described v{version}", transactions.describe(producer))
