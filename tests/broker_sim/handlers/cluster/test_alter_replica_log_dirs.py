"""AlterReplicaLogDirs: replicas move between the directories of a broker; answers as Kafka 4.3.1 gives them."""

import pytest

from broker_sim.cluster.virtual.virtual_client import produce_request
from broker_sim.cluster.virtual.virtual_cluster import VirtualCluster
from broker_sim.controller.requests import ConfigResourceType
from broker_sim.errors import ErrorCode
from broker_sim.handlers.error_answers import whole_answer
from broker_sim.log import DiskOptions
from broker_sim.protocol.api_keys import ApiKey
from broker_sim.protocol.messages import (
    AlterReplicaLogDirsRequest,
    DescribeLogDirsRequest,
    IncrementalAlterConfigsRequest,
)
from broker_sim.protocol.records import build_batch

HERE, NOWHERE = "/memory", "/no/such/directory"
A, B = "/first/directory", "/second"
NONE = ErrorCode.NONE
NO_DIRECTORY = ErrorCode.LOG_DIR_NOT_FOUND
ELSEWHERE = ErrorCode.REPLICA_NOT_AVAILABLE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
TOO_LONG = ErrorCode.INVALID_TOPIC_EXCEPTION


def request_of(*entries):
    """Return a request of entries (directory, partitions by topic)."""
    directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    topic = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic
    return AlterReplicaLogDirsRequest(
        [directory(path, [topic(name, numbers) for name, numbers in topics.items()]) for path, topics in entries]
    )


def rows(response):
    return [
        (topic.topic_name, [(row.partition_index, row.error_code) for row in topic.partitions])
        for topic in response.results
    ]


class Replicas:
    """Partitions 0 and 1 of `t` are on broker 1, partition 2 is not."""

    def __init__(self, **options):
        self.cluster = VirtualCluster(seed=5, **options)
        self.cluster.create_topic("t", assignments={0: [1, 2], 1: [2, 1], 2: [2, 3]})
        self.client = self.cluster.client()

    def alter(self, *entries, version=2):
        pending = self.client.send(1, request_of(*entries), version)
        self.cluster.run_until(lambda: pending.done, 60_000)
        return rows(pending.response)


@pytest.fixture(scope="module")
def replicas():
    return Replicas()


@pytest.mark.parametrize("version", [1, 2])
def test_replica_may_only_stay_where_it_is(replicas, version):
    told = replicas.alter((HERE, {"t": [0, 1, 2, 7]}), version=version)
    assert told == [("t", [(2, ELSEWHERE), (1, NONE), (0, NONE), (7, UNKNOWN)])]
    told = replicas.alter((NOWHERE, {"t": [0], "none": [0]}), version=version)
    assert sorted(told) == [("none", [(0, NO_DIRECTORY)]), ("t", [(0, NO_DIRECTORY)])]


@pytest.mark.parametrize("path", [f"{HERE}/", "memory", "", f"{HERE}/../memory"])
def test_path_is_compared_letter_by_letter(replicas, path):
    assert replicas.alter((path, {"t": [0]})) == [("t", [(0, NO_DIRECTORY)])]


def test_last_directory_of_a_partition_counts(replicas):
    here, nowhere = (HERE, {"t": [0]}), (NOWHERE, {"t": [0]})
    assert replicas.alter(here, nowhere) == [("t", [(0, NO_DIRECTORY)])]
    assert replicas.alter(nowhere, here) == [("t", [(0, NONE)])]


@pytest.mark.parametrize(("length", "told"), [(213, UNKNOWN), (214, TOO_LONG), (300, TOO_LONG)])
def test_topic_name_must_leave_room_for_the_suffix_of_a_moving_log(replicas, length, told):
    assert replicas.alter((HERE, {"x" * length: [0]})) == [("x" * length, [(0, told)])]
    # Before anything else is looked at.
    (row,) = replicas.alter((NOWHERE, {"x" * length: [10]}))
    assert row[1] == [(10, TOO_LONG)]


def test_topics_and_partitions_have_the_order_of_scalas_maps(replicas):
    asked = {f"n{number}": [3, 0, 2, 1, 40, 17, 5] for number in range(6)}
    told = replicas.alter((HERE, asked), (NOWHERE, {"t": [1, 3, 0]}))
    assert [(name, [number for number, _ in found]) for name, found in told] == [
        ("n2", [5, 3, 2, 1, 17, 0, 40]),
        ("n5", [40, 5, 3, 2, 1, 17, 0]),
        ("t", [3, 1, 0]),
        ("n1", [3, 2, 1, 17, 0, 40, 5]),
        ("n0", [3, 2, 1, 17, 0, 40, 5]),
        ("n4", [5, 3, 2, 1, 17, 0, 40]),
        ("n3", [5, 3, 2, 1, 17, 0, 40]),
    ]


@pytest.mark.parametrize("entries", [(), ((HERE, {}),), ((HERE, {"t": []}),)])
def test_no_partitions_no_answers(replicas, entries):
    assert replicas.alter(*entries) == []


def test_replica_whose_log_is_offline_is_a_storage_error():
    replicas = Replicas(disk=DiskOptions())
    manager = replicas.cluster.nodes.brokers[1].replica_manager
    (key,) = [each for each in manager.partitions if each == ("t", 0)]
    del manager.partitions[key]
    manager.offline_partitions = {key}
    told = replicas.alter(("/broker-1", {"t": [0, 1]}))
    assert told == [("t", [(1, NONE), (0, ErrorCode.KAFKA_STORAGE_ERROR)])]


def test_failed_request_has_an_error_for_each_requested_partition():
    request = request_of((HERE, {"b": [1, 0], "a": [0]}), (NOWHERE, {"b": [1]}))
    error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    response = whole_answer(ApiKey.ALTER_REPLICA_LOG_DIRS, request, 2, error)
    assert rows(response) == [("b", [(1, error), (0, error)]), ("a", [(0, error)]), ("b", [(1, error)])]


class TwoDirectories(Replicas):
    """The same with two log directories on each broker."""

    def __init__(self, configs=None):
        super().__init__(configs={"log.dirs": f"{A},{B}"} | (configs or {}))

    def ask(self, request, version):
        pending = self.client.send(1, request, version)
        self.cluster.run_until(lambda: pending.done, 60_000)
        return pending.response

    def described(self):
        """Return size, lag and whether it is a future replica, by directory and partition."""
        return {
            each.log_dir: {
                (topic.name, row.partition_index): (row.partition_size, row.offset_lag, row.is_future_key)
                for topic in each.topics
                for row in topic.partitions
            }
            for each in self.ask(DescribeLogDirsRequest(None), 5).results
        }

    def partitions(self):
        return {path: list(rows) for path, rows in self.described().items()}


@pytest.fixture
def two_directories():
    return TwoDirectories()


def test_replicas_are_spread_over_the_directories_and_move(two_directories):
    assert two_directories.partitions() == {A: [("t", 0)], B: [("t", 1)]}
    assert two_directories.alter((B, {"t": [0]})) == [("t", [(0, NONE)])]
    assert two_directories.partitions() == {A: [], B: [("t", 0), ("t", 1)]}
    assert two_directories.alter((A, {"t": [0, 1]})) == [("t", [(1, NONE), (0, NONE)])]
    assert two_directories.partitions() == {A: [("t", 0), ("t", 1)], B: []}


def test_moved_replica_is_written_and_described(two_directories):
    batch = build_batch([b"value"])
    two_directories.ask(produce_request(("t", 0), batch=batch), 9)
    two_directories.alter((B, {"t": [0]}))
    two_directories.ask(produce_request(("t", 0), batch=batch), 9)
    assert two_directories.described()[B]["t", 0] == (2 * len(batch), 0, False)


BATCHES = 40
BATCH = build_batch([b"v" * 1000])
BYTES_PER_SECOND = 10_000
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


def throttle_of(broker_id):
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    config = IncrementalAlterConfigsRequest.AlterableConfig(THROTTLE, value=str(BYTES_PER_SECOND))
    return IncrementalAlterConfigsRequest([resource(ConfigResourceType.BROKER, str(broker_id), [config])])


@pytest.fixture
def throttled():
    """Return replicas that copy 5 000 bytes at a time, and 10 000 in a second; partition 0 has 40 batches."""
    replicas = TwoDirectories({"replica.fetch.max.bytes": "5000"})
    replicas.ask(throttle_of(broker_id=1), 1)
    for _ in range(BATCHES):
        replicas.ask(produce_request(("t", 0), batch=BATCH), 9)
    return replicas


def test_throttled_future_replica_replaces_the_log_once_caught_up(throttled):
    assert throttled.alter((B, {"t": [0]})) == [("t", [(0, NONE)])]
    whole = BATCHES * len(BATCH)
    lags = []
    began_ms = throttled.cluster.now_ms
    while ("t", 0) in throttled.described()[A]:
        size, lag, is_future = throttled.described()[B]["t", 0]
        assert is_future
        assert size < whole
        lags.append(lag)
        throttled.cluster.advance(500)
    assert lags == sorted(lags, reverse=True)
    assert 0 < lags[-1] < lags[0] <= BATCHES
    assert throttled.described()[B]["t", 0] == (whole, 0, False)
    assert throttled.cluster.now_ms - began_ms >= 1000 * (whole - 3 * BYTES_PER_SECOND) / BYTES_PER_SECOND


def test_move_back_ends_the_future_replica(throttled):
    throttled.alter((B, {"t": [0]}))
    throttled.alter((A, {"t": [0]}))
    throttled.cluster.advance(30_000)
    assert ("t", 0) not in throttled.described()[B]


def test_future_replica_is_deleted_with_its_topic(throttled):
    throttled.alter((B, {"t": [0]}))
    throttled.cluster.delete_topic("t")
    throttled.cluster.advance(30_000)
    assert throttled.partitions() == {A: [], B: []}


def test_coming_replica_is_made_in_its_directory(two_directories):
    assert two_directories.alter((A, {"new": [0, 1, 2]})) == [("new", [(0, UNKNOWN), (1, UNKNOWN), (2, UNKNOWN)])]
    two_directories.cluster.create_topic("new", assignments={number: [1, 2] for number in range(3)})
    assert two_directories.partitions()[A] == [("new", 0), ("new", 1), ("new", 2), ("t", 0)]
