"""A cluster at the limit of its memory: what clients see, what frees it, where it is told."""

import pytest

from broker_sim.cluster.nodes import node as memory_module
from broker_sim.cluster.nodes.node import MEMORY_RETURN_MS
from broker_sim.cluster.virtual.virtual_client import FETCH_VERSION, PRODUCE_VERSION, fetch_request, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.errors import ErrorCode

KEY = ("orders", 0)
RECORD = (bytes(100_000),)
LIMIT = 1_000_000
FITTING = 9


@pytest.fixture
def make_cluster():
    def make(memory_limit=LIMIT, **topic_configs):
        cluster = VirtualCluster(3, memory_limit=memory_limit)
        cluster.create_topic("orders", assignments={0: [1, 2, 3]}, configs=topic_configs)
        cluster.sender = cluster.client()
        return cluster

    return make


def produce(cluster, values=RECORD, acks=-1):
    """Produce one batch and return the partition's answer."""
    pending = cluster.sender.send(1, produce_request(KEY, values=values, acks=acks), PRODUCE_VERSION)
    cluster.run_until(lambda: pending.done)
    return pending.response.responses[0].partition_responses[0]


def fill(cluster):
    """Produce until a batch is refused; return the number of those that were not."""
    for number in range(1_000):
        answer = produce(cluster)
        if answer.error_code:
            return number, answer
    raise AssertionError("nothing was refused")


def wait(cluster, ms):
    end_ms = cluster.now_ms + ms
    cluster.run_until(lambda: cluster.now_ms >= end_ms, ms + 1_000)


@pytest.mark.parametrize("acks", [1, -1])
def test_at_the_limit_records_are_refused_and_consumers_go_on(make_cluster, acks):
    cluster = make_cluster()
    number, answer = fill(cluster)
    assert number == FITTING
    assert produce(cluster, acks=acks).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (answer.base_offset, answer.log_start_offset) == (-1, -1)
    assert "limit 1000000;" in answer.error_message
    memory = cluster.status().memory
    assert memory.limit_bytes == LIMIT
    assert LIMIT - len(RECORD[0]) - 1_000 < memory.used_bytes <= LIMIT
    pending = cluster.sender.send(1, fetch_request(KEY, max_wait_ms=0), FETCH_VERSION)
    cluster.run_until(lambda: pending.done)
    assert len(pending.response.responses[0].partitions[0].records) > len(RECORD[0])
    assert [broker.state for broker in cluster.status().brokers] == ["running"] * 3
    assert cluster.isr("orders") == (1, 2, 3)


def test_three_replicas_take_the_memory_of_one(make_cluster):
    one, three = VirtualCluster(1, memory_limit=LIMIT), make_cluster()
    one.create_topic("orders", 1, 1)
    one.sender = one.client()
    for cluster in (one, three):
        produce(cluster)
    assert one.status().memory == three.status().memory


def test_deleted_topic_makes_room_on_all_brokers(make_cluster):
    cluster = make_cluster()
    fill(cluster)
    cluster.nodes.controller.delete_topics(["orders"])
    cluster.advance(0)
    assert cluster.status().memory.used_bytes == 0
    cluster.create_topic("orders", assignments={0: [1, 2, 3]})
    assert produce(cluster).error_code == 0


def test_deleted_records_make_room(make_cluster):
    cluster = make_cluster()
    fill(cluster)
    partition = cluster.nodes.brokers[1].replica_manager.partitions[KEY]
    partition.delete_records_on_leader(-1)
    wait(cluster, 2_000)  # the followers' logs begin there too with their next fetch
    assert produce(cluster).error_code == 0
    assert cluster.status().memory.used_bytes < LIMIT / 2


def test_retention_makes_room_before_a_record_is_refused(make_cluster):
    configs = {"segment.bytes": 1_048_576, "retention.bytes": 1_200_000}
    cluster = make_cluster(memory_limit=4_000_000, **configs)
    for _ in range(100):
        assert produce(cluster).error_code == 0
        wait(cluster, 1)
    assert cluster.status().memory.used_bytes <= 4_000_000
    assert cluster.status().partition("orders").replicas[0].log_start_offset > 50


def test_retention_keeps_its_times_where_there_is_room(make_cluster):
    configs = {"segment.bytes": 1_048_576, "retention.bytes": 1_200_000}
    cluster = make_cluster(memory_limit="1GB", **configs)
    for _ in range(100):
        produce(cluster)
    assert cluster.status().partition("orders").replicas[0].log_start_offset == 0
    wait(cluster, 330_000)  # the first check comes after 30 s, the next ones every 5 min
    assert cluster.status().partition("orders").replicas[0].log_start_offset > 50


def test_logs_of_a_paused_broker_are_left_alone(make_cluster):
    cluster = make_cluster()
    for _ in range(3):
        produce(cluster)
    partition = cluster.nodes.brokers[2].replica_manager.partitions[KEY]
    partition.log.offsets.maybe_increment_log_start_offset(2)
    cluster.pause(2)
    fill(cluster)
    assert partition.log.memory.used_bytes > 3 * len(RECORD[0])


def test_freed_memory_is_given_back_once_a_second(make_cluster, monkeypatch):
    returned = []
    monkeypatch.setattr(memory_module, "return_freed_memory", lambda: returned.append(cluster.now_ms))
    cluster = make_cluster("1GB")
    started_ms = cluster.now_ms
    memory = cluster.nodes.memory
    memory.grow(64 << 20)
    for _ in range(3):
        memory.grow(-(16 << 20))
    assert returned == []
    wait(cluster, 5 * MEMORY_RETURN_MS)
    assert returned == [started_ms + MEMORY_RETURN_MS]
    memory.grow(-(16 << 20))
    wait(cluster, 5 * MEMORY_RETURN_MS)
    assert len(returned) == 2


def test_metrics_and_status_tell_used_and_limit(make_cluster):
    cluster = make_cluster()
    produce(cluster)
    used = cluster.status().memory.used_bytes
    assert cluster.status().to_json()["memory"] == {"used_bytes": used, "limit_bytes": LIMIT}
    lines = [line.split() for line in cluster.metrics().splitlines() if line[0] != "#"]
    values = {line[0]: float(line[-1]) for line in lines}
    assert values["broker_sim_memory_used_bytes"] == used > len(RECORD[0])
    assert values["broker_sim_memory_limit_bytes"] == LIMIT


def test_bad_limit_is_refused_before_the_start():
    with pytest.raises(ValueError, match="memory limit 'much'"):
        VirtualCluster(1, memory_limit="much")
