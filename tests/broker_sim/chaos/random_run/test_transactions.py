"""Transactions in random runs: what must hold holds, and what does not is told."""

from types import SimpleNamespace

import pytest

from broker_sim.chaos.faults.action import broker_name
from broker_sim.chaos.random_run import Action, Schedule, draw_schedule, run_schedule
from broker_sim.chaos.random_run.checks.end_checks import check_transactions
from broker_sim.chaos.random_run.checks.history import Acknowledged
from broker_sim.chaos.random_run.checks.transaction_history import OffsetStep, Outcome, TransactionHistory
from broker_sim.chaos.random_run.schedule import TOPIC
from broker_sim.cluster.virtual.invariants import InvariantViolationError
from broker_sim.protocol.special_values import ACKS_ALL


def transactions_of(*ids, actions=(), version=2, seed=1, duration_ms=4_000, partitions=2):
    """Return a run of transactional producers alone."""
    return Schedule(
        seed,
        partitions=partitions,
        producers=(),
        consumers=0,
        transactional=ids,
        transaction_version=version,
        duration_ms=duration_ms,
        actions=tuple(sorted(actions)),
    )


def moves(*brokers, every_ms=600):
    """Return actions that give transactions and groups one coordinator after the other."""
    return [
        Action(1_000 + every_ms * index, kind, (broker_name(broker),))
        for index, broker in enumerate(brokers)
        for kind in ("move_transactions", "move_groups")
    ]


def kills(*brokers, every_ms=1_000):
    """Return actions that kill one broker after the other."""
    return [
        Action(1_000 + every_ms * index, "kill", (broker_name(broker),), 700) for index, broker in enumerate(brokers)
    ]


VERSIONS = (1, 2)


@pytest.mark.parametrize("version", VERSIONS)
def test_transactions_are_committed_aborted_and_fenced(version):
    summary = run_schedule(transactions_of(0, 0, 1, version=version, duration_ms=8_000))
    assert summary.transactions_committed > 10
    assert summary.transactions_aborted > 5
    assert summary.producers_fenced > 2


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("actions", [moves(1, 2, 3, 1), kills(1, 2, 3)])
def test_transactions_survive_their_coordinators(actions, version):
    summary = run_schedule(transactions_of(0, 1, actions=actions, version=version))
    assert summary.actions >= 3
    assert summary.transactions_committed > 3


@pytest.mark.parametrize("shift_ms", [-7_200_000, 7_200_000])
def test_transactions_end_while_the_clock_of_their_coordinator_is_wrong(shift_ms):
    actions = [Action(1_000, "shift_clock", (broker_name(broker),), 2_500, str(shift_ms)) for broker in (1, 2, 3)]
    summary = run_schedule(transactions_of(0, actions=[*actions, *moves(1, 2, 3)]))
    assert summary.actions >= 6


def test_same_seed_gives_the_same_trace_with_transactions():
    schedule = transactions_of(0, 0, actions=moves(1, 2))
    first, second = (run_schedule(schedule) for _ in range(2))
    assert first == second


def test_drawn_schedules_have_transactions_of_both_versions():
    drawn = [draw_schedule(seed) for seed in range(40)]
    assert {each.transaction_version for each in drawn if each.transactional} == set(VERSIONS)
    assert any(not each.transactional for each in drawn)
    assert any(len(set(each.transactional)) < len(each.transactional) for each in drawn)
    assert not any(each.transactional and each.unclean_elections for each in drawn)
    assert any(action.kind == "move_transactions" for each in drawn for action in each.actions)


# -- what the history tells ----------------------------------------------------------------------


@pytest.fixture
def history():
    """Return a history of a producer with one transaction, which has written b"a" and b"b"."""
    made = TransactionHistory()
    transaction = made.begin("id-0", "one")
    for value, partition in ((b"a", 0), (b"b", 1)):
        made.add_value(transaction, value)
        transaction.written[partition].append(value)
    return made


STORED = ((0, 3), (1, 0))
"""Partition and offset of b"a" and b"b" where they are committed."""


def check_end(history, acknowledged=()):
    """Run the checks of the end in a cluster without groups."""
    image = SimpleNamespace(partition=lambda _: None)
    stored = [SimpleNamespace(topic=TOPIC, partition=partition, offset=offset) for partition, offset in STORED]
    inside = SimpleNamespace(records=lambda _topic: stored)
    cluster = SimpleNamespace(nodes=SimpleNamespace(controller=SimpleNamespace(image=image)), inside=inside)
    schedule = SimpleNamespace(partitions=2)
    check_transactions(cluster, schedule, SimpleNamespace(acknowledged=acknowledged), history)


@pytest.mark.parametrize(
    ("outcome", "invariant"),
    [(Outcome.OPEN, "open-transactions-are-not-read"), (Outcome.ABORTED, "aborted-transactions-are-not-read")],
)
def test_record_that_is_not_committed_must_not_be_read(history, outcome, invariant):
    history.transactions[0].outcome = outcome
    with pytest.raises(InvariantViolationError) as caught:
        history.add_committed_read(0, 3, b"a")
    assert caught.value.invariant == invariant


@pytest.mark.parametrize("outcome", [Outcome.ENDING, Outcome.IN_DOUBT, Outcome.COMMITTED])
def test_transaction_that_may_be_committed_is_read_whole(history, outcome):
    history.transactions[0].outcome = outcome
    history.add_committed_read(0, 3, b"a")
    with pytest.raises(InvariantViolationError, match="was read"):
        check_end(history)
    history.add_committed_read(1, 0, b"b")
    check_end(history)


def test_transaction_in_doubt_may_be_unread_and_a_committed_one_not(history):
    history.transactions[0].outcome = Outcome.IN_DOUBT
    check_end(history)
    history.transactions[0].outcome = Outcome.COMMITTED
    with pytest.raises(InvariantViolationError, match="lost: a, b"):
        check_end(history)


def test_record_that_is_read_twice_is_told(history):
    history.transactions[0].outcome = Outcome.COMMITTED
    history.add_committed_read(0, 3, b"a")
    with pytest.raises(InvariantViolationError, match="was read again at offset 5"):
        history.add_committed_read(0, 5, b"a")


@pytest.mark.parametrize("outcome", [Outcome.OPEN, Outcome.ABORTED])
def test_offset_of_a_transaction_that_was_not_committed_is_told(history, outcome):
    history.transactions[0].step = OffsetStep(0, 0, 7)
    history.transactions[0].outcome = outcome
    history.check_offset("id-0", 0, 0)
    with pytest.raises(InvariantViolationError, match="which no transaction has committed"):
        history.check_offset("id-0", 0, 7)


@pytest.mark.parametrize("outcome", [Outcome.ENDING, Outcome.IN_DOUBT])
def test_offset_of_a_committed_transaction_stays_and_one_in_doubt_is_either_or(history, outcome):
    transaction = history.transactions[0]
    transaction.step = OffsetStep(0, 0, 7)
    transaction.outcome = outcome
    history.check_offset("id-0", 0, 0)
    history.check_offset("id-0", 0, 7)
    transaction.outcome = Outcome.COMMITTED
    history.check_offset("id-0", 0, 7)
    with pytest.raises(InvariantViolationError, match="has committed offset 7"):
        history.check_offset("id-0", 0, 0)


def test_transactional_id_keeps_its_producer_id():
    history = TransactionHistory()
    history.add_producer("id-0", 5, 0)
    history.add_producer("id-0", 5, 2)
    assert history.is_replaced("id-0", 1)
    assert not history.is_replaced("id-0", 2)
    with pytest.raises(InvariantViolationError, match="had the producer id 5 and got 6"):
        history.add_producer("id-0", 6, 0)


def test_committed_read_must_be_committed_at_the_end(history):
    history.transactions[0].outcome = Outcome.COMMITTED
    history.add_committed_read(0, 3, b"a")
    history.add_committed_read(1, 7, b"b")
    with pytest.raises(InvariantViolationError, match="topic-1: b was read and is not committed") as caught:
        check_end(history)
    assert caught.value.invariant == "aborted-transactions-are-not-read"


def test_acknowledged_record_of_no_transaction_must_be_read(history):
    record = Acknowledged(partition=0, offset=9, value=b"0-1", acks=ACKS_ALL, leader_epoch=0)
    with pytest.raises(InvariantViolationError, match="lost: 0-1") as caught:
        check_end(history, [record])
    assert caught.value.invariant == "acknowledged-records-are-read"
