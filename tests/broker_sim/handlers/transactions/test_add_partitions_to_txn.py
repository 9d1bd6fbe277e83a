"""Claims about AddPartitionsToTxn: of clients, of brokers, and of partitions that there are not."""

import pytest

from broker_sim.errors import ErrorCode

T0 = [("t", [0])]


@pytest.mark.parametrize("version", range(4))
def test_client_adds_partitions(txn, version):
    producer = txn.producer()
    topics = [("t", [0, 1])]
    assert txn.add(producer, topics, version) == {("t", 0): 0, ("t", 1): 0}
    state = txn.describe()
    assert state.transaction_state == "Ongoing"
    assert [(topic.topic, topic.partitions) for topic in state.topics] == topics


@pytest.mark.parametrize("version", range(4))
def test_fenced_client_gets_the_error_of_its_version(txn, version):
    old = txn.producer()
    txn.producer()
    error = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert txn.add(old, version=version) == {("t", 0): error}


def test_nothing_is_added_with_an_unknown_partition(txn):
    producer = txn.producer()
    assert txn.add(producer, [("t", [0, 7]), ("nope", [0])]) == {
        ("t", 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
        ("t", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nope", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert txn.describe().transaction_state == "Empty"


@pytest.mark.parametrize("version", [4, 5])
def test_broker_adds_and_verifies_in_one_request(txn, version):
    producer = txn.producer()
    added = ("tx", producer, False, T0)
    assert txn.batch(added, version=version) == {"tx": {("t", 0): 0}}
    verified = ("tx", producer, True, [("t", [0, 1])])
    unknown = ("nobody", producer, True, T0)
    assert txn.batch(verified, unknown, version=version) == {
        "tx": {("t", 0): 0, ("t", 1): ErrorCode.TRANSACTION_ABORTABLE},
        "nobody": {("t", 0): txn.batch(unknown)["nobody"]["t", 0]},
    }


def test_request_of_a_broker_without_transactions_is_answered(txn):
    assert txn.batch() == {}


def test_fenced_producer_in_a_brokers_request_has_an_error(txn):
    producer_id, _ = txn.producer()
    fenced = {("t", 0): ErrorCode.PRODUCER_FENCED}
    assert txn.batch(("tx", (producer_id, 5), True, T0)) == {"tx": fenced}
    assert txn.batch(("tx", (producer_id, 5), False, T0)) == {"tx": fenced}
