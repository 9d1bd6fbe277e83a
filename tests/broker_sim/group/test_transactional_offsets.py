"""Tests of transactional offsets: pending, committed, aborted, loaded, deleted and expired."""

import random
from types import SimpleNamespace

import pytest
from broker_sim_purgatory import VirtualClock

from broker_sim.config import BrokerConfig
from broker_sim.coordinator.result import Result
from broker_sim.coordinator.storage import NO_TRANSACTION, TransactionMarker, VerifiedTransaction
from broker_sim.errors import ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.offsets import TransactionalOffsets
from broker_sim.group.records import GroupRecord
from broker_sim.group.service import GroupCoordinatorService
from broker_sim.log import VerificationGuard
from broker_sim.metadata import MetadataImage
from broker_sim.protocol.record_batch import parse_header, rebase
from broker_sim.protocol.records import iter_records, read_end_txn_marker
from tests.broker_sim.broker_contexts import broker_context

GUARD = VerificationGuard()
TIMEOUT_MS = 5_000


class Log:
    """Batches as appended by a leader; replicated at once unless `is_held`."""

    def __init__(self):
        self.batches = []
        self.guards = []
        self.versions = []
        self.fails_with = ErrorCode.NONE
        self.is_held = False
        self._end_offset = 0
        self._waiting = []

    def append(
        self, partition, batch, timeout_ms, on_appended, on_done, verification_guard=None, transaction_version=None
    ):
        assert timeout_ms == TIMEOUT_MS
        if transaction_version is None:
            self.guards.append(verification_guard)
        else:
            self.versions.append(transaction_version)
        if self.fails_with:
            on_done(self.fails_with)
            return
        placed = rebase(memoryview(batch), self._end_offset, 0)
        self.batches.append(placed)
        self._end_offset = parse_header(placed).last_offset + 1
        self._waiting.append(on_done)
        on_appended(self._end_offset - 1)
        if not self.is_held:
            self.release()

    def release(self):
        waiting, self._waiting = self._waiting, []
        for on_done in waiting:
            on_done(ErrorCode.NONE)

    def log_end_offset(self, partition):
        return self._end_offset

    def high_watermark(self, partition):
        return self._end_offset - len(self._waiting)

    def max_batch_bytes(self, partition):
        return 1_000_000

    def check_append(self, partition):
        return self.fails_with

    def await_committed(self, partition, end_offset, timeout_ms, on_done):
        self._waiting.append(on_done)

    def read(self, partition):
        return map(bytes, self.batches)


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def clock():
    return VirtualClock(wall_start_ms=1_000_000)


@pytest.fixture
def make_context(log, clock, make_purgatory):
    """Return a factory of shard contexts that load the log."""

    def make():
        image = MetadataImage(version=1, cluster_id="cluster")
        broker = broker_context(
            SimpleNamespace(image=image),
            config=BrokerConfig(offsets_retention_minutes=1),
            clock=clock,
            random=random.Random(1),
            call_later=lambda delay_ms, callback, *args: delay_ms or callback(*args),
            run_beside=lambda work, on_done: on_done(work()),
            purgatory=lambda name: make_purgatory(name, clock),
            storage=lambda topic, read_bytes: log,
        )
        service = GroupCoordinatorService(broker, verify_transaction=None, latest_offsets=None, persister=None)
        runtime = service.runtime
        runtime.elected(0, 0)
        return runtime.get(0)

    return make


@pytest.fixture
def context(make_context):
    return make_context()


@pytest.fixture
def shard(context):
    return context.shard


def record(offset, partition=0, group="g", topic="t"):
    key = record_messages.OffsetCommitKey(group, topic, partition)
    return GroupRecord(key, record_messages.OffsetCommitValue(offset, -1, "", 1_000_000))


def write(context, records, on_done=lambda error: None, transaction=NO_TRANSACTION):
    context.carry_out(Result(None, records, on_settled=on_done), print, print, transaction)


def plain(context, offset, **where):
    write(context, [record(offset, **where)])


def begin(context, producer_id, *records, epoch=0):
    done = []
    transaction = VerifiedTransaction(producer_id, epoch, GUARD)
    write(context, records, done.append, transaction)
    return done


def end(context, producer_id, *, commit=True, epoch=0):
    done = []
    marker = TransactionMarker(producer_id, epoch, 7, commit, 2)
    context.complete_transaction(marker, done.append)
    return done


def offset_of(shard, partition=0, group="g"):
    found = shard.offsets.get(group, "t", partition)
    return None if found is None else found.offset


def is_pending(shard, partition=0, group="g"):
    return shard.transactional_offsets.contains(group, "t", partition)


def test_transactional_offset_is_visible_once_committed(context, shard):
    plain(context, 1)
    assert begin(context, 5, record(10)) == [ErrorCode.NONE]
    assert (offset_of(shard), is_pending(shard)) == (1, True)
    assert end(context, 5) == [ErrorCode.NONE]
    assert (offset_of(shard), is_pending(shard)) == (10, False)


def test_aborted_offset_is_never_visible(context, shard):
    plain(context, 1)
    begin(context, 5, record(10), record(11, partition=1))
    end(context, 5, commit=False)
    assert (offset_of(shard), offset_of(shard, 1)) == (1, None)
    assert not shard.transactional_offsets.has_group("g")


def test_batch_and_marker_equal_kafkas(context, shard, log):
    plain(context, 1)
    begin(context, 5, record(10), record(11, partition=1), epoch=3)
    end(context, 5, epoch=3)
    first, batch, marker = log.batches
    header = parse_header(first)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, 0)
    header = parse_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 3, 0)
    assert (header.is_transactional, header.is_control) == (True, False)
    assert [each.timestamp for each in iter_records(batch)] == [1_000_000] * 2
    header = parse_header(marker)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 3, -1)
    assert (header.is_transactional, header.is_control) == (True, True)
    assert read_end_txn_marker(marker) == (True, 7)
    assert (log.guards, log.versions) == ([None, GUARD], [2])


def test_failed_append_does_not_change_the_transaction(context, shard, log):
    begin(context, 5, record(10))
    log.fails_with = ErrorCode.INVALID_PRODUCER_EPOCH
    assert begin(context, 5, record(20)) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert end(context, 5) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert (offset_of(shard), is_pending(shard)) == (None, True)
    log.fails_with = ErrorCode.NONE
    end(context, 5)
    assert offset_of(shard) == 10


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_commit_error_is_mapped_but_marker_error_is_not(context, shard, log, raised, told):
    log.fails_with = raised
    assert begin(context, 5, record(10)) == [told]
    assert end(context, 5) == [raised]


def test_offset_becomes_visible_with_the_marker(context, shard, log):
    plain(context, 1)
    begin(context, 5, record(10))
    log.is_held = True
    done = end(context, 5)
    assert (offset_of(shard), done) == (10, [])
    assert shard.offsets.get_committed("g", "t", 0, high_watermark=2).offset == 1
    assert shard.offsets.get_committed("g", "t", 0, high_watermark=3).offset == 10
    log.release()
    assert done == [ErrorCode.NONE]


def test_later_record_wins_inside_or_outside_transactions(context, shard):
    begin(context, 5, record(10), record(11, partition=1))
    plain(context, 1)
    end(context, 5)
    assert (offset_of(shard, 0), offset_of(shard, 1)) == (1, 11)
    begin(context, 6, record(20))
    end(context, 6)
    assert offset_of(shard) == 20


def test_later_record_wins_even_if_its_transaction_ends_first(context, shard):
    begin(context, 5, record(10))
    begin(context, 6, record(20))
    end(context, 6)
    assert is_pending(shard)
    end(context, 5)
    assert (offset_of(shard), is_pending(shard)) == (20, False)


def test_last_offset_in_a_transaction_wins(context, shard):
    begin(context, 5, record(10))
    begin(context, 5, record(9))
    end(context, 5)
    assert offset_of(shard) == 9


def test_marker_without_a_transaction_changes_nothing(context, shard):
    plain(context, 1)
    assert end(context, 99) == [ErrorCode.NONE]
    assert offset_of(shard) == 1


def test_empty_commit_waits_for_earlier_writes(context, shard, log):
    log.is_held = True
    plain(context, 1)
    done = begin(context, 5)
    assert (done, len(log.batches)) == ([], 1)
    log.release()
    assert done == [ErrorCode.NONE]


def test_pending_offset_creates_a_simple_group(context, shard):
    begin(context, 5, record(10))
    assert shard.groups["g"].is_empty


@pytest.mark.parametrize("seed", range(20))
def test_loaded_shard_equals_the_writing_one(make_context, log, seed):
    rng = random.Random(seed)
    context = make_context()
    for number in range(200):
        partition, producer_id = rng.randrange(3), rng.randrange(1, 4)
        match rng.randrange(5):
            case 0:
                plain(context, number, partition=partition)
            case 1 | 2:
                begin(context, producer_id, record(number, partition), record(number, 4))
            case 3:
                end(context, producer_id, commit=rng.random() < 0.7)
            case 4:
                tombstone = GroupRecord(record_messages.OffsetCommitKey("g", "t", partition), None)
                write(context, [tombstone])
    restored = make_context()
    shard, loaded = context.shard, restored.shard
    assert restored.loaded_records == log.log_end_offset(0)
    partitions = range(5)
    assert [offset_of(loaded, at) for at in partitions] == [offset_of(shard, at) for at in partitions]
    assert [is_pending(loaded, at) for at in partitions] == [is_pending(shard, at) for at in partitions]
    for producer_id in (1, 2, 3):
        for each in (context, restored):
            end(each, producer_id)
    assert [offset_of(loaded, at) for at in partitions] == [offset_of(shard, at) for at in partitions]


def tombstone_names(records):
    return [(each.key.group, each.key.topic, each.key.partition) for each in records]


def test_deletion_removes_pending_offsets(context, shard):
    begin(context, 5, record(10), record(11, partition=1))
    result = shard.offset_metadata.delete("g", [("t", 0), ("t", 7)])
    assert result.response == [ErrorCode.NONE] * 2
    assert tombstone_names(result.records) == [("g", "t", 0)]
    write(context, result.records)
    assert (is_pending(shard, 0), is_pending(shard, 1)) == (False, True)
    end(context, 5)
    assert (offset_of(shard, 0), offset_of(shard, 1)) == (None, 11)


def test_deleted_group_loses_pending_offsets(context, shard):
    plain(context, 1)
    begin(context, 5, record(10), record(11, partition=1))
    records = shard.offset_metadata.tombstones_of_group(shard.groups["g"])
    assert tombstone_names(records[:2]) == [("g", "t", 0), ("g", "t", 1)]
    assert len(records) == 3
    write(context, records)
    end(context, 5)
    assert (offset_of(shard, 0), offset_of(shard, 1)) == (None, None)


def test_deleted_topic_loses_pending_offsets(context, shard):
    plain(context, 1)
    begin(context, 5, record(10), record(11, topic="u"))
    topics = [SimpleNamespace(name="t", topic_id=bytes(16))]
    records = shard.offset_metadata.topics_deleted(topics).records
    assert tombstone_names(records) == [("g", "t", 0)] * 2
    write(context, records)
    end(context, 5)
    assert offset_of(shard) is None
    assert shard.offsets.get("g", "u", 0).offset == 11


def test_offset_with_a_pending_one_does_not_expire(context, shard, clock):
    plain(context, 1)
    plain(context, 2, partition=1)
    begin(context, 5, record(10))
    clock.advance(60_000)
    assert tombstone_names(shard.offset_metadata.expire().records) == [("g", "t", 1)]
    end(context, 5, commit=False)
    assert len(shard.offset_metadata.expire().records) == 3


def test_group_with_only_pending_offsets_is_kept(context, shard):
    begin(context, 5, record(10))
    assert shard.offset_metadata.expire().records == []
    end(context, 5, commit=False)
    assert shard.offset_metadata.expire().records == list(shard.groups["g"].tombstones())


def test_partition_is_open_until_its_last_producer_has_ended():
    offsets = TransactionalOffsets()
    for producer_id in (1, 2):
        offsets.replay(producer_id, *record(producer_id)[:2], record_offset=producer_id)
    assert list(offsets.end(1)) == [("g", "t", 0)]
    assert offsets.contains("g", "t", 0)
    assert offsets.partitions_of("g") == [("t", 0)]
    assert [committed.offset for committed in offsets.end(2).values()] == [2]
    assert not offsets.has_group("g")
    assert offsets.end(2) == {}
