"""Claims about AddOffsetsToTxn: the group's partition becomes part of the transaction."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages


def create_offsets_topic(txn):
    request = messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    txn.until(lambda: not txn.ask(request, 4).coordinators[0].error_code)


@pytest.mark.parametrize("version", range(5))
def test_partition_of_the_group_is_added(txn, version):
    create_offsets_topic(txn)
    producer = txn.producer()
    request = messages.AddOffsetsToTxnRequest("tx", *producer, "g")
    assert txn.ask(request, version).error_code == ErrorCode.NONE
    (topic,) = txn.describe().topics
    assert (topic.topic, topic.partitions) == ("__consumer_offsets", [0])


@pytest.mark.parametrize("version", range(5))
def test_fenced_producer_gets_the_error_of_its_version(txn, version):
    producer_id, _ = txn.producer()
    request = messages.AddOffsetsToTxnRequest("tx", producer_id, 7, "g")
    error = ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH
    assert txn.ask(request, version).error_code == error
