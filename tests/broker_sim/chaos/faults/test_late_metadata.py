"""Brokers that take new metadata late: what a client sees that uses a topic right after it was created."""

import itertools

import pytest

from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode
from broker_sim.protocol import messages

MAX_MS = 100
CREATE_TOPICS_VERSION = 7
FETCH_VERSION = 13
STEPS = [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NONE]


def create(cluster, client, name):
    """Create a topic that broker 2 leads; return its id as soon as the controller has answered."""
    request = messages.CreateTopicsRequest
    assignment = request.CreatableReplicaAssignment(0, [2])
    topic = request.CreatableTopic(name, -1, -1, assignments=[assignment])
    pending = client.send(1, request(topics=[topic], timeout_ms=1_000), CREATE_TOPICS_VERSION)
    cluster.run_until(lambda: pending.done)
    (created,) = pending.response.topics
    assert created.error_code == 0
    return created.topic_id


def fetch(cluster, client, topic_id):
    """Fetch the topic at broker 2; return the error code."""
    request = messages.FetchRequest
    partition = request.FetchPartition(partition=0, partition_max_bytes=1_000)
    message = request(session_epoch=-1, topics=[request.FetchTopic(topic_id=topic_id, partitions=[partition])])
    pending = client.send(2, message, FETCH_VERSION)
    cluster.run_until(lambda: pending.done)
    return ErrorCode(pending.response.responses[0].partitions[0].error_code)


def codes_after_creation(cluster, name, waits_ms):
    """Fetch a new topic after each of the waits; return the error codes."""
    client = cluster.client()
    topic_id = create(cluster, client, name)
    codes = []
    for wait_ms in waits_ms:
        cluster.advance(wait_ms)
        codes.append(fetch(cluster, client, topic_id))
    return codes


def test_new_topic_is_served_at_once_without_the_fault():
    cluster = VirtualCluster(seed=1)
    assert codes_after_creation(cluster, "new", [0]) == [ErrorCode.NONE]


def test_new_topic_is_unknown_then_without_a_leader_then_served():
    cluster = VirtualCluster(seed=1)
    cluster.delay_metadata(MAX_MS)
    every_ms = [0] + [1] * 2 * MAX_MS
    runs = [codes_after_creation(cluster, f"new{number}", every_ms) for number in range(4)]
    for codes in runs:
        assert [code for code, _ in itertools.groupby(codes)] == STEPS
    assert len({codes.index(ErrorCode.NONE) for codes in runs}) > 1, "each has its own times"


def test_topic_that_is_asked_for_by_name_is_unknown_too():
    cluster = VirtualCluster(seed=1)
    cluster.delay_metadata(MAX_MS)
    client = cluster.client()
    create(cluster, client, "new")
    produce = messages.ProduceRequest
    data = produce.TopicProduceData("new", partition_data=[produce.PartitionProduceData(0, None)])
    pending = client.send(2, produce(acks=1, timeout_ms=1_000, topic_data=[data]), 9)
    cluster.run_until(lambda: pending.done)
    (answer,) = pending.response.responses[0].partition_responses
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_brokers_that_are_behind_go_on_to_the_newest_metadata():
    cluster = VirtualCluster(seed=1)
    cluster.delay_metadata(MAX_MS)
    client = cluster.client()
    topic_ids = [create(cluster, client, f"new{number}") for number in range(20)]
    cluster.advance(4 * MAX_MS)
    assert [fetch(cluster, client, each) for each in topic_ids] == [ErrorCode.NONE] * 20


@pytest.mark.parametrize("end", ["delay_metadata", "reset"])
def test_fault_is_shown_until_it_ends(end):
    cluster = VirtualCluster(seed=1)
    cluster.delay_metadata(MAX_MS)
    assert cluster.status().metadata_delay_ms == MAX_MS
    getattr(cluster, end)()
    assert cluster.status().metadata_delay_ms == 0
    cluster.advance(2 * MAX_MS)
    assert codes_after_creation(cluster, "new", [0]) == [ErrorCode.NONE]


def test_same_seed_draws_the_same_times():
    def run(seed):
        cluster = VirtualCluster(seed=seed)
        cluster.delay_metadata(MAX_MS)
        return codes_after_creation(cluster, "new", [1] * 2 * MAX_MS)

    assert run(3) == run(3) != run(4)


def test_negative_time_is_refused():
    with pytest.raises(ValueError, match="max_ms must be at least 0, not -1"):
        VirtualCluster(seed=1).delay_metadata(-1)


def test_cluster_lives_on_with_late_metadata():
    cluster = VirtualCluster(seed=1, configs={"broker.session.timeout.ms": 3_000})
    cluster.create_topic("orders", assignments={0: [1, 2, 3]})
    cluster.delay_metadata(MAX_MS)
    cluster.kill(1)
    cluster.wait_until(lambda: cluster.leader("orders") != 1)
    cluster.start(1)
    cluster.wait_until(lambda: len(cluster.isr("orders")) == 3)
    assert all(not broker.fenced for broker in cluster.status().brokers)
