"""Visibility of transactions to readers. Kafka: UnifiedLog, ProducerStateManager, TransactionIndex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.clients.broker_client import LATEST, Position
from broker_sim_integration.observations import at_once, at_timeout, untimed
from broker_sim_integration.scenarios.families.transactions.support.transactional_producer import PRODUCE_VERIFIES
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import (
    COMMITTED,
    QUICK_TRANSACTIONS,
    TransactionsUnderTest,
)
from broker_sim_integration.scenarios.helpers.mechanisms import at_next_fetch
from broker_sim_integration.scenarios.helpers.observe import concluded, deleted, listed, produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.clients.broker_client import BrokerClient
    from broker_sim_integration.clients.topics import Topic
    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

UNCOMMITTED: Final = 0
ENDS: Final = (("commit", True), ("abort", False))


def _both_views(
    transactions: TransactionsUnderTest, step: str, client: BrokerClient, topic: Topic
) -> Iterator[Observation]:
    yield transactions.read(f"{step}, committed", client, topic)
    yield transactions.read(f"{step}, uncommitted", client, topic, isolation_level=UNCOMMITTED)


@scenario(configs=QUICK_TRANSACTIONS)
def an_open_transaction_hides_what_comes_after_it(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A read_committed reader stops at the last stable offset; the commit lets it continue."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    producer = transactions.producer()
    leader.produce(topic, b"before")
    yield produced("in it", producer.produce(leader, topic, b"in", b"it"), at_once(), topic=topic)
    yield produced("after it", leader.produce(topic, b"after"), at_once(), topic=topic)
    yield from _both_views(transactions, "open", leader, topic)
    yield transactions.seen("commit", producer.end())
    transactions.completed(producer)
    yield from _both_views(transactions, "committed", leader, topic)


@scenario(configs=QUICK_TRANSACTIONS)
def an_aborted_transaction_is_named_to_readers(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its records are returned nevertheless; the list of aborted transactions shows which ones to skip."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    producer = transactions.producer()
    producer.produce(leader, topic, b"never")
    leader.produce(topic, b"plain")
    producer.produce(leader, topic, b"never too")
    yield transactions.seen("abort", producer.end(committed=False))
    transactions.completed(producer)
    yield from _both_views(transactions, "aborted", leader, topic)
    leader.produce(topic, b"after")
    for offset in (1, 3, 4):
        yield transactions.read(f"from {offset}", leader, topic, offset=offset)


@scenario(configs=QUICK_TRANSACTIONS)
def only_aborted_transactions_in_reach_are_named(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A fetch gets the aborted transactions whose records it may contain."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    first, second = transactions.producer(), transactions.producer()
    for number in range(3):
        first.produce(leader, topic, b"first %d" % number)
        second.produce(leader, topic, b"second %d" % number)
        transactions.ended(first, committed=False)
        transactions.ended(second, committed=number == 1)
    for offset in (0, 2, 3, 4, 6, 8, 9, 11):
        yield transactions.read(f"from {offset}", leader, topic, offset=offset)


@scenario(configs=QUICK_TRANSACTIONS)
def the_oldest_open_transaction_sets_the_last_stable_offset(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The first of three interleaved transactions holds back the records of the others."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    producers = [transactions.producer() for _ in range(3)]
    for text in (b"a", b"b"):
        for number, producer in enumerate(producers, 1):
            producer.produce(leader, topic, b"%d%s" % (number, text))
    for number, (producer, committed) in enumerate(
        zip((producers[1], producers[0], producers[2]), (True, False, True), strict=True)
    ):
        transactions.ended(producer, committed=committed)
        yield from _both_views(transactions, f"{number + 1} ended", leader, topic)


@scenario(topology="2 partitions x 3 replicas", configs=QUICK_TRANSACTIONS)
def a_waiting_reader_is_woken_by_the_marker(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A read_committed fetch is not woken by the records of a transaction, only by its end."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic(partitions=2)
    leader, reader = cluster.connect(cluster.first), cluster.connect(cluster.first)
    producer = transactions.producer()
    for partition, (end, committed) in enumerate(ENDS):
        pending = reader.start_fetch(Position(topic, partition), max_wait_ms=20_000, isolation_level=COMMITTED)
        producer.produce(leader, topic, b"1", b"2", partition=partition)
        cluster.wait(300)
        yield concluded(f"before the {end}", answered=pending.answered)
        producer.end(committed=committed)
        reason = untimed("the marker is written after EndTxn is answered")
        yield transactions.fetched(f"after the {end}", pending.result(), reason, topic, partition)
        transactions.completed(producer)


@scenario(configs=QUICK_TRANSACTIONS)
def a_reader_waits_in_vain_while_a_transaction_is_open(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Its fetch ends at its timeout without records, although there are uncommitted ones."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    producer = transactions.producer()
    producer.produce(leader, topic, b"open")
    leader.produce(topic, b"plain")
    reply = leader.fetch(topic, max_wait_ms=700, isolation_level=COMMITTED)
    yield transactions.fetched("at the start", reply, at_timeout(700), topic)
    reply = leader.fetch(topic, 1, max_wait_ms=700, isolation_level=COMMITTED)
    yield transactions.fetched("behind the stable offset", reply, at_once(), topic)
    reply = leader.fetch(topic, max_wait_ms=700)
    yield transactions.fetched("uncommitted", reply, at_once(), topic)
    reply = leader.fetch(topic, 7, max_wait_ms=700, isolation_level=COMMITTED)
    yield transactions.fetched("behind the end", reply, at_once(), topic)


@scenario(configs=QUICK_TRANSACTIONS)
def the_end_of_a_partition_depends_on_the_isolation_level(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """For committed readers ListOffsets returns the last stable offset; markers have offsets, too."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    producer = transactions.producer()

    def ends(step: str) -> Iterator[Observation]:
        for level, name in ((UNCOMMITTED, "uncommitted"), (COMMITTED, "committed")):
            reply = leader.list_offset(topic, LATEST, isolation_level=level)
            yield listed(f"{step}, {name}", reply, at_once())

    yield from ends("empty")
    leader.produce(topic, b"plain")
    producer.produce(leader, topic, b"1", b"2")
    yield from ends("open")
    reply = leader.list_offset(topic, 0, isolation_level=COMMITTED)
    yield listed("by time, open", reply, at_once())
    transactions.ended(producer)
    yield from ends("committed")
    producer.produce(leader, topic, b"3")
    yield from ends("open again")
    transactions.ended(producer, committed=False)
    yield from ends("aborted")


@scenario(topology="3 partitions, each led by another broker", configs=QUICK_TRANSACTIONS)
def a_transaction_ends_in_all_its_partitions(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Each leader writes its marker, also in a partition that was added and never written to."""
    transactions = TransactionsUnderTest(cluster)
    first, second, third = cluster.first, cluster.second, cluster.third
    turns = [(first, second, third), (second, third, first), (third, first, second)]
    topic = transactions.topic(assignments=turns)
    leaders = [cluster.connect(broker) for broker in (first, second, third)]
    producer = transactions.producer(second)
    for end, committed in ENDS:
        added = producer.add_partitions(*((topic, partition) for partition in range(3)))
        yield transactions.seen(f"add, {end}", added)
        for partition, leader in enumerate(leaders[:2]):
            producer.produce(leader, topic, b"%d" % partition, partition=partition, version=PRODUCE_VERIFIES)
        yield transactions.seen(f"open, {end}", transactions.describe(producer))
        yield transactions.seen(end, producer.end(committed=committed))
        transactions.completed(producer)
        for partition, leader in enumerate(leaders):
            yield transactions.read(f"{end}, {partition}", leader, topic, partition=partition)
        yield transactions.seen(f"over, {end}", transactions.describe(producer))


@scenario(configs=QUICK_TRANSACTIONS)
def deleted_records_end_where_a_transaction_is_open(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """DeleteRecords deletes up to the high watermark, across an open transaction, which can still end."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    producer = transactions.producer()
    leader.produce(topic, b"plain")
    producer.produce(leader, topic, b"1", b"2")
    leader.produce(topic, b"plain")
    yield deleted("into it", leader.start_delete_records(topic, 2).result(), at_next_fetch())
    yield transactions.read("from 2", leader, topic, offset=2)
    yield deleted("all", leader.start_delete_records(topic, -1).result(), at_next_fetch())
    yield transactions.read("from 4", leader, topic, offset=4)
    transactions.ended(producer, committed=False)
    yield transactions.read("aborted", leader, topic, offset=4)


@scenario(configs=QUICK_TRANSACTIONS)
def a_follower_shows_the_same_transactions(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """A reader of a follower gets the follower's last stable offset and list of aborted transactions."""
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader, follower = cluster.connect(cluster.first), cluster.connect(cluster.second)
    first, second = transactions.producer(), transactions.producer()
    first.produce(leader, topic, b"first")
    second.produce(leader, topic, b"second")
    transactions.ended(first, committed=False)
    leader.produce(topic, b"plain")

    def replicated(high_watermark: int) -> bool:
        reply = follower.fetch(topic, max_wait_ms=0)
        return reply.message.responses[0].partitions[0].high_watermark == high_watermark

    cluster.wait_until(lambda: replicated(4), "the follower has all of it")
    yield transactions.read("open", follower, topic)
    transactions.ended(second)
    cluster.wait_until(lambda: replicated(5), "the follower has the marker")
    yield transactions.read("ended", follower, topic)
