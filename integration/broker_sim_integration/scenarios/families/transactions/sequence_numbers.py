"""Sequence numbers of transactional producers, from one transaction to the next. Kafka: ProducerStateManager."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.observations import at_once
from broker_sim_integration.scenarios.families.transactions.support.transactional_producer import PRODUCE_VERIFIES
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import (
    QUICK_TRANSACTIONS,
    TransactionsUnderTest,
)
from broker_sim_integration.scenarios.helpers.observe import produced
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.observations import Observation

LAST_WITHOUT_EPOCH: Final = 4
"""Last version of EndTxn after which a producer keeps its epoch, and so its sequence numbers."""
NAMES_EPOCH: Final = 5


@scenario(configs=QUICK_TRANSACTIONS)
def a_sequence_number_used_again_after_an_abort_loses_its_record(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """In the same epoch the leader takes another record for the aborted one: after the commit there is no record.

    This happens to librdkafka, which counts a record that it discarded at the abort as never sent,
    although its request had arrived. The epoch raised by EndTxn 5 protects against it.
    """
    transactions = TransactionsUnderTest(cluster)
    for version in (LAST_WITHOUT_EPOCH, NAMES_EPOCH):
        topic = transactions.topic()
        leader = cluster.connect(cluster.first)
        producer = transactions.producer()
        for step, sequence, committed in (("given up", 0, False), ("used again", 0, True), ("next", 1, True)):
            if version == LAST_WITHOUT_EPOCH:
                producer.add_partitions((topic, 0))
                reply = producer.produce(leader, topic, step.encode(), sequence=sequence, version=PRODUCE_VERIFIES)
            else:
                reply = producer.produce(leader, topic, step.encode(), sequence=0)
            yield produced(f"{step}, v{version}", reply, at_once(), topic=topic)
            yield transactions.seen(f"end of {step}, v{version}", producer.end(committed=committed, version=version))
            transactions.completed(producer)
        yield transactions.read(f"committed, v{version}", leader, topic)
