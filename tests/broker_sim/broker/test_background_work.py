"""Claims about what a broker does now and then: retention and checkpoints, each in its own time."""

import pytest

from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.log import LogManager
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.messages import DeleteRecordsRequest

FIRST_MS = 3_000
PERIOD_MS = 20_000
DELETED = 3


@pytest.fixture
def make_cluster():
    """Return a function that starts one broker, with a topic of five records."""

    def make(topic_configs=(), **configs):
        names = {name.replace("_", "."): value for name, value in configs.items()}
        names["log.initial.task.delay.ms"] = str(FIRST_MS)
        cluster = VirtualCluster(1, configs=names)
        cluster.create_topic("topic", 1, 1, configs=dict(topic_configs))
        for _ in range(5):
            ask(cluster, produce_request(("topic", 0)), PRODUCE_VERSION)
        return cluster

    return make


def ask(cluster, request, version):
    pending = cluster.client().send(1, request, version)
    cluster.run_until(lambda: pending.done)


def delete_records(cluster):
    partition = DeleteRecordsRequest.DeleteRecordsPartition(0, DELETED)
    topic = DeleteRecordsRequest.DeleteRecordsTopic("topic", [partition])
    ask(cluster, DeleteRecordsRequest([topic], 1000), 2)


def log_start(cluster):
    partition = cluster.nodes.brokers[1].replica_manager.get_partition(TopicPartition("topic", 0))
    return partition.log.log_start_offset


def advance_to(cluster, ms):
    """Let the time come to `ms` after the broker's start."""
    cluster.advance(ms - cluster.now_ms)


def restart(cluster):
    cluster.kill(1)
    cluster.start(1)
    cluster.run_until(lambda: cluster.nodes.is_ready)


@pytest.mark.parametrize(("killed_at_ms", "kept"), [(FIRST_MS - 1, 0), (FIRST_MS, DELETED)])
def test_log_start_is_checkpointed_first_after_the_initial_delay(make_cluster, killed_at_ms, kept):
    cluster = make_cluster()
    assert cluster.now_ms < FIRST_MS
    delete_records(cluster)
    advance_to(cluster, killed_at_ms)
    restart(cluster)
    assert log_start(cluster) == kept


@pytest.mark.parametrize("early_ms", [1, 0])
def test_log_start_is_checkpointed_again_after_each_period(make_cluster, early_ms):
    cluster = make_cluster(log_flush_start_offset_checkpoint_interval_ms=str(PERIOD_MS))
    advance_to(cluster, FIRST_MS)
    delete_records(cluster)
    advance_to(cluster, FIRST_MS + PERIOD_MS - early_ms)
    restart(cluster)
    assert log_start(cluster) == (0 if early_ms else DELETED)


@pytest.mark.parametrize(
    ("period", "work", "first_ms"),
    [
        ("log_flush_offset_checkpoint_interval_ms", "checkpoint_recovery_points", FIRST_MS),
        ("log_flush_scheduler_interval_ms", "flush_dirty_logs", FIRST_MS),
        ("replica_high_watermark_checkpoint_interval_ms", "checkpoint_high_watermarks", PERIOD_MS),
    ],
)
def test_work_on_logs_is_done_in_its_period(make_cluster, monkeypatch, period, work, first_ms):
    done_ms = []
    monkeypatch.setattr(LogManager, work, lambda _: done_ms.append(cluster.now_ms))
    cluster = make_cluster(**{period: str(PERIOD_MS)})
    advance_to(cluster, first_ms + 2 * PERIOD_MS)
    assert done_ms == [first_ms, first_ms + PERIOD_MS, first_ms + 2 * PERIOD_MS]


def test_retention_is_applied_first_after_the_initial_delay_then_in_periods(make_cluster):
    # A segment goes when its newest record is older than retention.ms, strictly.
    cluster = make_cluster({"retention.ms": "1"}, log_retention_check_interval_ms=str(PERIOD_MS))
    advance_to(cluster, FIRST_MS - 1)
    assert log_start(cluster) == 0
    advance_to(cluster, FIRST_MS)
    assert log_start(cluster) == 5
    ask(cluster, produce_request(("topic", 0)), PRODUCE_VERSION)
    advance_to(cluster, FIRST_MS + PERIOD_MS - 1)
    assert log_start(cluster) == 5
    advance_to(cluster, FIRST_MS + PERIOD_MS)
    assert log_start(cluster) == 6
