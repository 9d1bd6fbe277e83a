"""DescribeLogDirs: sizes and lags of the replicas of one broker, and the disk that they are on."""

import shutil

import pytest

from broker_sim.cluster.virtual.virtual_client import produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.config import TopicConfig
from broker_sim.errors import ErrorCode
from broker_sim.handlers.cluster.describe_log_dirs import handle_describe_log_dirs
from broker_sim.log import DiskOptions, LogDirectory, LogManager
from broker_sim.metadata.topic_partition import TopicPartition
from broker_sim.protocol.messages import DescribeLogDirsRequest
from broker_sim.protocol.records import build_batch

VERSIONS = range(1, 6)
WITH_SPACE = 4
LIMIT_BYTES = 1_000_000
BATCH = build_batch([b"value"])
TOPIC = DescribeLogDirsRequest.DescribableLogDirTopic


class LogDirs:
    """Two partitions on brokers 1 and 2; what is asked goes over the wire."""

    def __init__(self, **options):
        self.cluster = VirtualCluster(seed=5, **options)
        for name in ("b", "a"):
            self.cluster.create_topic(name, assignments={0: [1, 2], 1: [2, 1]})
        self.client = self.cluster.client()

    def ask(self, broker, request, version):
        pending = self.client.send(broker, request, version)
        self.cluster.run_until(lambda: pending.done, 60_000)
        return pending.response

    def produce(self, *keys):
        self.ask(1, produce_request(*keys, batch=BATCH), 9)

    def describe(self, broker=1, topics=None, version=5):
        (directory,) = self.ask(broker, DescribeLogDirsRequest(topics), version).results
        return directory

    def sizes(self, *args, **kwargs):
        return {
            (topic.name, partition.partition_index): partition.partition_size
            for topic in self.describe(*args, **kwargs).topics
            for partition in topic.partitions
        }


@pytest.fixture
def dirs():
    return LogDirs(memory_limit=LIMIT_BYTES)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_logs_are_described_in_order_with_their_sizes(dirs, version):
    dirs.produce(("a", 0))
    sizes = dirs.sizes(version=version)
    assert list(sizes) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    assert list(sizes.values()) == [len(BATCH), 0, 0, 0]


def test_follower_describes_its_own_log(dirs):
    dirs.produce(("a", 0))
    assert dirs.sizes(2)["a", 0] == len(BATCH)
    assert dirs.describe(3).topics == []


def test_only_requested_local_partitions_are_described(dirs):
    assert set(dirs.sizes(topics=[TOPIC("a", [1, 7]), TOPIC("none", [0])])) == {("a", 1)}
    assert dirs.describe(topics=[]).topics == []
    assert dirs.describe(topics=[]).log_dir == "/memory"


def test_no_log_of_a_directory_moves_and_no_directory_is_cordoned(dirs):
    directory = dirs.describe()
    assert not directory.is_cordoned
    described = [each for topic in directory.topics for each in topic.partitions]
    assert [(each.offset_lag, each.is_future_key) for each in described] == [(0, False)] * 4


@pytest.mark.parametrize("version", VERSIONS)
def test_memory_is_the_disk_of_logs_in_memory(dirs, version):
    dirs.produce(("a", 0))
    directory = dirs.describe(version=version)
    used = dirs.cluster.status().memory.used_bytes
    assert used > len(BATCH)
    known = (LIMIT_BYTES, LIMIT_BYTES - used)
    assert (directory.total_bytes, directory.usable_bytes) == (known if version >= WITH_SPACE else (-1, -1))


def test_simulated_disk_has_its_size():
    dirs = LogDirs(disk=DiskOptions(capacity_bytes=LIMIT_BYTES))
    directory = dirs.describe(2)
    assert (directory.log_dir, directory.total_bytes) == ("/broker-2", LIMIT_BYTES)
    dirs.produce(("a", 0))
    assert dirs.describe(2).usable_bytes <= directory.usable_bytes - len(BATCH)


def test_simulated_disk_without_bound_has_no_size():
    directory = LogDirs(disk=DiskOptions()).describe()
    assert (directory.total_bytes, directory.usable_bytes) == (-1, -1)


@pytest.fixture
def on_disk(broker, tmp_path):
    """Return broker 1 with a log in a directory, but without its replica."""
    broker.logs = LogManager(broker.clock, directories=[LogDirectory(tmp_path / "logs", "cluster", 1)])
    key = TopicPartition("t", 0)
    broker.logs.get_or_create(key, b"i" * 16, TopicConfig()).append_as_leader(BATCH, 0)
    yield broker
    broker.logs.directories[0].close()


def describe(broker):
    (directory,) = broker.ask(handle_describe_log_dirs, DescribeLogDirsRequest(None), 5).results
    return directory


def test_directory_on_disk_has_the_size_of_the_disk(on_disk, tmp_path):
    directory = describe(on_disk)
    assert (directory.error_code, directory.log_dir) == (0, str(tmp_path / "logs"))
    assert directory.total_bytes == shutil.disk_usage(tmp_path).total
    assert 0 < directory.usable_bytes < directory.total_bytes


def test_lag_of_a_log_without_a_replica_is_not_known(on_disk):
    (partition,) = describe(on_disk).topics[0].partitions
    assert (partition.partition_size, partition.offset_lag) == (len(BATCH), -1)


def test_lost_directory_is_a_storage_error_without_logs(on_disk, tmp_path):
    shutil.rmtree(tmp_path / "logs")
    directory = describe(on_disk)
    assert directory.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (directory.log_dir, directory.topics) == (str(tmp_path / "logs"), [])
