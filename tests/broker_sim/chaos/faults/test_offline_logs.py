"""Disks that fail under a running cluster: one partition goes offline there, everything else lives on."""

import resource
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from broker_sim import ApiError, Cluster, WrongStateError
from broker_sim.errors import ErrorCode

SEGMENT_BYTES = "internal.segment.bytes"
VALUE = b"v" * 1_000


@contextmanager
def largest_file(size_bytes):
    """Let no file of this process grow beyond that: the next write fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def lines_of(caplog, event):
    return [record.message for record in caplog.records if event in record.message]


def produce_until(cluster, topic, is_done):
    """Produce until that; return how many records were acknowledged, the others are refused."""
    acknowledged = 0
    while not is_done():
        try:
            cluster.produce(topic, VALUE)
        except (ApiError, WrongStateError) as error:  # it has no leader, or one whose log is offline
            refusal = error
        else:
            acknowledged += 1
            refusal = None
        if isinstance(refusal, ApiError):
            assert refusal.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    return acknowledged


def test_full_disk_takes_one_partition_offline(tmp_path, caplog):
    with Cluster(1, topics=["full", "other"], data_dir=tmp_path) as cluster:
        with largest_file(50_000):
            acknowledged = produce_until(cluster, "full", lambda: cluster.partition("full").leader is None)
            cluster.produce("other", "lives on")
            assert len(cluster.records("other")) == 1
        line, *more = lines_of(caplog, "log_offline")
        assert not more
        assert f"directory='{tmp_path}/broker-1/full-0'" in line
        assert "why='File too large'" in line
        cluster.kill(1)
        cluster.start(1, end_session=True)
        assert cluster.leader("full") == 1
        assert len(cluster.records("full")) == acknowledged > 20
    with Cluster(1, data_dir=tmp_path) as cluster:
        assert len(cluster.records("full")) == acknowledged
        assert len(cluster.records("other")) == 1


@pytest.fixture
def three(tmp_path):
    """Three replicas, led by broker 1; after three records each begins a new segment."""
    with Cluster(3, data_dir=tmp_path) as cluster:
        cluster.create_topic("t", assignments={0: [1, 2, 3]}, configs={SEGMENT_BYTES: "2000"})
        cluster.create_topic("other", assignments={0: [1, 2, 3]})
        cluster.produce("t", "before")
        yield cluster


def start_again(cluster, gone, directory):
    """Start broker 1 again, whose directory is there again."""
    gone.rename(directory)
    cluster.kill(1)
    cluster.start(1, end_session=True)
    cluster.wait_until_in_sync()


def test_leader_that_loses_its_directory_is_replaced(three, tmp_path, caplog):
    directory, gone = tmp_path / "broker-1" / "t-0", tmp_path / "gone"
    directory.rename(gone)
    acknowledged = produce_until(three, "t", lambda: 1 not in three.isr("t"))
    assert three.isr("t") == (2, 3)
    assert three.leader("t") == 2
    three.produce("t", "after")
    three.produce("other", "lives on")
    assert three.leader("other") == 1
    assert len(lines_of(caplog, "log_offline")) == 1
    start_again(three, gone, directory)
    assert set(three.isr("t")) == {1, 2, 3}
    assert len(three.records("t")) == 1 + acknowledged + 1


def test_follower_that_loses_its_directory_leaves_the_isr(three, tmp_path, caplog):
    directory, gone = tmp_path / "broker-1" / "t-0", tmp_path / "gone"
    three.transfer_leadership("t", 0, 2)
    directory.rename(gone)
    with ThreadPoolExecutor(1) as executor:
        # As in Kafka the last record may wait for the follower as long as that counts as caught up.
        produced = executor.submit(lambda: [three.produce("t", VALUE) for _ in range(2)])
        while 1 in three.isr("t"):
            assert not produced.done()
        assert three.leader("t") == 2
        assert len(lines_of(caplog, "log_offline")) == 1
        start_again(three, gone, directory)
        assert len(produced.result()) == 2
    assert len(three.records("t")) == 3


def test_topic_that_is_offline_can_be_deleted_and_made_again(tmp_path):
    with Cluster(1, topics=["t"], data_dir=tmp_path) as cluster:
        with largest_file(20_000):
            produce_until(cluster, "t", lambda: cluster.partition("t").leader is None)
        cluster.delete_topic("t")
        cluster.create_topic("t")
        cluster.produce("t", "new")
        assert [record.value for record in cluster.records("t")] == [b"new"]


def test_topic_that_is_made_again_is_not_taken_offline_for_its_predecessor(three, tmp_path, caplog):
    three.produce("t", VALUE)
    with ThreadPoolExecutor(1) as executor, three.paused(3):
        (tmp_path / "broker-3" / "t-0").rename(tmp_path / "gone")
        # The paused follower will append it to a new segment, and then hear of the topic's deletion.
        produced = executor.submit(three.produce, "t", VALUE)
        while not three.purgatory().of(1, "Produce").num_delayed:
            assert not produced.done()
        three.delete_topic("t")
        three.create_topic("t", assignments={0: [1, 2, 3]})
        assert isinstance(produced.exception(), ApiError)
    three.wait_until_in_sync()
    three.produce("t", "new")
    assert set(three.isr("t")) == {1, 2, 3}
    assert len(lines_of(caplog, "log_offline")) == 1
