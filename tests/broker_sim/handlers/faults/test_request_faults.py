"""What faults do to a request as a whole."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers import RequestContext
from broker_sim.handlers.faults import Fault, Loss
from broker_sim.handlers.faults.request_faults import RequestFaults
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.messages import InitProducerIdResponse


def answer_of(fault):
    """Return what answers a request that the fault hits, None if its handler does."""
    return RequestFaults([fault]).answer(None, RequestContext(None, None, fault.api, 4, "test"))


@pytest.mark.parametrize("loss", Loss)
def test_loss_is_that_of_the_fault(loss):
    assert RequestFaults([Fault(api="Produce", lose=loss)]).loss is loss


def test_longest_delay_holds():
    faults = [Fault(api="Produce", topic="t", partition=0, delay_ms=3), Fault(api="Produce", topic="t", delay_ms=9)]
    assert RequestFaults(faults).delay_ms == 9
    assert RequestFaults(faults).loss is None


def test_error_of_an_api_that_answers_by_partition_is_left_to_its_handler():
    assert answer_of(Fault(api="Produce", error="CORRUPT_MESSAGE")) is None


def test_error_of_another_api_answers_all_of_the_request():
    response = answer_of(Fault(api="InitProducerId", error="NOT_COORDINATOR"))
    assert isinstance(response, InitProducerIdResponse)
    assert response.error_code == ErrorCode.NOT_COORDINATOR


def test_topic_is_asked_for_without_a_partition():
    faults = RequestFaults([Fault(api=ApiKey.METADATA, topic="t", error="INVALID_TOPIC_EXCEPTION")])
    assert faults.error_for("t") == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert faults.error_for("u") == ErrorCode.NONE


@pytest.mark.parametrize(
    ("api", "error"),
    [
        ("Fetch", "FETCH_SESSION_ID_NOT_FOUND"),
        ("ShareFetch", "SHARE_SESSION_NOT_FOUND"),
        ("ShareAcknowledge", "INVALID_SHARE_SESSION_EPOCH"),
    ],
)
def test_error_of_a_session_answers_all_of_the_request(api, error):
    response = answer_of(Fault(api=api, topic="orders", error=error))
    assert response.error_code is ErrorCode[error]
    assert not response.responses


@pytest.mark.parametrize(
    ("api", "error"), [("ShareFetch", "KAFKA_STORAGE_ERROR"), ("Produce", "SHARE_SESSION_NOT_FOUND")]
)
def test_other_errors_are_left_to_the_partitions(api, error):
    assert answer_of(Fault(api=api, error=error)) is None
