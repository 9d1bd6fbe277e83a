"""Clients neither write to internal topics nor delete from them."""

import pytest

from broker_sim.cluster.requests import produce_request
from broker_sim.errors import ErrorCode
from broker_sim.handlers.data.delete_records import handle_delete_records
from broker_sim.handlers.data.produce import handle_produce
from broker_sim.protocol import messages

INTERNAL = "__consumer_offsets"


@pytest.fixture
def broker(make_broker):
    """Return broker 1 with an ordinary and an internal topic."""
    broker = make_broker()
    broker.create(INTERNAL, [1])
    broker.create("ordinary", [1])
    return broker


def produce(broker, client_id="test"):
    request = produce_request((INTERNAL, 0), ("ordinary", 0), acks=1)
    response = broker.ask(handle_produce, request, 9, client_id)
    answers = {topic.name: topic.partition_responses[0] for topic in response.responses}
    return answers[INTERNAL], answers["ordinary"]


def test_produce_to_an_internal_topic_is_refused_and_the_others_are_appended(broker):
    internal, ordinary = produce(broker)
    assert internal.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert (internal.base_offset, internal.log_start_offset) == (-1, -1)
    assert ordinary.error_code != ErrorCode.INVALID_TOPIC_EXCEPTION


def test_client_id_of_kafkas_admin_client_may_write_to_internal_topics(broker):
    internal, ordinary = produce(broker, "__admin_client")
    assert internal.error_code == ordinary.error_code


def test_records_of_an_internal_topic_cannot_be_deleted(broker):
    request = messages.DeleteRecordsRequest(
        topics=[
            messages.DeleteRecordsRequest.DeleteRecordsTopic(
                name=INTERNAL,
                partitions=[messages.DeleteRecordsRequest.DeleteRecordsPartition(0, -1)],
            )
        ]
    )
    answer = broker.ask(handle_delete_records, request, 2).topics[0].partitions[0]
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)
