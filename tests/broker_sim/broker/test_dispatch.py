"""From a frame to its handler and back: what `RequestDispatcher` does with every request."""

import random

import pytest

from broker_sim.broker.dispatch import RequestDispatcher
from broker_sim.broker.throttling import Throttling
from broker_sim.cluster.virtual.virtual_client import produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.handlers import ApiSpec, ApiTable
from broker_sim.handlers.faults import Fault, FaultInjector
from broker_sim.handlers.request_log import RequestLog
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.codec import encode
from broker_sim.protocol.errors import ProtocolError
from broker_sim.protocol.headers import RequestHeader, encode_request
from broker_sim.protocol.release import find_release


class Setup:
    """A dispatcher of its own in front of the only broker of a cluster."""

    def __init__(self, make_frame_client):
        self.cluster = cluster = VirtualCluster(1)
        cluster.create_topic("t", 1, 1)
        self.broker = cluster.nodes.brokers[1]
        self.faults = FaultInjector(random.Random(1))
        self.actions = self.broker.process.actions
        self.client = make_frame_client(self.dispatcher_with(ApiTable()).handle_frame)

    def dispatcher_with(self, api_table):
        return RequestDispatcher(
            self.broker,
            api_table,
            self.faults,
            RequestLog(),
            self.broker.process,
            Throttling(self.broker.quotas, self.broker.purgatories.named("Throttled"), self.broker.clock),
        )

    @property
    def log_end_offset(self):
        ((_, partition),) = self.broker.replica_manager.partitions.items()
        return partition.log.log_end_offset


@pytest.fixture
def setup(make_frame_client):
    return Setup(make_frame_client)


def vars_of(message, *names):
    """Return the first of these fields that the message has, None without one."""
    return next((getattr(message, name) for name in names if hasattr(message, name)), None)


def header(api_key, version):
    return RequestHeader(api_key, version, 7, "test")


def frame_of(request, version):
    return b"".join(encode_request(header(ApiKey(request.API_KEY), version), request))[4:]


def error_of(response):
    return response.responses[0].partition_responses[0].error_code


def test_response_comes_in_the_version_and_with_the_correlation_id_of_the_request(setup):
    response = setup.client.ask(messages.MetadataRequest(topics=None), 12)
    assert [topic.name for topic in response.topics] == ["t"]


@pytest.mark.parametrize("cut", [1, 5, 9, 20], ids=["api key", "correlation id", "client id", "body"])
def test_request_that_ends_too_early_is_a_protocol_error(setup, cut):
    frame = frame_of(produce_request(("t", 0)), 9)
    with pytest.raises(ProtocolError):
        setup.client.send_frame(frame[:cut], header(ApiKey.PRODUCE, 9))
    assert setup.log_end_offset == 0


def test_bytes_behind_a_request_are_ignored(setup):
    # librdkafka sends three behind the Metadata request for all topics.
    frame = frame_of(messages.MetadataRequest(topics=None), 12) + b"abc"
    (response,) = setup.client.send_frame(frame, header(ApiKey.METADATA, 12))
    assert [topic.name for topic in response.topics] == ["t"]


def test_unknown_api_is_a_protocol_error(setup):
    frame = (999).to_bytes(2, "big") + frame_of(messages.MetadataRequest(), 12)[2:]
    with pytest.raises(ProtocolError, match="unknown API key 999"):
        setup.client.send_frame(frame, header(ApiKey.METADATA, 12))


def test_api_that_is_not_served_is_a_protocol_error(setup):
    request = messages.ControllerRegistrationRequest()
    with pytest.raises(ProtocolError, match="ControllerRegistration of client 'test' is not served, see"):
        setup.client.send(request, 0)


@pytest.mark.parametrize(
    ("api", "version", "remedy"),
    [
        (ApiKey.CREATE_TOPICS, 1, "'test' needs a cluster with as_version='3.9' or older"),
        (ApiKey.PRODUCE, 2, "'test' must use version 3 or newer, see docs/reference/apis.md"),
        (ApiKey.PRODUCE, 14, "'test' should send ApiVersions first"),
    ],
)
def test_version_that_is_not_served_is_a_protocol_error_with_a_remedy(setup, api, version, remedy):
    frame = bytearray(frame_of(produce_request(("t", 0)), 9))
    frame[:4] = api.to_bytes(2, "big") + version.to_bytes(2, "big")
    with pytest.raises(ProtocolError, match=f"{api.name} version {version} is not served; client {remedy}"):
        setup.client.send_frame(frame, header(api, version))


def test_too_new_api_versions_gets_version_0_with_the_supported_versions(setup):
    frame = bytearray(frame_of(messages.ApiVersionsRequest(), 0))
    frame[2:4] = (99).to_bytes(2, "big")
    # Version 99 is flexible, so its header ends with an empty set of tagged fields.
    (response,) = setup.client.send_frame(bytes(frame) + b"\0", header(ApiKey.API_VERSIONS, 99))
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(api.api_key, api.min_version, api.max_version) for api in response.api_keys] == [
        (ApiKey.API_VERSIONS, 0, 5)
    ]


class OneApi:
    """An API table whose only API has this handler."""

    release = find_release()

    def __init__(self, handler):
        self._spec = ApiSpec(ApiKey.METADATA, 0, 13, handler)

    def find(self, api_key, api_version):
        return self._spec


def test_actions_of_a_handler_run_when_it_has_returned(setup):
    order = []

    def handle(request, context, respond):
        setup.actions.add(lambda: order.append("action"))
        respond(messages.MetadataResponse())
        order.append("handler")

    setup.dispatcher_with(OneApi(handle)).handle_frame(
        memoryview(frame_of(messages.MetadataRequest(), 12)), setup.client, lambda _: order.append("response")
    )
    assert order == ["response", "handler", "action"]


def test_actions_run_when_a_handler_has_failed(setup):
    done = []

    def handle(request, context, respond):
        setup.actions.add(lambda: done.append(True))
        raise ZeroDivisionError

    dispatcher = setup.dispatcher_with(OneApi(handle))
    frame = memoryview(frame_of(messages.MetadataRequest(), 12))
    with pytest.raises(ZeroDivisionError):
        dispatcher.handle_frame(frame, setup.client, print)
    assert done == [True]


TAGS_MINUS_ONE = bytes((255, 255, 255, 255, 15))
"""The number of tagged fields that Kafka 4.3 takes for none."""


@pytest.mark.parametrize("part", ["header", "body"])
def test_less_than_no_tagged_fields_close_the_connection_from_4_4_on(setup, part):
    frame = frame_of(messages.MetadataRequest(), 12)
    end_of_header = len(frame) - len(b"".join(encode(messages.MetadataRequest(), 12)))
    if part == "header":
        frame = frame[: end_of_header - 1] + TAGS_MINUS_ONE + frame[end_of_header:]
    else:
        frame = frame[:-1] + TAGS_MINUS_ONE
    responses = []
    setup.dispatcher_with(ApiTable(find_release("4.3"))).handle_frame(memoryview(frame), setup.client, responses.append)
    assert len(responses) == 1
    with pytest.raises(ProtocolError):
        setup.dispatcher_with(ApiTable(find_release("4.4"))).handle_frame(
            memoryview(frame), setup.client, responses.append
        )


LONGEST = "x" * 32_767
"""A text has no room for more."""


@pytest.mark.parametrize(
    "request_of_long_text",
    [
        messages.CreateTopicsRequest([messages.CreateTopicsRequest.CreatableTopic(LONGEST, 1, 1)]),
        messages.IncrementalAlterConfigsRequest(
            [messages.IncrementalAlterConfigsRequest.AlterConfigsResource(4, LONGEST, [])]
        ),
        messages.DescribeProducersRequest([messages.DescribeProducersRequest.TopicRequest(LONGEST, [0])]),
    ],
    ids=["later, from the controller", "at once", "of each partition"],
)
def test_answer_that_would_repeat_too_long_a_text_is_unknown_server_error(setup, request_of_long_text):
    responses = setup.client.send(request_of_long_text, request_of_long_text.MAX_VERSION)
    setup.cluster.advance(1_000)
    (response,) = responses
    (row,) = vars_of(response, "topics", "responses")
    (told,) = vars_of(row, "partitions") or [row]
    assert (told.error_code, told.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert setup.client.closed == []


def test_none_ends_a_request_without_a_response(setup):
    assert setup.client.send(produce_request(("t", 0), acks=0), 9) == [None]
    assert setup.log_end_offset == 1


def test_fault_delays_the_response_and_not_the_work(setup):
    setup.faults.inject(Fault(api="Produce", delay_ms=5))
    responses = setup.client.send(produce_request(("t", 0), acks=1), 9)
    assert (responses, setup.log_end_offset) == ([], 1)
    setup.cluster.advance(4)
    assert responses == []
    setup.cluster.advance(1)
    assert error_of(responses[0]) == ErrorCode.NONE


def test_fault_loses_the_request_before_its_handler(setup):
    setup.faults.inject(Fault(api="Produce", lose="request"))
    assert setup.client.send(produce_request(("t", 0), acks=1), 9) == []
    assert (setup.client.closed, setup.log_end_offset) == (["injected fault"], 0)


@pytest.mark.parametrize("acks", [0, 1])
def test_fault_loses_the_response_after_the_work(setup, acks):
    setup.faults.inject(Fault(api="Produce", lose="response"))
    assert setup.client.send(produce_request(("t", 0), acks=acks), 9) == []
    setup.cluster.advance(1_000)
    assert (setup.client.closed, setup.log_end_offset, setup.client.received) == (["injected fault"], 1, [])


def test_error_of_a_fault_can_answer_late_without_the_handler(setup):
    setup.faults.inject(Fault(api="InitProducerId", error="NOT_COORDINATOR", delay_ms=7))
    responses = setup.client.send(messages.InitProducerIdRequest(transactional_id="tx"), 4)
    setup.cluster.advance(6)
    assert responses == []
    setup.cluster.advance(1)
    assert responses[0].error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", [0, 3, 4])
def test_unsupported_version_of_a_fault_is_answered_in_version_0(setup, version):
    fault = setup.faults.inject(Fault(api="ApiVersions", error="UNSUPPORTED_VERSION"))
    frame = frame_of(messages.ApiVersionsRequest("client", "1"), version)
    (answer,) = setup.client.send_frame(frame, header(ApiKey.API_VERSIONS, 0))
    assert (answer.error_code, fault.hits) == (ErrorCode.UNSUPPORTED_VERSION, 1)
    (served,) = answer.api_keys
    assert (served.api_key, served.min_version, served.max_version) == (ApiKey.API_VERSIONS, 0, 5)


def test_error_of_a_whole_produce_without_acks_closes_the_connection(setup):
    fault = setup.faults.inject(Fault(api="Produce", error="CLUSTER_AUTHORIZATION_FAILED"))
    assert setup.client.send(produce_request(("t", 0), acks=0), 9) == []
    assert (setup.client.closed, setup.log_end_offset, fault.hits) == (["injected fault"], 0, 1)


def test_fault_of_another_broker_does_not_hit(setup):
    setup.faults.inject(Fault(api="Produce", broker=2, lose="request"))
    response = setup.client.ask(produce_request(("t", 0), acks=1), 9)
    assert error_of(response) == ErrorCode.NONE
