"""What the check of transactions excuses: a decision of a resumed coordinator, and another one of its successor."""

from functools import partial

import pytest

from broker_sim.cluster.random_run import RunFailedError
from broker_sim.cluster.random_run import run as random_run
from broker_sim.cluster.random_run.checks.history import History
from broker_sim.cluster.random_run.checks.transaction_checks import (
    check_transactions,
    is_fenced_by_a_resumed_coordinator,
)
from broker_sim.cluster.random_run.checks.transaction_history import Outcome, TransactionHistory
from broker_sim.cluster.random_run.schedule import TOPIC, Schedule
from broker_sim.cluster.virtual.invariants import InvariantViolationError
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import Record, build_batch, build_end_txn_marker

READ, UNREAD = b"read", b"unread"


def cluster_with(*markers):
    """Return a cluster with a value in each of two partitions, and behind it a marker."""
    cluster = VirtualCluster(1, seed=1)
    cluster.create_topic(TOPIC, partitions=2, replication_factor=1)
    for number, (value, (is_commit, epoch)) in enumerate(zip((READ, UNREAD), markers, strict=True)):
        log = cluster.nodes.brokers[1].replica_manager.partitions[TopicPartition(TOPIC, number)].log
        now_ms = log.clock.wall_clock_ms()
        producer = {"producer_id": 7, "producer_epoch": 0}
        record = Record(value, timestamp=now_ms)
        batch = build_batch([record], **producer, base_sequence=0, is_transactional=True)
        guard = log.producer_state.maybe_start_verification(
            7, 0, 0, now_ms, supports_epoch_bump=True
        )
        log.append_as_leader(batch, 0, verification_guard=guard)
        marker = build_end_txn_marker(
            **producer, is_commit=is_commit, timestamp=now_ms, coordinator_epoch=epoch
        )
        log.append_as_leader(marker, 0, "coordinator")
    return cluster


def check(cluster, resumed, outcome=Outcome.IN_DOUBT):
    history = TransactionHistory()
    transaction = history.begin("id", "producer")
    transaction.outcome = outcome
    transaction.written[0].append(READ)
    transaction.written[1].append(UNREAD)
    transaction.seen.add(READ)
    check_transactions(
        cluster, Schedule(1, partitions=2), History(reads_are_final=True), history, resumed
    )


def test_commit_of_a_resumed_coordinator_may_be_followed_by_an_abort():
    check(cluster_with((True, 3), (False, 4)), {3})


@pytest.mark.parametrize(
    ("markers", "resumed", "outcome"),
    [
        pytest.param(((True, 3), (False, 4)), set(), Outcome.IN_DOUBT, id="not resumed"),
        pytest.param(((True, 3), (False, 4)), {4}, Outcome.IN_DOUBT, id="the other resumed"),
        pytest.param(((True, 3), (False, 4)), {3}, Outcome.COMMITTED, id="acknowledged"),
        pytest.param(((True, 3), (False, 3)), {3}, Outcome.IN_DOUBT, id="one coordinator"),
        pytest.param(((True, 4), (False, 3)), {3, 4}, Outcome.IN_DOUBT, id="abort comes first"),
        pytest.param(((True, 3), (True, 3)), {3}, Outcome.IN_DOUBT, id="committed, not read"),
        pytest.param(((False, 3), (False, 4)), {3}, Outcome.IN_DOUBT, id="aborted, and read"),
        pytest.param(((False, 4), (True, 3)), {3}, Outcome.IN_DOUBT, id="the other was read"),
    ],
)
def test_anything_else_that_is_read_in_part_is_noticed(markers, resumed, outcome):
    with pytest.raises(InvariantViolationError) as caught:
        check(cluster_with(*markers), resumed, outcome)
    assert caught.value.invariant == "committed-transactions-are-read"


FENCED_BY_A_RESUMED_COORDINATOR = """\
seed=2217930870 brokers=3 latency_ms=0 duration_ms=2000 replication_factor=2 producers= consumers=0 \
transactional=0,1 transaction_version=1
1000 kill leader for=100
2000 roll brokers
"""


def test_transaction_whose_markers_a_resumed_coordinator_has_fenced_never_ends(monkeypatch):
    schedule = Schedule.parse(FENCED_BY_A_RESUMED_COORDINATOR)
    assert random_run.run_schedule(schedule).transactions_committed
    of_no_resumed_one = partial(is_fenced_by_a_resumed_coordinator, resumed_epochs=frozenset())
    monkeypatch.setattr(
        random_run,
        is_fenced_by_a_resumed_coordinator.__name__,
        lambda cluster, schedule, _: of_no_resumed_one(cluster, schedule),
    )
    with pytest.raises(RunFailedError, match="transactions-end"):
        random_run.run_schedule(schedule)
