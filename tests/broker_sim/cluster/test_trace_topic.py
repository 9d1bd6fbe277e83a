"""The trace as records in a topic of the traced cluster, also while its brokers fail."""

import json

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.cluster.trace_topic import BATCH_BYTES, KEPT_BATCHES, TraceTopic
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ApiError
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.records import iter_records
from broker_sim.trace import IDS_PER_LIFE, Trace
from tests.broker_sim.waiting import Waiting

NAME = "trace"


@pytest.fixture
def cluster():
    return VirtualCluster(brokers=3, seed=1)


@pytest.fixture
def topic(cluster):
    topic = TraceTopic(NAME)
    topic.open(cluster.nodes)
    cluster.advance(100)
    return topic


@pytest.fixture
def contents(cluster):
    """Return a function that returns the values in the log of each partition's leader."""

    def read():
        found = {}
        for number, state in enumerate(cluster.nodes.controller.image.topics[NAME].partitions):
            broker = cluster.nodes.brokers.get(state.leader)
            if broker is not None:
                log = broker.replica_manager.partitions[TopicPartition(NAME, number)].log
                batches = log.read(0, 1 << 30, min_one_message=True).records
                found[state.leader] = [r.value.decode() for b in batches for r in iter_records(b)]
        return found

    return read


def _all(contents):
    return sorted(value for values in contents().values() for value in values)


def test_topic_has_a_partition_on_every_broker_and_no_followers(cluster, topic):
    partitions = cluster.nodes.controller.image.topics[NAME].partitions
    assert sorted(state.replicas for state in partitions) == [(1,), (2,), (3,)]


def test_existing_topic_is_used_as_it_is(cluster):
    cluster.create_topic(NAME, partitions=2, replication_factor=3)
    TraceTopic(NAME).open(cluster.nodes)
    assert len(cluster.nodes.controller.image.topics[NAME].partitions) == 2


def test_invalid_topic_name_is_refused(cluster):
    with pytest.raises(ApiError):
        TraceTopic("no/name").open(cluster.nodes)


def test_every_line_becomes_one_record(cluster, topic, contents):
    for start in range(0, 30, 10):
        topic.write([f"line {i:02}" for i in range(start, start + 10)])
        cluster.advance(10)
    assert _all(contents) == [f"line {i:02}" for i in range(30)]
    assert all(contents().values()), "the leaders take turns"


def test_lines_written_before_open_are_kept(cluster, contents):
    topic = TraceTopic(NAME)
    topic.write(["early"])
    topic.open(cluster.nodes)
    cluster.advance(100)
    topic.write(["later"])
    cluster.advance(10)
    assert _all(contents) == ["early", "later"]


def test_paused_and_dead_leaders_get_no_lines(cluster, topic, contents):
    cluster.pause(1)
    cluster.kill(2)
    for number in range(6):
        topic.write([f"line {number}"])
        cluster.advance(1)
    assert contents()[3] == [f"line {number}" for number in range(6)]


def test_lines_are_kept_until_a_leader_runs(cluster, topic, contents):
    for broker_id in (1, 2, 3):
        cluster.pause(broker_id)
    for line in ("patient", "second"):
        topic.write([line])
        cluster.advance(10)
    assert _all(contents) == []
    cluster.resume(2)
    topic.write(["next"])
    cluster.advance(10)
    assert [values for values in contents().values() if values] == [["patient", "second", "next"]]


def test_oldest_lines_are_dropped_when_too_many_are_kept(cluster, topic, contents):
    for broker_id in (1, 2, 3):
        cluster.pause(broker_id)
    for number in range(KEPT_BATCHES + 3):
        topic.write([f"line {number:04}"])
    cluster.advance(1)
    assert topic.dropped_batches == 3
    cluster.resume(1)
    topic.write(["last"])
    cluster.advance(1)
    assert _all(contents)[:2] == ["last", "line 0003"]


def test_many_lines_are_split_into_batches_below_the_maximum(cluster, topic, contents):
    lines = [f"{number}".ljust(BATCH_BYTES // 3, ".") for number in range(10)]
    topic.write(lines)
    cluster.advance(1)
    assert _all(contents) == lines


@pytest.fixture
def traced(tmp_path):
    """Return a function that traces one operation per list of keys, and returns the events."""

    def run(*keys, untraced_topic=None, lives=1):
        path = tmp_path / "trace.jsonl"
        trace = Trace(path, run_id="r", untraced_topic=untraced_topic)
        with trace:
            for _ in range(lives):
                tracer = trace.observer("Fetch", 1, VirtualClock())
                for number, of_operation in enumerate(keys, 1):
                    operation = Waiting(100)
                    operation.operation_id = number
                    tracer.tried(operation, of_operation)
        return [json.loads(line) for line in path.read_text().splitlines()]

    return run


def test_operations_on_the_trace_topic_alone_are_not_traced(traced):
    ours, theirs = TopicPartition(NAME, 0), TopicPartition("orders", 0)
    events = traced([ours], [ours, theirs], [theirs], ["trace-0"], untraced_topic=NAME)
    assert [event["operation_id"] for event in events] == [2, 3, 4]


def test_restarted_broker_has_new_operation_ids(traced):
    events = traced(["a"], ["b"], lives=2)
    assert [event["operation_id"] for event in events] == [1, 2, IDS_PER_LIFE + 1, IDS_PER_LIFE + 2]
