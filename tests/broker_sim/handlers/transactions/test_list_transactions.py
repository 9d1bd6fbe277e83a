"""Claims about ListTransactions: filters, and who lists what."""

import pytest

from broker_sim.coordinator import patterns
from broker_sim.coordinator.context import CoordinatorState
from broker_sim.errors import ErrorCode


@pytest.fixture
def ongoing(txn):
    """Return a user whose transaction has been open for a second."""
    txn.transaction = txn.producer()
    txn.add(txn.transaction)
    txn.cluster.advance(1_000)
    return txn


def test_coordinator_lists_its_ids(ongoing):
    (state,) = ongoing.list().transaction_states
    assert state.transactional_id == "tx"
    assert state.producer_id == ongoing.transaction[0]
    assert state.transaction_state == "Ongoing"
    assert ongoing.list(broker=ongoing.another()).transaction_states == []


@pytest.mark.parametrize(
    ("filters", "is_listed", "unknown"),
    [
        ({"state_filters": ["Ongoing", "Empty"]}, True, []),
        ({"state_filters": ["Empty"]}, False, []),
        ({"state_filters": ["ongoing", "Foo", "Foo"]}, False, ["ongoing", "Foo"]),
        ({"producer_id_filters": [999_999]}, False, []),
        ({"duration_filter": 500}, True, []),
        ({"duration_filter": 0}, True, []),
        ({"duration_filter": 60_000}, False, []),
        ({"duration_filter": -1}, True, []),
        ({"transactional_id_pattern": "t."}, True, []),
        ({"transactional_id_pattern": "t"}, False, []),
        ({"transactional_id_pattern": ""}, True, []),
    ],
)
def test_filters(ongoing, filters, is_listed, unknown):
    response = ongoing.list(**filters)
    assert response.error_code == ErrorCode.NONE
    assert bool(response.transaction_states) is is_listed
    assert response.unknown_state_filters == unknown


def test_slow_pattern_is_matched_on_another_thread(ongoing, monkeypatch):
    broker = ongoing.cluster.nodes.brokers[ongoing.coordinator]
    beside = []

    def run_beside(work, on_done):
        beside.append(work)
        on_done(work())

    monkeypatch.setattr(broker, "run_beside", run_beside)
    monkeypatch.setattr(patterns, "QUICK_STEPS", 3)
    assert not ongoing.list(transactional_id_pattern="t").transaction_states
    assert not beside
    assert ongoing.list(transactional_id_pattern="t.").transaction_states
    assert len(beside) == 1


def test_duration_is_compared_exactly(ongoing):
    state = ongoing.describe()
    broker = ongoing.cluster.nodes.brokers[ongoing.coordinator]
    pending = broker.clock.wall_clock_ms() - state.transaction_start_time_ms
    assert ongoing.list(duration_filter=pending - 1).transaction_states
    assert not ongoing.list(duration_filter=pending + 1_000).transaction_states


def test_producer_id_is_found(ongoing):
    producer_id, _ = ongoing.transaction
    assert ongoing.list(0, producer_id_filters=[producer_id]).transaction_states


@pytest.mark.parametrize("pattern", ["(", "a{4294967296}"])
def test_invalid_pattern_is_refused(ongoing, pattern):
    response = ongoing.list(transactional_id_pattern=pattern)
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert response.transaction_states == []


def test_loading_coordinator_lists_nothing(ongoing):
    states = ongoing.cluster.nodes.brokers[ongoing.coordinator].transactions.states
    states.runtime.loaded()[0].state = CoordinatorState.LOADING
    assert ongoing.list().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def test_description_shows_the_transaction(ongoing):
    state = ongoing.describe()
    assert (state.producer_id, state.producer_epoch) == ongoing.transaction
    assert state.transaction_timeout_ms == 60_000
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [("t", [0])]


@pytest.mark.parametrize(
    ("transactional_id", "error"),
    [
        ("", ErrorCode.INVALID_REQUEST),
        ("tx-of-nobody", {ErrorCode.NOT_COORDINATOR, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}),
    ],
)
def test_ids_that_cannot_be_described_have_errors(txn, transactional_id, error):
    state = txn.describe(transactional_id)
    assert state.error_code in (error if isinstance(error, set) else {error})
    assert (state.transactional_id, state.producer_id) == (transactional_id, 0)


def test_other_brokers_describe_nothing(ongoing):
    state = ongoing.describe(broker=ongoing.another())
    assert state.error_code == ErrorCode.NOT_COORDINATOR
