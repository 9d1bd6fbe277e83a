"""Claims about EndTxn in a cluster: markers are written, also when brokers freeze, die or move."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_name import TRANSACTION_STATE_TOPIC
from broker_sim.protocol import messages


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("version", range(6))
def test_end_writes_a_marker_to_each_partition(txn, version, commit):
    producer = txn.producer()
    assert txn.add(producer, [("t", [0, 1])]) == {("t", 0): 0, ("t", 1): 0}
    error, producer_id, epoch = txn.end(producer, commit, version)
    assert error == ErrorCode.NONE
    assert (producer_id, epoch) == ((producer[0], 1) if version == 5 else (-1, -1))
    txn.settle("CompleteCommit" if commit else "CompleteAbort")
    txn.until(lambda: (txn.markers("t", 0), txn.markers("t", 1)) == (1, 1))


def test_markers_are_written_before_the_next_request_is_read(txn):
    txn.ask(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["group"]), 4, 1)
    producer = txn.producer()
    txn.until(lambda: txn.add_offsets(producer) == ErrorCode.NONE)
    assert txn.end(producer, version=4)[0] == ErrorCode.NONE
    txn.settle("CompleteCommit")
    for _ in range(5):
        assert txn.add(producer, [("t", [0, 1])]) == {("t", 0): 0, ("t", 1): 0}
        assert txn.add_offsets(producer) == ErrorCode.NONE
        assert txn.end(producer, version=4)[0] == ErrorCode.NONE


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (0, ErrorCode.INVALID_PRODUCER_EPOCH),
        (1, ErrorCode.INVALID_PRODUCER_EPOCH),
        (2, ErrorCode.PRODUCER_FENCED),
        (5, ErrorCode.PRODUCER_FENCED),
    ],
)
def test_fenced_producer_gets_the_error_of_its_version(txn, version, error):
    old = txn.producer()
    producer = txn.producer()
    txn.add(producer)
    assert txn.end(old, version=version) == (error, -1, -1)


def test_open_transaction_is_aborted_for_the_next_producer(txn):
    producer = txn.producer()
    txn.add(producer)
    assert txn.producer() == (producer[0], 2)
    txn.until(lambda: txn.markers() == 1)
    assert txn.end(producer)[0] == ErrorCode.PRODUCER_FENCED


def test_transaction_is_aborted_at_the_first_check_after_its_timeout(make_txn):
    txn = make_txn(transaction_abort_timed_out_transaction_cleanup_interval_ms=1_000)
    producer = txn.producer(timeout_ms=5_000)
    txn.add(producer)
    txn.cluster.advance(4_900)
    assert txn.describe().transaction_state == "Ongoing"
    txn.cluster.advance(1_200)
    assert txn.describe().transaction_state == "CompleteAbort"
    assert txn.end(producer, version=4)[0] == ErrorCode.PRODUCER_FENCED


def test_idle_id_is_forgotten(make_txn):
    txn = make_txn(
        transactional_id_expiration_ms=10_000, transaction_remove_expired_transaction_cleanup_interval_ms=1_000
    )
    txn.producer()
    txn.cluster.advance(9_000)
    assert txn.describe().error_code == ErrorCode.NONE
    txn.cluster.advance(3_000)
    assert txn.describe().error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def leader_of(txn):
    return txn.cluster.leader("t", 0)


def apart(txn):
    """Let another broker than the coordinator lead t-0."""
    other = txn.another()
    if leader_of(txn) != other:
        txn.cluster.transfer_leadership("t", 0, other)
        txn.cluster.advance(100)
    return other


def test_marker_reaches_a_leader_that_was_paused(make_txn):
    txn = make_txn(broker_session_timeout_ms=60_000)
    leader = apart(txn)
    producer = txn.producer()
    txn.add(producer)
    txn.cluster.pause(leader)
    assert txn.end(producer)[0] == ErrorCode.NONE
    txn.cluster.advance(2_000)
    assert txn.describe().transaction_state == "PrepareCommit"
    txn.cluster.resume(leader)
    txn.settle("CompleteCommit")


@pytest.mark.parametrize("fault", ["pause", "kill"])
def test_marker_goes_to_the_next_leader_of_a_lost_one(txn, fault):
    leader = apart(txn)
    producer = txn.producer()
    txn.add(producer)
    getattr(txn.cluster, fault)(leader)
    assert txn.end(producer)[0] == ErrorCode.NONE
    txn.until(lambda: txn.describe().transaction_state == "CompleteCommit")
    assert leader_of(txn) != leader
    txn.until(lambda: txn.markers() == 1)


@pytest.mark.parametrize("ending", [False, True])
def test_next_coordinator_continues_the_transaction(make_txn, ending):
    txn = make_txn(broker_session_timeout_ms=60_000)
    leader = apart(txn)
    old = txn.coordinator
    producer = txn.producer()
    txn.add(producer)
    if ending:
        txn.cluster.pause(leader)
        assert txn.end(producer)[0] == ErrorCode.NONE
    new = next(broker for broker in (1, 2, 3) if broker not in {old, leader})
    txn.cluster.transfer_leadership(TRANSACTION_STATE_TOPIC, txn.partition, new)
    txn.cluster.advance(100)
    assert txn.coordinator == new
    assert txn.end(producer, broker=old)[0] == ErrorCode.NOT_COORDINATOR
    if ending:
        assert txn.describe().transaction_state == "PrepareCommit"
        txn.cluster.resume(leader)
    else:
        assert txn.describe().transaction_state == "Ongoing"
        assert txn.end(producer)[0] == ErrorCode.NONE
    txn.settle("CompleteCommit")
    # The request of the old coordinator waited at the paused leader too.
    txn.until(lambda: txn.markers() == (2 if ending else 1))
    assert txn.end(producer) == (ErrorCode.NONE, producer[0], 1)


def test_killed_coordinator_loses_no_decision(txn):
    leader = apart(txn)
    producer = txn.producer()
    txn.add(producer)
    txn.cluster.pause(leader)
    assert txn.end(producer)[0] == ErrorCode.NONE
    old = txn.coordinator
    txn.cluster.kill(old)
    txn.until(lambda: txn.coordinator not in {old, -1})
    txn.cluster.resume(leader)
    txn.settle("CompleteCommit")
    txn.until(lambda: txn.markers() >= 1)


def test_markers_that_wait_for_a_leader_are_a_metric(txn):
    name = "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize"
    metric = f'{name}{{broker="{txn.coordinator}"}}'

    def waiting():
        lines = txn.cluster.metrics().splitlines()
        return [line.rsplit(" ", 1)[1] for line in lines if line.startswith(metric)]

    alone = txn.another()
    txn.cluster.create_topic("alone", assignments={0: [alone]})
    producer = txn.producer()
    txn.add(producer, [("alone", [0])])
    txn.cluster.kill(alone)
    txn.cluster.run_until(lambda: txn.cluster.partition("alone").leader is None)
    assert waiting() == ["0.0"]
    assert txn.end(producer)[0] == ErrorCode.NONE
    txn.until(lambda: waiting() == ["1.0"])
    txn.cluster.start(alone)
    txn.settle("CompleteCommit")
    assert waiting() == ["0.0"]


def test_records_are_those_of_committed_transactions(by_hand):
    committed, aborted, opened = 1, 2, 3

    def offsets():
        return [record.offset for record in by_hand.cluster.records("t") if not record.partition]

    for sequence, producer in enumerate((aborted, committed, aborted, committed, opened)):
        assert by_hand.write(producer, sequence // 2) == ErrorCode.NONE
    assert offsets() == []
    by_hand.markers((aborted, 0, False, [0], 0, 1))
    assert offsets() == []
    by_hand.markers((committed, 0, True, [0], 0, 1))
    assert offsets() == [1, 3]
    assert by_hand.write(aborted, 2) == ErrorCode.NONE
    by_hand.markers((opened, 0, True, [0], 0, 1), (aborted, 0, True, [0], 0, 1))
    assert offsets() == [1, 3, 4, 7]
