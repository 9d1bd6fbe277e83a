"""Transactions and producers in the status of a cluster."""

import json

import pytest

from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol import messages
from broker_sim.protocol.records import build_batch

TIMEOUT_MS = 5_000
WITHOUT_VERIFICATION = 11
"""The version of Produce that asks for partitions to be added before."""


class Transaction:
    """A transactional producer, request by request."""

    def __init__(self, user):
        self.user = user
        user.until(lambda: not user.find("tx", key_type=1).error_code)
        self.coordinator = user.find("tx", key_type=1).node_id
        init = messages.InitProducerIdRequest("tx", transaction_timeout_ms=TIMEOUT_MS)
        user.until(lambda: not user.ask(init, 4, self.coordinator).error_code)
        self.producer = user.ask(init, 4, self.coordinator)

    def add(self, partition=0):
        topic = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic("t", [partition])
        request = messages.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=self.producer.producer_id,
            v3_and_below_producer_epoch=self.producer.producer_epoch,
            v3_and_below_topics=[topic],
        )
        answer = self.user.ask(request, 3, self.coordinator)
        (row,) = answer.results_by_topic_v3_and_below[0].results_by_partition
        assert not row.partition_error_code

    def produce(self):
        batch = build_batch(
            [b"v"],
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        request = messages.ProduceRequest
        data = request.TopicProduceData(name="t", partition_data=[request.PartitionProduceData(0, batch)])
        asked = request(transactional_id="tx", acks=-1, timeout_ms=10_000, topic_data=[data])
        answer = self.user.ask(asked, WITHOUT_VERIFICATION, self.user.cluster.leader("t"))
        assert not answer.responses[0].partition_responses[0].error_code

    def end_request(self):
        return messages.EndTxnRequest("tx", self.producer.producer_id, self.producer.producer_epoch, committed=True)


@pytest.fixture
def transaction(user):
    return Transaction(user)


def test_status_has_an_open_transaction_and_its_producer(user, transaction):
    cluster = user.cluster
    transaction.add()
    began_ms = cluster.now_ms
    transaction.produce()
    cluster.advance(1_000)
    status = cluster.status()
    (told,) = status.transactions
    assert (told.transactional_id, told.state, told.pending_state) == ("tx", "Ongoing", None)
    assert (told.coordinator, told.timeout_ms) == (transaction.coordinator, TIMEOUT_MS)
    assert told.partitions == (TopicPartition("t", 0),)
    assert 1_000 <= told.age_ms <= cluster.now_ms - began_ms + 10
    (known,) = status.producers
    assert (known.topic, known.partition, known.last_sequence) == ("t", 0, 0)
    assert (known.producer_id, known.producer_epoch) == (told.producer_id, told.producer_epoch)
    assert (known.transaction_start_offset, known.transactional_id) == (0, "tx")
    assert not known.is_hanging
    plain = status.to_json()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["transactions"][0]["partitions"] == [{"topic": "t", "partition": 0}]
    assert cluster.transactions() == status.transactions
    assert cluster.transactions().of("tx") == told
    assert cluster.producers() == status.producers
    with pytest.raises(LookupError, match="unknown transactional id 'ty'; transactional ids: tx"):
        cluster.transactions().of("ty")


def test_ended_transaction_has_no_age(user, transaction):
    assert user.cluster.transactions().of("tx").age_ms is None
    transaction.add()
    transaction.produce()
    assert not user.ask(transaction.end_request(), 3, transaction.coordinator).error_code
    user.until(lambda: user.cluster.transactions().of("tx").state == "CompleteCommit")
    told = user.cluster.transactions().of("tx")
    assert (told.age_ms, told.partitions) == (None, ())
    (known,) = user.cluster.producers()
    assert (known.transaction_start_offset, known.transactional_id) == (None, "tx")


def test_state_that_the_replicas_do_not_take_is_pending(user, transaction):
    cluster = user.cluster
    transaction.add()
    for broker in {1, 2, 3} - {transaction.coordinator}:
        cluster.pause(broker)
    cluster.client("ends").send(transaction.coordinator, transaction.end_request(), 3)
    cluster.advance(1_000)
    told = cluster.transactions().of("tx")
    assert (told.state, told.pending_state) == ("Ongoing", "PrepareCommit")
    assert told.age_ms >= 1_000


def test_transaction_that_its_coordinator_does_not_know_hangs(make_user):
    transaction = Transaction(make_user(transaction_partition_verification_enable=False))
    transaction.produce()
    (known,) = transaction.user.cluster.producers()
    assert (known.transaction_start_offset, known.transactional_id) == (0, "tx")
    assert known.is_hanging


def test_producer_without_a_live_coordinator_has_no_transactional_id(user, transaction):
    cluster = user.cluster
    transaction.add()
    transaction.produce()
    if cluster.leader("t") == transaction.coordinator:
        cluster.transfer_leadership("t", 0, transaction.coordinator % 3 + 1)
    cluster.kill(transaction.coordinator)
    assert cluster.transactions() == ()
    (known,) = cluster.producers()
    assert (known.transactional_id, known.is_hanging) == (None, False)
    assert known.transaction_start_offset == 0
