"""What faults do to a request as a whole."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers import RequestContext
from broker_sim.handlers.faults import Fault, Loss
from broker_sim.handlers.faults.request_faults import RequestFaults
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey, request_class


def made(*faults, version=4):
    """Return faults that hit a request of the first one's API."""
    context = RequestContext(None, None, faults[0].api, version, "test")
    return RequestFaults(faults, context, lambda _: True)


def answer_of(fault, version=4, **fields):
    """Return what answers a request that the fault hits, None if its handler does."""
    answer = made(fault, version=version).answer(request_class(fault.api)(**fields))
    return None if answer is None else answer.message


@pytest.mark.parametrize("loss", Loss)
def test_loss_is_that_of_the_fault(loss):
    assert made(Fault(api="Produce", lose=loss)).loss is loss


def test_longest_delay_holds():
    faults = made(Fault(api="Produce", topic="t", partition=0, delay_ms=3), Fault(api="Produce", topic="t", delay_ms=9))
    assert faults.delay_ms == 9
    assert faults.loss is None


def test_error_that_is_not_returned_delays_nothing():
    faults = made(Fault(api="Produce", topic="t", error="CORRUPT_MESSAGE", delay_ms=9))
    assert faults.delay_ms == 0
    faults.error_for("t", 0)
    assert faults.delay_ms == 9


def test_error_of_a_partition_is_left_to_the_handler():
    assert answer_of(Fault(api="Produce", error="CORRUPT_MESSAGE")) is None


def test_error_of_the_request_answers_the_whole_request():
    response = answer_of(Fault(api="InitProducerId", error="NOT_COORDINATOR"))
    assert isinstance(response, messages.InitProducerIdResponse)
    assert response.error_code == ErrorCode.NOT_COORDINATOR


def test_empty_request_has_no_place_for_a_group_error():
    assert answer_of(Fault(api="DescribeGroups", error="NOT_COORDINATOR")) is None
    assert answer_of(Fault(api="DescribeGroups", error="NOT_COORDINATOR"), groups=["g"]) is not None


def test_topic_error_is_looked_up_without_a_partition():
    faults = made(Fault(api=ApiKey.METADATA, topic="t", error="INVALID_TOPIC_EXCEPTION"))
    assert faults.error_for("t") == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert faults.error_for("u") == ErrorCode.NONE


def test_error_of_acknowledged_records_is_not_that_of_the_fetch():
    faults = made(Fault(api="ShareFetch", error="INVALID_RECORD_STATE"))
    assert faults.error_for("t", 0) == ErrorCode.NONE
    assert faults.error_for("t", 0, acknowledges=True) == ErrorCode.INVALID_RECORD_STATE


@pytest.mark.parametrize(
    ("api", "version", "error"),
    [
        ("Fetch", 7, "FETCH_SESSION_ID_NOT_FOUND"),
        ("ShareFetch", 1, "SHARE_SESSION_NOT_FOUND"),
        ("ShareFetch", 1, "GROUP_AUTHORIZATION_FAILED"),
        ("ShareAcknowledge", 1, "INVALID_SHARE_SESSION_EPOCH"),
    ],
)
def test_error_of_a_session_or_group_answers_all_of_the_request(api, version, error):
    response = answer_of(Fault(api=api, topic="orders", error=error), version)
    assert response.error_code is ErrorCode[error]
    assert not response.responses


def test_version_without_sessions_gets_no_session_errors():
    assert answer_of(Fault(api="Fetch", error="FETCH_SESSION_ID_NOT_FOUND"), 6) is None
