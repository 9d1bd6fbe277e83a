"""Virtual clusters on simulated disks: power losses, kills, full disks, slow ones."""

import pytest

from broker_sim import ApiError, VirtualCluster, WrongStateError
from broker_sim.cluster.virtual.invariants import InvariantChecker
from broker_sim.cluster.virtual.virtual_client import PRODUCE_VERSION, produce_request
from broker_sim.errors import ErrorCode
from broker_sim.log import DiskOptions

FLUSH = {"log.flush.interval.messages": 1}


def cluster_with(count, *, configs=None, seed=1, **disk):
    """Return a cluster of three with so many records, all of them at every replica."""
    cluster = VirtualCluster(seed=seed, configs=configs, disk=DiskOptions(**disk))
    cluster.create_topic("orders", partitions=1, replication_factor=3)
    for number in range(count):
        cluster.produce("orders", f"value {number}")
    return cluster


def values(cluster):
    """Return what can be read when all replicas are in sync and have told so."""
    cluster.wait_until_in_sync()
    cluster.advance(1_000)
    return [record.value for record in cluster.records("orders")]


EXPECTED = [f"value {number}".encode() for number in range(10)]


def test_flushed_records_outlive_the_power_of_all_brokers():
    cluster = cluster_with(10, configs=FLUSH)
    cluster.lose_power()
    assert not cluster.nodes.brokers
    cluster.restore_power()
    assert values(cluster) == EXPECTED
    assert cluster.lost_records == []


def test_unflushed_records_are_lost_with_the_power_of_all_and_told():
    cluster = cluster_with(10)
    cluster.lose_power()
    cluster.restore_power()
    assert len(values(cluster)) < 10
    assert {lost.broker_id for lost in cluster.lost_records} <= {1, 2, 3}
    lost = cluster.lost_records[0]
    assert str(lost.topic_partition) == "orders-0"
    assert lost.first_offset < lost.end_offset == 10


def test_lying_sync_loses_what_was_flushed_until_told_otherwise():
    cluster = cluster_with(0, configs=FLUSH)
    for disk in cluster.disks.values():
        disk.sync_all()
        disk.fsync_lies = True
    for number in range(10):
        cluster.produce("orders", f"value {number}")
    cluster.lose_power()
    for disk in cluster.disks.values():
        disk.fsync_lies = False
    cluster.restore_power()
    kept = len(values(cluster))
    assert kept < 10
    cluster.produce("orders", "later")
    cluster.wait_until_in_sync()
    cluster.lose_power()
    cluster.restore_power()
    assert values(cluster)[-1] == b"later"


def test_broker_that_lost_its_power_gets_its_records_from_the_others():
    cluster = cluster_with(10)
    follower = cluster.followers("orders")[0]
    cluster.lose_power(follower)
    cluster.produce("orders", "more")
    cluster.restore_power(follower)
    assert values(cluster) == [*EXPECTED, b"more"]
    log = next(iter(cluster.nodes.nodes[follower].logs.logs))
    assert log.log_end_offset == 11


def test_kill_keeps_the_page_cache():
    cluster = cluster_with(10)
    for broker in (1, 2, 3):
        cluster.kill(broker)
    cluster.restore_power()
    assert values(cluster) == EXPECTED
    assert cluster.lost_records == []


def test_power_can_be_lost_after_the_process():
    cluster = cluster_with(10)
    for broker in (1, 2, 3):
        cluster.kill(broker)
    cluster.lose_power()
    cluster.restore_power()
    assert len(values(cluster)) < 10


def test_full_disk_takes_the_log_offline_and_another_replica_leads():
    cluster = cluster_with(10)
    leader = cluster.leader("orders")
    disk = cluster.disks[leader]
    disk.capacity_bytes = disk.used_bytes
    with pytest.raises(ApiError, match="No space left"):
        cluster.produce("orders", "too much")
    cluster.run_until(lambda: cluster.partition("orders").leader not in {leader, None})
    cluster.produce("orders", "more")
    assert [record.value for record in cluster.records("orders")] == [*EXPECTED, b"more"]


def test_read_only_disk_takes_each_log_that_is_written_offline_and_others_lead(caplog):
    cluster = cluster_with(10)
    cluster.create_topic("other", partitions=1, replication_factor=3)
    leader = cluster.leader("orders")
    cluster.transfer_leadership("other", 0, leader)
    cluster.disks[leader].is_read_only = True
    for topic in ("orders", "other"):
        with pytest.raises(ApiError, match="Read-only file system") as caught:
            cluster.produce(topic, "refused")
        assert caught.value.error_code is ErrorCode.KAFKA_STORAGE_ERROR
        cluster.run_until(lambda topic=topic: cluster.partition(topic).leader not in {leader, None})
    cluster.produce("orders", "more")
    cluster.advance(600_000)  # checkpoints, flushes, retention, the cleaner
    assert caplog.text.count("log_offline") == 2
    assert "checkpoint_failed" in caplog.text
    assert leader in cluster.nodes.brokers
    assert leader not in cluster.isr("orders")
    cluster.disks[leader].is_read_only = False
    cluster.kill(leader)
    cluster.start(leader, end_session=True)
    assert values(cluster) == [*EXPECTED, b"more"]


def test_slow_sync_takes_virtual_time():
    def duration_ms(**disk):
        cluster = cluster_with(0, configs=FLUSH, **disk)
        start_ms = cluster.now_ms
        for number in range(10):
            cluster.produce("orders", f"value {number}")
        return cluster.now_ms - start_ms

    assert duration_ms() < 100
    assert 400 <= duration_ms(sync_ms=(50, 50)) <= 3_000


def test_same_seed_gives_the_same_losses():
    def run(seed):
        cluster = cluster_with(10, seed=seed, sync_ms=(0, 5))
        cluster.lose_power()
        cluster.restore_power()
        return cluster.trace.digest(), cluster.lost_records

    assert run(5) == run(5) != run(6)


def test_power_is_not_lost_without_simulated_disks():
    cluster = VirtualCluster()
    with pytest.raises(WrongStateError, match="disk=DiskOptions"):
        cluster.lose_power(1)
    assert set(cluster.nodes.brokers) == {1, 2, 3}


def test_replica_that_has_lost_records_may_lack_them_in_the_isr():
    cluster = cluster_with(5, configs={"broker.session.timeout.ms": 60_000})
    follower = cluster.followers("orders")[0]
    cluster.disks[follower].sync_all()
    for number in range(5, 10):
        cluster.produce("orders", f"value {number}")
    cluster.lose_power(follower)
    cluster.nodes.start(follower)
    node = cluster.nodes.nodes[follower]
    log = next(iter(node.logs.logs))
    assert log.log_end_offset < 10
    assert follower in cluster.isr("orders")
    InvariantChecker(cluster.nodes).check()
    assert node.has_lost_records(log.topic_partition)


def test_broker_that_waits_for_its_disk_can_be_paused_and_resumed():
    cluster = cluster_with(0, configs=FLUSH, sync_ms=(2_000, 2_000))
    leader = cluster.leader("orders")
    request = produce_request(("orders", 0), acks=1)
    pending = cluster.client().send(leader, request, PRODUCE_VERSION)
    process = cluster.nodes.nodes[leader].process
    cluster.run_until(lambda: process.is_blocked)
    assert cluster.status().broker(leader).state == "running"
    cluster.pause(leader)
    assert cluster.status().broker(leader).state == "paused"
    cluster.resume(leader)
    assert process.is_blocked
    start_ms = cluster.now_ms
    cluster.run_until(lambda: not process.is_blocked)
    assert cluster.now_ms - start_ms >= 1_900
    cluster.run_until(lambda: pending.done)
