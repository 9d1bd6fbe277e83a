"""Kills and restarts of brokers in virtual time, and the trace of a run."""

import json

import pytest

from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, fetch_request, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.trace import Trace

KEY = TopicPartition("topic", 0)


@pytest.fixture
def cluster():
    running = VirtualCluster(seed=5)
    running.create_topic("topic", assignments={0: [1, 2, 3]})
    return running


def test_restarted_broker_removes_logs_of_deleted_topics(cluster):
    cluster.create_topic("kept", assignments={0: [1, 2, 3]})
    topics = cluster.nodes.controller.image.topics
    deleted, kept = topics["topic"].topic_id, topics["kept"].topic_id
    logs = cluster.nodes.nodes[3].logs
    cluster.kill(3)
    cluster.nodes.controller.delete_topics(["topic"])
    cluster.start(3, wait=False)
    assert logs.get(KEY, deleted) is not None
    cluster.run_until(lambda: cluster.inside.listeners.is_accepting(3))
    assert logs.get(KEY, deleted) is None
    assert logs.get(TopicPartition("kept", 0), kept) is not None


def test_parked_requests_of_a_killed_broker_are_disconnected_and_leave_no_timer(cluster):
    client = cluster.client()
    pending = client.send(1, fetch_request(("topic", 0), max_wait_ms=3_000_000), 12)
    cluster.advance(100)
    cluster.kill(1)
    cluster.run_until(lambda: pending.done)
    assert pending.disconnected
    for broker_id in (2, 3):
        cluster.kill(broker_id)
    cluster.advance(60_000)
    due_ns = cluster.loop.next_due_ns()
    assert due_ns is None or due_ns < 1_000 * 10**9


def test_dead_broker_refuses_and_restarted_broker_has_acknowledged_records(cluster):
    client = cluster.client()
    acknowledged = client.send(1, produce_request(("topic", 0)), PRODUCE_VERSION)
    cluster.run_until(lambda: acknowledged.done)
    for broker_id in (1, 2, 3):
        cluster.kill(broker_id)
    refused = client.send(1, produce_request(("topic", 0)), PRODUCE_VERSION)
    cluster.run_until(lambda: refused.done)
    assert refused.disconnected
    for broker_id in (1, 2, 3):
        cluster.start(broker_id)
    cluster.run_until(lambda: cluster.nodes.is_ready)
    log = cluster.nodes.nodes[1].logs.get(KEY, cluster.nodes.controller.image.topics["topic"].topic_id)
    assert log.log_end_offset == 1


def _traced(path, seed):
    """Let an acks=all time out in virtual time; return the digest of the run."""
    with Trace(path, run_id=f"seed-{seed}") as trace:
        cluster = VirtualCluster(seed=seed, trace=trace)
        cluster.create_topic("topic", assignments={0: [1, 2, 3]})
        cluster.pause(3)
        request = produce_request(("topic", 0), timeout_ms=700)
        pending = cluster.client().send(1, request, PRODUCE_VERSION)
        cluster.run_until(lambda: pending.done)
        return cluster.trace.digest()


def test_same_seed_writes_the_same_trace_file(tmp_path):
    first, again = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    digest = _traced(first, 3)
    assert _traced(again, 3) == digest
    assert again.read_bytes() == first.read_bytes()
    events = [json.loads(line) for line in first.read_text().splitlines()]
    produced = [event for event in events if event["purgatory"] == "Produce"]
    assert [event["event"] for event in produced] == ["tried", "parked", "expired"]
    assert (produced[-1]["waited_ms"], produced[-1]["run_id"]) == (700, "seed-3")


def test_broker_paused_before_it_learned_of_unfencing_then_accepts_clients():
    def started():
        cluster = VirtualCluster(3, seed=1, max_latency_ms=20)
        cluster.kill(3)
        cluster.start(3, wait=False, end_session=True)
        return cluster

    with started() as cluster:
        cluster.run_until(lambda: cluster.nodes.brokers[3].is_serving)
        heard_ms = cluster.now_ms
    with started() as cluster:
        cluster.advance(heard_ms - cluster.now_ms - 1)
        cluster.pause(3)
        cluster.advance(200)
        assert not cluster.nodes.brokers[3].is_serving
        cluster.resume(3)
        cluster.run_until(lambda: cluster.inside.listeners.is_accepting(3))
