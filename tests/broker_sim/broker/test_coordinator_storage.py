"""Claims about the partitions of an internal topic as their coordinator uses them."""

from broker_sim.broker.coordinator_storage import ReplicatedStorage
from broker_sim.errors import ErrorCode
from broker_sim.metadata.topic_name import GROUP_METADATA_TOPIC
from broker_sim.protocol.record_batch import parse_header
from broker_sim.protocol.records import Record, build_batch, iter_records

TIMEOUT_MS = 1_000


def storage_of(user, partition=0, read_bytes=1_000_000):
    leader = user.cluster.leader(GROUP_METADATA_TOPIC, partition)
    broker = user.cluster.nodes.brokers[leader]
    return ReplicatedStorage(GROUP_METADATA_TOPIC, broker.replica_manager, lambda: None, read_bytes)


def batch(*keys):
    return build_batch([Record(b"v", key) for key in keys])


def test_append_returns_the_last_offset_and_then_waits_for_replicas(user):
    storage = storage_of(user)
    told = []
    storage.append(0, batch(b"a", b"b"), TIMEOUT_MS, told.append, told.append)
    assert told == [1]
    assert storage.high_watermark(0) == 0
    user.cluster.advance(600)
    assert told == [1, ErrorCode.NONE]
    assert storage.high_watermark(0) == 2


def test_failed_append_returns_only_the_error(user):
    storage = storage_of(user)
    other = next(p for p in range(5) if storage_of(user, p)._replica_manager is not
                 storage._replica_manager)  # fmt: skip
    told = []
    storage.append(other, batch(b"a"), TIMEOUT_MS, told.append, told.append)
    storage.append(99, batch(b"a"), TIMEOUT_MS, told.append, told.append)
    assert told == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert storage.high_watermark(99) == 0
    assert storage.log_end_offset(99) == 0
    assert storage.max_batch_bytes(99) == 0
    assert storage.check_append(0) == ErrorCode.NONE
    assert storage.check_append(other) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert storage.check_append(99) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_wait_for_an_offset_ends_when_it_is_committed_or_at_the_timeout(user):
    storage = storage_of(user)
    told = []
    storage.await_committed(0, 0, TIMEOUT_MS, told.append)
    assert told == [ErrorCode.NONE]
    storage.append(0, batch(b"a"), TIMEOUT_MS, lambda _: None, lambda _: None)
    storage.await_committed(0, 1, TIMEOUT_MS, told.append)
    storage.await_committed(0, 2, TIMEOUT_MS, told.append)
    user.cluster.advance(TIMEOUT_MS - 1)
    assert told == [ErrorCode.NONE, ErrorCode.NONE]
    user.cluster.advance(2)
    assert told == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT]


def test_read_gives_every_batch_whole_whatever_the_buffer(make_user):
    user = make_user(brokers=1)
    for read_bytes in (1, 100, 1_000_000):
        storage = storage_of(user, read_bytes=read_bytes)
        before = sum(1 for _ in storage.read(0))
        storage.append(0, batch(b"a", b"b"), TIMEOUT_MS, lambda _: None, lambda _: None)
        storage.append(0, batch(b"c"), TIMEOUT_MS, lambda _: None, lambda _: None)
        batches = list(storage.read(0))
        assert len(batches) == before + 2
        assert [parse_header(one).records_count for one in batches[-2:]] == [2, 1]
        assert [record.key for one in batches[-2:] for record in iter_records(one)] == [b"a", b"b", b"c"]


def test_largest_batch_is_that_of_the_topic(make_user):
    assert storage_of(make_user(brokers=1, message_max_bytes=12_345)).max_batch_bytes(0) == 12_345


def test_empty_partition_has_nothing_to_read(user):
    assert list(storage_of(user).read(0)) == []
