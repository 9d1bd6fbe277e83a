"""The abort of an open transaction after its timeout. Kafka: TransactionCoordinator.abortTimedOutTransactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker_sim_integration.observations import Observation, on_event
from broker_sim_integration.scenarios.families.transactions.support.transactions_under_test import (
    QUICK_TRANSACTIONS,
    TransactionsUnderTest,
)
from broker_sim_integration.scenarios.scenario import scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker_sim_integration.cluster_under_test.cluster_under_test import ClusterUnderTest
    from broker_sim_integration.scenarios.families.transactions.support.transactional_producer import (
        TransactionalProducer,
    )

TRANSACTION_MS: Final = 1000
ABORT_CHECK_MS: Final = 100
"""`transaction.abort.timed.out.transaction.cleanup.interval.ms` of these clusters."""
REPEATS: Final = 3


@scenario(configs=QUICK_TRANSACTIONS)
def an_open_transaction_is_aborted_in_time(cluster: ClusterUnderTest) -> Iterator[Observation]:
    """Three times the coordinator decides to abort it, at its check.

    One abort before that is not judged: Kafka takes longer for the first of a kind. The time of the markers is
    not judged: Kafka sends them at once or half a second later.
    """
    transactions = TransactionsUnderTest(cluster)
    topic = transactions.topic()
    leader = cluster.connect(cluster.first)
    for attempt in range(REPEATS + 1):
        producer = transactions.producer(timeout_ms=TRANSACTION_MS)
        begun = producer.produce(leader, topic, b"late")
        cluster.wait(TRANSACTION_MS / 2)

        def is_aborted(producer: TransactionalProducer = producer) -> bool:
            (described,) = transactions.describe(producer).message.transaction_states
            return described.transaction_state != "Ongoing"

        aborted_ms = cluster.wait_until(is_aborted, "the transaction is aborted")
        due = on_event(
            begun.answered_ms + TRANSACTION_MS - begun.sent_ms,
            earliest_ms=TRANSACTION_MS,
            spread_ms=ABORT_CHECK_MS,
            reason="the coordinator looks for such transactions every 100 ms",
        )
        if attempt > 0:
            yield Observation(
                "aborted", elapsed_ms=aborted_ms - begun.sent_ms, answered_ms=aborted_ms, timing=due, attempt=attempt
            )
        transactions.wait_for_state(producer, "CompleteAbort")
