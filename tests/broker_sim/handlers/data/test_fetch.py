import sys
from itertools import groupby
from pathlib import Path

import pytest

from broker_sim.cluster.virtual.virtual_client import fetch_request, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.handlers import data
from broker_sim.handlers.data.fetch import handle_fetch
from broker_sim.handlers.faults import Fault
from broker_sim.protocol.messages import FetchRequest

HANDLERS = Path(data.__file__).parent


def ask(broker, version, *, topic_id=None, **fields):
    partitions = [FetchRequest.FetchPartition(0, partition_max_bytes=1)]
    topic = FetchRequest.FetchTopic(topic="t", partitions=partitions)
    if topic_id is not None:
        topic.topic_id = topic_id
    topics = [topic] if version < 13 or topic_id is not None else []
    return broker.ask(handle_fetch, FetchRequest(topics=topics, **fields), version)


@pytest.mark.parametrize("version", range(4, 13))
def test_unknown_isolation_level_fails_every_partition_up_to_version_12(broker, version):
    broker.create("t", [1])
    response = ask(broker, version, isolation_level=2)
    assert response.error_code == (ErrorCode.UNKNOWN_SERVER_ERROR if version >= 7 else 0)
    (topic,) = response.responses
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", range(13, 19))
def test_unknown_isolation_level_fails_the_request_from_version_13(broker, version):
    topic_id = broker.create("t", [1])
    response = ask(broker, version, topic_id=topic_id, isolation_level=2)
    assert (response.error_code, response.responses) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])


def test_isolation_level_does_not_matter_where_nothing_is_read(broker):
    response = ask(broker, 12, isolation_level=2)
    (topic,) = response.responses
    assert response.error_code == ErrorCode.NONE
    assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("session_id", [0, 77])
def test_fetch_session_cannot_be_continued(broker, session_id):
    response = ask(broker, 13, session_id=session_id, session_epoch=5)
    assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


class Setup:
    """The only broker, which leads two empty partitions."""

    def __init__(self, make_frame_client):
        self.cluster = VirtualCluster(1)
        self.cluster.create_topic("t", 2, 1)
        self.faults = self.cluster.nodes.faults
        self.client = make_frame_client(self.cluster.nodes.brokers[1].dispatcher.handle_frame)

    def fetch(self, *keys, **options):
        return self.client.send(fetch_request(*keys, **options), 12)


@pytest.fixture
def setup(make_frame_client):
    return Setup(make_frame_client)


def errors_of(response):
    return {
        (topic.topic, partition.partition_index): partition.error_code
        for topic in response.responses
        for partition in topic.partitions
    }


def test_partition_that_does_not_exist_does_not_end_the_wait_for_the_others(setup):
    responses = setup.fetch(("t", 0), ("u", 0), max_wait_ms=500)
    setup.cluster.advance(499)
    assert responses == []
    setup.cluster.advance(1)
    assert errors_of(responses[0]) == {("t", 0): ErrorCode.NONE, ("u", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_injected_error_answers_its_partition_and_ends_the_wait_for_the_others(setup):
    setup.faults.inject(Fault(api="Fetch", topic="t", partition=1, error="KAFKA_STORAGE_ERROR"))
    (response,) = setup.fetch(("t", 0), ("t", 1), max_wait_ms=60_000)
    assert errors_of(response) == {("t", 0): 0, ("t", 1): ErrorCode.KAFKA_STORAGE_ERROR}
    assert setup.fetch(("t", 0), max_wait_ms=60_000) == []


def test_injected_error_has_no_offsets(setup):
    setup.faults.inject(Fault(api="Fetch", error="KAFKA_STORAGE_ERROR"))
    (response,) = setup.fetch(("t", 0), max_wait_ms=60_000)
    answer = response.responses[0].partitions[0]
    assert (answer.high_watermark, bytes(answer.records)) == (-1, b"")


def test_min_bytes_above_max_bytes_wait_for_max_bytes_only(setup):
    responses = setup.fetch(("t", 0), max_wait_ms=60_000, min_bytes=1_000, max_bytes=60)
    assert responses == []
    setup.client.ask(produce_request(("t", 0), acks=1), 9)
    setup.cluster.advance(1)
    assert len(responses) == 1


def test_fetch_that_waits_goes_through_each_module_once(setup):
    modules = []

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.parent == HANDLERS:
            modules.append(path.stem)

    sys.setprofile(note)
    try:
        responses = setup.fetch(("t", 0), max_wait_ms=5)
        assert responses == []
        setup.cluster.advance(5)
    finally:
        sys.setprofile(None)
    assert len(responses) == 1
    assert [module for module, _ in groupby(modules)] == ["fetch", "fetch_request", "fetch_response"]
