"""Read-committed fetches: what wakes them, and what followers serve."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.log import AppendOrigin
from broker_sim.metadata import PartitionState
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import build_batch, build_end_txn_marker
from broker_sim.replica import FetchIsolation

COMMITTED = FetchIsolation.TXN_COMMITTED


class Transactions:
    """Appends of producers to partition 0 at broker 1, without a coordinator."""

    def __init__(self, broker, partition):
        self.broker = broker
        self.partition = partition
        self._sequences = {}
        broker.logs.producers.transaction_verification_enabled = False

    def write(self, producer_id=7):
        sequence = self._sequences.get(producer_id, 0)
        self._sequences[producer_id] = sequence + 1
        return self._append(
            build_batch(
                [b"value"], producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True
            )
        )

    def end(self, producer_id=7, *, is_commit=True, acks=-1, timeout_ms=60_000):
        marker = build_end_txn_marker(producer_id=producer_id, producer_epoch=0, is_commit=is_commit, timestamp=0)
        return self._append(marker, AppendOrigin.COORDINATOR, acks, timeout_ms)

    def _append(self, batch, origin=AppendOrigin.CLIENT, acks=1, timeout_ms=0):
        answers = []
        key = TopicPartition("topic", 0)
        self.broker.manager.append_records(
            {key: batch},
            lambda statuses: answers.append(statuses[key].error_code),
            timeout_ms=timeout_ms,
            required_acks=acks,
            origin=origin,
        )
        self.broker.actions.try_complete_actions()
        return answers

    def read(self, offset=0, *, max_wait_ms=60_000, **options):
        return self.broker.fetch(offset=offset, isolation=COMMITTED, max_wait_ms=max_wait_ms, **options)


@pytest.fixture
def alone(broker):
    """A partition without followers."""
    return Transactions(broker, broker.lead(replicas=(1,), isr=(1,)))


@pytest.fixture
def replicated(broker):
    return Transactions(broker, broker.lead())


@pytest.mark.parametrize("is_commit", [True, False])
def test_parked_fetch_is_woken_by_the_marker_and_not_by_the_records(alone, is_commit):
    answers = alone.read()
    alone.write()
    alone.write()
    assert answers == []
    alone.end(is_commit=is_commit)
    data = answers[0][0]
    assert (len(data.records), data.last_stable_offset, data.high_watermark) == (3, 3, 3)
    listed = [(txn.producer_id, txn.first_offset) for txn in data.aborted_transactions]
    assert listed == ([] if is_commit else [(7, 0)])


def test_plain_records_after_an_open_transaction_wake_no_fetch(alone):
    alone.write()
    answers = alone.read()
    alone.broker.produce(acks=1)
    assert answers == []
    alone.end()
    assert len(answers[0][0].records) == 3


def test_marker_wakes_no_fetch_while_an_older_transaction_is_open(alone):
    alone.write(1)
    answers = alone.read()
    alone.write(2)
    alone.end(2)
    assert answers == []
    alone.end(1)
    assert len(answers[0][0].records) == 4


def test_marker_wakes_a_fetch_only_once_it_is_replicated(replicated):
    broker = replicated.broker
    replicated.write()
    for follower in (2, 3):
        broker.replicate(follower, 1)
    answers = replicated.read()
    acked = replicated.end()
    broker.replicate(2, 2)
    assert (answers, acked) == ([], [])
    broker.replicate(3, 2)
    assert acked == [ErrorCode.NONE]
    assert (len(answers[0][0].records), answers[0][0].last_stable_offset) == (2, 2)


def test_marker_that_is_not_replicated_times_out_and_completes_nothing(replicated):
    broker = replicated.broker
    replicated.write()
    for follower in (2, 3):
        broker.replicate(follower, 1)
    acked = replicated.end(timeout_ms=500)
    broker.advance(499)
    assert acked == []
    broker.advance(1)
    assert acked == [ErrorCode.REQUEST_TIMED_OUT]
    assert replicated.partition.log.last_stable_offset == 0


def test_expired_fetch_returns_the_completed_transactions(alone):
    alone.broker.produce(acks=1)
    alone.write(1)
    alone.write(2)
    alone.end(2, is_commit=False)
    answers = alone.read(1, max_wait_ms=500)
    alone.broker.advance(500)
    data = answers[0][0]
    assert (data.size_bytes, data.aborted_transactions) == (0, [])
    assert (data.last_stable_offset, data.high_watermark) == (1, 4)


def test_fetch_between_last_stable_offset_and_log_end_is_answered_at_once(alone):
    alone.write()
    alone.write()
    answers = alone.read(1)
    assert (answers[0][0].error_code, answers[0][0].size_bytes) == (ErrorCode.NONE, 0)


def test_read_uncommitted_fetch_is_woken_by_the_records(alone):
    answers = alone.broker.fetch(max_wait_ms=60_000)
    alone.write()
    assert answers[0][0].size_bytes
    assert answers[0][0].aborted_transactions is None


def test_aborted_transactions_may_lie_beyond_the_records_as_in_kafka(alone):
    alone.broker.produce(acks=1)
    alone.write(1)
    alone.write(2)
    alone.end(2, is_commit=False)
    data = alone.read()[0][0]
    listed = [(txn.producer_id, txn.first_offset) for txn in data.aborted_transactions]
    assert (len(data.records), data.last_stable_offset, listed) == (1, 1, [(2, 2)])


def test_aborted_transactions_end_at_the_next_entry_of_the_sparse_index(broker):
    partition = broker.lead(replicas=(1,), isr=(1,), index_interval_bytes=0)
    reader = Transactions(broker, partition)
    for producer_id in (1, 2, 3):
        reader.write(producer_id)
        reader.end(producer_id, is_commit=False)
    data = reader.read(0, partition_max_bytes=1)[0][0]
    assert [txn.first_offset for txn in data.aborted_transactions] == [0]
    data = reader.read(3, partition_max_bytes=1)[0][0]
    assert [txn.first_offset for txn in data.aborted_transactions] == [2]


# -- followers ------------------------------------------------------------------------------------


@pytest.fixture
def follower(make_broker, alone):
    """Broker 1 as a follower of broker 2, with a leader's log to fetch from."""
    broker = make_broker()
    partition = broker.open()
    partition.make_follower(PartitionState((1, 2, 3), (1, 2, 3), 2, 1, 1))
    return broker, partition


def replicate(leader_log, broker, partition, *, high_watermark):
    """Do what the follower's fetcher does with the leader's answer."""
    data = leader_log.read(partition.log.log_end_offset, 1_000_000)
    if data.records:
        partition.append_records_to_follower(data.records)
    before = partition.log.high_watermark
    partition.log.offsets.update_high_watermark(high_watermark)
    if partition.log.high_watermark != before:
        broker.purgatories.fetch.check_and_complete(partition.topic_partition)


def test_follower_wakes_a_fetch_when_the_leader_reports_the_marker_replicated(alone, follower):
    broker, partition = follower
    alone.write()
    replicate(alone.partition.log, broker, partition, high_watermark=1)
    answers = broker.fetch(isolation=COMMITTED, max_wait_ms=60_000)
    alone.end(is_commit=False)
    replicate(alone.partition.log, broker, partition, high_watermark=1)
    assert answers == []
    replicate(alone.partition.log, broker, partition, high_watermark=2)
    data = answers[0][0]
    assert (len(data.records), data.last_stable_offset) == (2, 2)
    assert [(t.producer_id, t.first_offset) for t in data.aborted_transactions] == [(7, 0)]


def test_new_leader_knows_the_open_transactions_of_its_log(alone, follower):
    broker, partition = follower
    alone.write()
    replicate(alone.partition.log, broker, partition, high_watermark=1)
    partition.make_leader(PartitionState((1,), (1,), 1, 2, 2))
    assert (partition.log.high_watermark, partition.log.last_stable_offset) == (1, 0)
    Transactions(broker, partition).end(is_commit=False)
    assert partition.log.last_stable_offset == 2
    assert len(partition.log.producer_state.transaction_index.collect(0, 2)) == 1


def test_truncating_a_marker_reopens_its_transaction_on_the_follower(alone, follower):
    broker, partition = follower
    alone.write()
    alone.end(is_commit=False)
    replicate(alone.partition.log, broker, partition, high_watermark=1)
    partition.log.truncate_to(1)
    replicate_nothing = partition.log.read(0, 1_000)
    assert replicate_nothing.size_bytes
    assert partition.log.producer_state.first_unstable_offset == 0
    assert partition.log.producer_state.transaction_index.collect(0, 9) == []
