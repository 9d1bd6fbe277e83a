"""Injected faults on a real cluster: which requests they hit, how often, and what clients see."""

import socket
import time

import pytest

from broker_sim.cluster.cluster import Cluster
from broker_sim.errors import ErrorCode, UnknownBrokerError
from broker_sim.handlers.faults import Fault
from broker_sim.protocol import messages
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.headers import RequestHeader, decode_response, encode_request
from broker_sim.protocol.records import build_batch

pytestmark = pytest.mark.threads

TOPIC = "orders"
TIMEOUT_S = 60
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


class Client:
    """One connection to the only broker."""

    def __init__(self, cluster):
        self._socket = socket.create_connection(cluster.address(1), TIMEOUT_S)
        self._file = self._socket.makefile("rb")

    def ask(self, request, version):
        """Return the response; EOFError when the connection is closed instead."""
        self.send(request, version)
        size = self._file.read(4)
        if not size:
            raise EOFError
        frame = self._file.read(int.from_bytes(size, "big"))
        return decode_response(request.API_KEY, version, frame)[1]

    def send(self, request, version):
        header = RequestHeader(ApiKey(request.API_KEY), version, 1, "test")
        self._socket.sendall(b"".join(encode_request(header, request)))

    def produce(self, *partitions, version=9, acks=-1, topic_id=bytes(16)):
        """Return the error codes by partition."""
        response = self.ask(produce_request(partitions, acks, topic_id), version)
        return {
            partition.index: partition.error_code
            for topic in response.responses
            for partition in topic.partition_responses
        }

    def close(self):
        self._file.close()
        self._socket.close()


def produce_request(partitions, acks=-1, topic_id=bytes(16)):
    data = [
        messages.ProduceRequest.PartitionProduceData(index=index, records=build_batch([b"value"]))
        for index in partitions
    ]
    topic = messages.ProduceRequest.TopicProduceData(name=TOPIC, topic_id=topic_id, partition_data=data)
    return messages.ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])


def fetch_request(*partitions):
    wanted = [
        messages.FetchRequest.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000)
        for index in partitions
    ]
    topic = messages.FetchRequest.FetchTopic(topic=TOPIC, partitions=wanted)
    return messages.FetchRequest(max_wait_ms=0, min_bytes=1, topics=[topic])


@pytest.fixture(scope="module")
def shared_cluster():
    with Cluster(1) as made:
        made.create_topic(TOPIC, 3, 1)
        yield made


@pytest.fixture
def cluster(shared_cluster):
    yield shared_cluster
    shared_cluster.heal()


@pytest.fixture
def client(cluster):
    made = Client(cluster)
    yield made
    made.close()


def end_offset(cluster, partition=0):
    return cluster.status().partition(TOPIC, partition).replicas[0].log_end_offset


def test_error_is_returned_count_times_and_nothing_is_appended(cluster, client):
    before = end_offset(cluster)
    fault = cluster.inject(Fault(api="Produce", error=NOT_LEADER, count=2))
    assert [client.produce(0)[0] for _ in range(3)] == [NOT_LEADER, NOT_LEADER, ErrorCode.NONE]
    assert end_offset(cluster) == before + 1
    assert (fault.hits, fault.remaining) == (2, 0)
    assert cluster.status().faults == ()


@pytest.mark.parametrize("version", [9, 13])
def test_only_the_named_partition_fails(cluster, client, version):
    metadata = client.ask(messages.MetadataRequest(topics=None), 12)
    topic_id = next(t.topic_id for t in metadata.topics if t.name == TOPIC)
    before = end_offset(cluster, 1), end_offset(cluster, 2)
    cluster.inject(Fault(api="Produce", topic=TOPIC, partition=1, error=NOT_LEADER))
    assert client.produce(0, version=version, topic_id=topic_id) == {0: 0}
    answer = client.produce(1, 2, version=version, topic_id=topic_id)
    assert answer == {1: NOT_LEADER, 2: ErrorCode.NONE}
    assert (end_offset(cluster, 1), end_offset(cluster, 2)) == (before[0], before[1] + 1)


def test_fetch_and_list_offsets_fail_by_partition(cluster, client):
    for api in ("Fetch", "ListOffsets"):
        cluster.inject(Fault(api=api, topic=TOPIC, partition=0, error=NOT_LEADER))
    response = client.ask(fetch_request(0, 1), 12)
    errors = {p.partition_index: p.error_code for t in response.responses for p in t.partitions}
    assert errors == {0: NOT_LEADER, 1: ErrorCode.NONE}
    partitions = [
        messages.ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 1)
    ]
    topic = messages.ListOffsetsRequest.ListOffsetsTopic(name=TOPIC, partitions=partitions)
    response = client.ask(messages.ListOffsetsRequest(replica_id=-1, topics=[topic]), 7)
    errors = {p.partition_index: p.error_code for t in response.topics for p in t.partitions}
    assert errors == {0: NOT_LEADER, 1: ErrorCode.NONE}


def test_api_with_one_error_for_the_request_answers_it(cluster, client):
    error = ErrorCode.CONCURRENT_TRANSACTIONS
    cluster.inject(Fault(api="InitProducerId", error=error, count=1))
    request = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    assert client.ask(request, 4).error_code == error
    assert client.ask(request, 4).error_code != error


def test_lost_request_does_nothing_and_closes_the_connection(cluster, client):
    before = end_offset(cluster)
    cluster.inject(Fault(api="Produce", lose="request"))
    with pytest.raises(EOFError):
        client.produce(0)
    assert end_offset(cluster) == before


def test_lost_response_leaves_the_records_appended(cluster, client):
    before = end_offset(cluster)
    cluster.inject(Fault(api="Produce", lose="response"))
    with pytest.raises(EOFError):
        client.produce(0)
    assert end_offset(cluster) == before + 1


def test_delay_does_not_hold_back_the_append(cluster, client):
    before = end_offset(cluster)
    cluster.inject(Fault(api="Produce", delay_ms=3_600_000))
    client.send(produce_request([0]), 9)
    deadline = time.monotonic() + TIMEOUT_S
    while end_offset(cluster) == before:
        assert time.monotonic() < deadline


def test_delay_holds_back_the_response(cluster, client):
    cluster.inject(Fault(api="Produce", delay_ms=500))
    started = time.monotonic()
    assert client.produce(0)[0] == ErrorCode.NONE
    assert time.monotonic() >= started + 0.5


def test_delay_holds_back_an_error(cluster, client):
    cluster.inject(Fault(api="Produce", error=NOT_LEADER, delay_ms=100))
    started = time.monotonic()
    assert client.produce(0)[0] == NOT_LEADER
    assert time.monotonic() >= started + 0.1


def test_error_of_a_produce_with_acks_0_closes_the_connection(cluster, client):
    cluster.inject(Fault(api="Produce", error=NOT_LEADER))
    with pytest.raises(EOFError):
        client.produce(0, acks=0)


def test_other_apis_are_not_hit_and_unknown_brokers_are_refused(cluster, client):
    with pytest.raises(UnknownBrokerError):
        cluster.inject(Fault(api="Produce", broker=2, error=NOT_LEADER))
    cluster.inject(Fault(api="Fetch", broker=1, error=NOT_LEADER))
    assert client.produce(0)[0] == ErrorCode.NONE


def test_first_fault_wins_until_it_is_removed(cluster, client):
    first = cluster.inject(Fault(api="Produce", error=NOT_LEADER))
    cluster.inject(Fault(api="Produce", error=ErrorCode.NOT_ENOUGH_REPLICAS))
    assert client.produce(0)[0] == NOT_LEADER
    first.remove()
    assert client.produce(0)[0] == ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(LookupError):
        cluster.heal(first.id)
    cluster.heal()
    assert client.produce(0)[0] == ErrorCode.NONE
