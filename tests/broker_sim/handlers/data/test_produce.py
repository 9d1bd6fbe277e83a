"""The produce handler on broker 1 of two, by its frames: acks, refusals, and one response for all."""

import sys

import pytest

from broker_sim.cluster.virtual.virtual_client import produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.handlers.faults import Fault
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.compression import CompressionCodec
from broker_sim.protocol.messages import ProduceRequest
from broker_sim.protocol.records import build_batch

LED, ALSO_LED, ELSEWHERE = ("t", 0), ("t", 1), ("t", 2)
NO_PARTITION, NO_TOPIC = ("t", 9), ("u", 0)
VERSION = 9


class Setup:
    """Broker 1 leads two partitions and follows a third one, which broker 2 leads."""

    def __init__(self, make_frame_client):
        self.cluster = VirtualCluster(2)
        self.cluster.create_topic("t", assignments={0: [1, 2], 1: [1, 2], 2: [2, 1]})
        self.internal = ("__consumer_offsets", 0)
        self.cluster.create_topic("__consumer_offsets", assignments={0: [1]})
        self.broker = self.cluster.nodes.brokers[1]
        self.client = make_frame_client(self.broker.dispatcher.handle_frame)
        self.topic_id = self.broker.image.topics["t"].topic_id

    def send(self, *keys, version=VERSION, client_id="test", **options):
        request = produce_request(*keys, **options)
        if version >= 13:
            for topic in request.topic_data:
                topic.name, topic.topic_id = "", self.topic_id
        return self.client.send(request, version, client_id)

    def errors(self, *keys, **options):
        """Return the error of each partition, of a produce that is answered."""
        responses = self.send(*keys, **options)
        self.cluster.run_until(lambda: responses)
        return errors_of(responses[0])

    def end_offset(self, key):
        partition = self.broker.replica_manager.partitions[TopicPartition(*key)]
        return partition.log.log_end_offset


@pytest.fixture
def setup(make_frame_client):
    return Setup(make_frame_client)


def answers(response):
    return [
        ((topic.name, partition.index), partition)
        for topic in response.responses
        for partition in topic.partition_responses
    ]


def errors_of(response):
    return {key: ErrorCode(partition.error_code) for key, partition in answers(response)}


# -- acks -------------------------------------------------------------------------------------------


def test_acks_1_is_answered_when_the_leader_has_appended(setup):
    setup.cluster.pause(2)
    (response,) = setup.send(LED, acks=1)
    ((key, answer),) = answers(response)
    assert (key, answer.error_code, answer.base_offset) == (LED, ErrorCode.NONE, 0)
    ((_, answer),) = answers(setup.send(LED, acks=1)[0])
    assert answer.base_offset == 1


def test_acks_all_is_answered_when_the_follower_has_the_records(setup):
    setup.cluster.pause(2)
    responses = setup.send(LED, acks=-1, timeout_ms=60_000)
    setup.cluster.advance(1_000)
    assert (responses, setup.end_offset(LED)) == ([], 1)
    setup.cluster.resume(2)
    setup.cluster.run_until(lambda: responses)
    assert errors_of(responses[0]) == {LED: ErrorCode.NONE}


def test_acks_all_is_answered_at_its_timeout_and_the_records_stay(setup):
    setup.cluster.pause(2)
    responses = setup.send(LED, acks=-1, timeout_ms=500)
    setup.cluster.advance(499)
    assert responses == []
    setup.cluster.advance(1)
    assert errors_of(responses[0]) == {LED: ErrorCode.REQUEST_TIMED_OUT}
    assert setup.end_offset(LED) == 1


def test_acks_0_is_appended_and_has_no_response(setup):
    assert setup.send(LED, acks=0) == [None]
    assert (setup.end_offset(LED), setup.client.closed) == (1, [])


def test_acks_0_with_an_error_closes_the_connection_and_appends_the_rest(setup):
    assert setup.send(LED, ELSEWHERE, NO_TOPIC, acks=0) == []
    assert setup.client.closed == ["acks=0 produce failed with NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION"]
    assert setup.end_offset(LED) == 1


def test_acks_0_with_an_error_of_the_append_alone_closes_the_connection(setup):
    assert setup.send(ELSEWHERE, acks=0) == []
    assert setup.client.closed == ["acks=0 produce failed with NOT_LEADER_OR_FOLLOWER"]


@pytest.mark.parametrize("acks", [-2, 2, 32767])
def test_other_acks_are_refused(setup, acks):
    assert setup.errors(LED, acks=acks) == {LED: ErrorCode.INVALID_REQUIRED_ACKS}
    assert setup.end_offset(LED) == 0


# -- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize(
    ("key", "error"),
    [
        (NO_TOPIC, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (NO_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ELSEWHERE, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_partition_led_elsewhere_is_refused_at_once(setup, key, error, acks):
    (response,) = setup.send(key, acks=acks)
    ((_, answer),) = answers(response)
    assert (answer.error_code, answer.base_offset) == (error, -1)


def test_unknown_topic_id_is_refused(setup):
    setup.topic_id = b"x" * 16
    (response,) = setup.send(LED, acks=1, version=13)
    (topic,) = response.responses
    assert topic.topic_id == b"x" * 16
    assert topic.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_topic_is_found_by_its_id(setup):
    (response,) = setup.send(LED, acks=1, version=13)
    (topic,) = response.responses
    assert topic.topic_id == setup.topic_id
    assert topic.partition_responses[0].error_code == ErrorCode.NONE


def test_unknown_partition_of_a_known_id_is_refused(setup):
    (response,) = setup.send(NO_PARTITION, acks=1, version=13)
    (topic,) = response.responses
    assert topic.topic_id == setup.topic_id
    assert topic.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_corrupt_batch_is_refused(setup):
    batch = bytearray(build_batch([b"value"]))
    batch[-1] ^= 1
    assert setup.errors(LED, batch=bytes(batch), acks=1) == {LED: ErrorCode.CORRUPT_MESSAGE}
    assert setup.end_offset(LED) == 0


def test_missing_package_of_a_compression_is_named_in_answer_and_log(setup, monkeypatch, caplog):
    pytest.importorskip("cramjam")
    batch = build_batch([b"value"], codec=CompressionCodec.SNAPPY)
    monkeypatch.setitem(sys.modules, "cramjam", None)
    setup.cluster.create_topic("keys", assignments={0: [1]}, configs={"cleanup.policy": "compact"})
    ((_, partition),) = answers(setup.client.ask(produce_request(("keys", 0), batch=batch, acks=1), VERSION))
    assert partition.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert "pip install 'broker-sim[compression]'" in partition.error_message
    assert "pip install 'broker-sim[compression]'" in caplog.text


def test_produce_without_records_is_refused(setup):
    request = produce_request(LED, acks=1)
    request.topic_data[0].partition_data[0].records = None
    response = setup.client.ask(request, VERSION)
    assert errors_of(response) == {LED: ErrorCode.INVALID_RECORD}


def test_produce_to_an_internal_topic_is_refused_and_the_others_are_appended(setup):
    (response,) = setup.send(setup.internal, LED, acks=1)
    found = dict(answers(response))
    refused = found[setup.internal]
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert (refused.base_offset, refused.log_start_offset) == (-1, -1)
    assert found[LED].error_code == ErrorCode.NONE
    assert (setup.end_offset(setup.internal), setup.end_offset(LED)) == (0, 1)


def test_client_id_of_kafkas_admin_client_may_write_to_internal_topics(setup):
    errors = setup.errors(setup.internal, acks=1, client_id="__admin_client")
    assert errors == {setup.internal: ErrorCode.NONE}


def test_transactional_batch_needs_a_transactional_id(setup):
    batch = build_batch([b"value"], producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert setup.errors(LED, ALSO_LED, batch=batch) == {LED: refused, ALSO_LED: refused}
    assert setup.end_offset(LED) == 0


@pytest.mark.parametrize("transactional_id", ["invented", ""])
def test_batch_of_a_transaction_is_refused_without_a_coordinator(setup, transactional_id):
    batch = build_batch([b"value"], producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=True)
    request = produce_request(LED, NO_TOPIC, acks=1, batch=batch)
    request.transactional_id = transactional_id
    (response,) = setup.client.send(request, VERSION)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert errors_of(response) == {LED: ErrorCode.NOT_ENOUGH_REPLICAS, NO_TOPIC: unknown}
    assert setup.end_offset(LED) == 0


def test_transactional_batch_without_a_producer_is_appended(setup):
    request = produce_request(LED, acks=1, batch=build_batch([b"value"], is_transactional=True))
    request.transactional_id = "invented"
    (response,) = setup.client.send(request, VERSION)
    assert errors_of(response) == {LED: ErrorCode.NONE}


@pytest.mark.parametrize(("version", "is_hinted"), [(9, False), (10, True), (12, True)])
def test_current_leader_is_returned_with_its_address_from_version_10(setup, version, is_hinted):
    (response,) = setup.send(LED, ELSEWHERE, acks=1, version=version)
    leaders = {key: answer.current_leader.leader_id for key, answer in answers(response)}
    assert leaders == {LED: -1, ELSEWHERE: 2 if is_hinted else -1}
    assert [endpoint.node_id for endpoint in response.node_endpoints] == [2] * is_hinted


# -- one response for all ---------------------------------------------------------------------------


def test_partitions_that_fail_at_once_wait_for_those_that_are_parked(setup):
    setup.cluster.pause(2)
    responses = setup.send(LED, ELSEWHERE, NO_TOPIC, acks=-1, timeout_ms=500)
    setup.cluster.advance(499)
    assert responses == []
    setup.cluster.advance(1)
    assert errors_of(responses[0]) == {
        LED: ErrorCode.REQUEST_TIMED_OUT,
        ELSEWHERE: ErrorCode.NOT_LEADER_OR_FOLLOWER,
        NO_TOPIC: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_request_without_partitions_is_answered_empty(setup):
    assert setup.client.ask(ProduceRequest(acks=-1), VERSION).responses == []


# -- injected faults --------------------------------------------------------------------------------


def test_injected_error_refuses_its_partition_and_appends_the_others(setup):
    setup.cluster.nodes.faults.inject(Fault(api="Produce", topic="t", partition=0, error="NOT_ENOUGH_REPLICAS"))
    assert setup.errors(LED, ALSO_LED, acks=-1) == {LED: ErrorCode.NOT_ENOUGH_REPLICAS, ALSO_LED: ErrorCode.NONE}
    assert (setup.end_offset(LED), setup.end_offset(ALSO_LED)) == (0, 1)


def test_injected_error_of_a_produce_with_acks_0_closes_the_connection(setup):
    setup.cluster.nodes.faults.inject(Fault(api="Produce", error="NOT_ENOUGH_REPLICAS"))
    assert setup.send(LED, acks=0) == []
    assert setup.client.closed == ["acks=0 produce failed with NOT_ENOUGH_REPLICAS"]
