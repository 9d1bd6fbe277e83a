"""What faults do to a request as a whole, at the gate."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.handlers import RequestContext
from broker_sim.handlers.faults import Fault
from broker_sim.handlers.faults.request_faults import RequestFaults
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.messages import InitProducerIdResponse


class Gate:
    """One request at the gate, with a connection and a clock that only take notes."""

    def __init__(self, *faults):
        self.context = RequestContext(None, self, faults[0].api, 4, "test")
        self.closed = []
        self.sent = []
        self.delayed = []
        self.admitted = RequestFaults(faults).admit(None, self.context, self.sent.append, self.call_later)

    def close(self, reason=""):
        self.closed.append(reason)

    def call_later(self, delay_ms, callback, *args):
        self.delayed.append((delay_ms, callback, args))


def test_lost_request_closes_the_connection_and_ends_at_the_gate():
    gate = Gate(Fault(api="Produce", lose="request"))
    assert gate.admitted is None
    assert (gate.closed, gate.sent) == (["injected fault"], [])


@pytest.mark.parametrize("message", ["response", None])
def test_lost_response_closes_the_connection_when_the_handler_responds(message):
    gate = Gate(Fault(api="Produce", lose="response"))
    assert gate.closed == []
    gate.admitted(message)
    assert (gate.closed, gate.sent) == (["injected fault"], [])


def test_delay_holds_back_what_the_handler_responds():
    gate = Gate(Fault(api="Produce", delay_ms=7))
    gate.admitted("response")
    ((delay_ms, callback, args),) = gate.delayed
    assert (delay_ms, gate.sent) == (7, [])
    callback(*args)
    assert gate.sent == ["response"]


def test_longest_delay_holds():
    gate = Gate(
        Fault(api="Produce", topic="t", partition=0, delay_ms=3),
        Fault(api="Produce", topic="t", partition=1, delay_ms=9),
    )
    gate.admitted("response")
    assert [delay_ms for delay_ms, _, _ in gate.delayed] == [9]


def test_error_of_an_api_that_answers_by_partition_is_left_to_its_handler():
    gate = Gate(Fault(api="Produce", error="CORRUPT_MESSAGE"))
    assert gate.admitted is not None
    assert gate.sent == []


def test_error_of_another_api_is_answered_at_the_gate():
    gate = Gate(Fault(api="InitProducerId", error="NOT_COORDINATOR"))
    assert gate.admitted is None
    (response,) = gate.sent
    assert isinstance(response, InitProducerIdResponse)
    assert response.error_code == ErrorCode.NOT_COORDINATOR


def test_error_at_the_gate_can_be_late():
    gate = Gate(Fault(api="InitProducerId", error="NOT_COORDINATOR", delay_ms=7))
    assert (gate.admitted, gate.sent) == (None, [])
    ((delay_ms, callback, args),) = gate.delayed
    callback(*args)
    assert (delay_ms, gate.sent[0].error_code) == (7, ErrorCode.NOT_COORDINATOR)


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
    gate = Gate(Fault(api=api, topic="orders", error=error))
    assert gate.admitted is None
    (response,) = gate.sent
    assert response.error_code is ErrorCode[error]
    assert not response.responses


@pytest.mark.parametrize(
    ("api", "error"), [("ShareFetch", "KAFKA_STORAGE_ERROR"), ("Produce", "SHARE_SESSION_NOT_FOUND")]
)
def test_other_errors_are_left_to_the_partitions(api, error):
    gate = Gate(Fault(api=api, error=error))
    assert gate.admitted is not None
    assert gate.sent == []
