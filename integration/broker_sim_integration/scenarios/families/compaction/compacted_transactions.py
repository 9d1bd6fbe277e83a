"""Transactions in a compacted topic. Kafka: CleanedTransactionMetadata, Cleaner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_sim_integration.scenarios.families.compaction.support.compacted_topic import (
    ONE_REPLICA,
    QUICK_CLEANING,
    CompactedTopic,
)
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import TransactionsUnderTest
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def records_of_aborted_transactions_go(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """They hide no older value, a committed record does; an open transaction ends the cleanable part of the log."""
    transactions = TransactionsUnderTest(cluster)
    topic = CompactedTopic(cluster)
    producer = transactions.producer()
    topic.append((b"a", b"before"))
    topic.append((b"b", b"before"))
    topic.append_in(producer, (b"a", b"aborted"))
    transactions.ended(producer, committed=False)
    topic.append_in(producer, (b"b", b"committed"))
    transactions.ended(producer)
    topic.append_in(producer, (b"c", b"open"))
    topic.append_values(b"a", b"after", b"last")
    topic.clean_to("0 a=before", "4 b=committed", "6 c=open", "7 a=after", "8 a=last")
    yield topic.seen("one is open")
    transactions.ended(producer, committed=False)
    topic.append((b"d", b"1"))
    topic.clean_to("4 b=committed", "8 a=last", "10 d=1")
    yield topic.seen("aborted")
    yield transactions.read("committed", topic.leader, topic.topic, offset=2)


@scenario(topology=ONE_REPLICA, configs=QUICK_CLEANING)
def a_marker_goes_after_the_records_of_its_transaction(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """The first cleaning without any of its records writes a delete horizon; a later one drops the marker."""
    transactions = TransactionsUnderTest(cluster)
    topic = CompactedTopic(cluster, delete_retention_ms="0")
    first, second = transactions.producer(), transactions.producer()
    for producer, committed in ((first, False), (first, True), (second, True)):
        topic.append_in(producer, (b"a", b"v"))
        transactions.ended(producer, committed=committed)
    for number in range(4):
        topic.append((b"b", b"%d" % number))
        topic.append((b"c", b"%d" % number))
        end = 6 + 2 * number
        topic.clean_to(*_after_round(number, end))
        yield topic.seen(f"cleaning {number + 1}")


def _after_round(number: int, end: int) -> list[str]:
    """Return the remaining data records after round `number`, in which b and c are appended once more."""
    older = [f"{end - 1} c={number - 1}"] if number else []
    return ["4 a=v", *older, f"{end} b={number}", f"{end + 1} c={number}"]
