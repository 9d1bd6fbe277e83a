"""Claims about offsets of transactions: pending, committed, dropped, loaded, deleted, expired."""

import random
from types import SimpleNamespace

import pytest

from broker_sim.config import BrokerConfig
from broker_sim.errors import ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.classic.classic_groups import ClassicGroups
from broker_sim.group.offset_metadata import (
    delete_records,
    expired_records,
    tombstones_of_deleted_topics,
    tombstones_of_group,
)
from broker_sim.group.records import GroupRecord
from broker_sim.group.shard import GroupShard
from broker_sim.group.transactional_offsets import TransactionalOffsets
from broker_sim.group.write_buffer import TransactionMarker, VerifiedTransaction
from broker_sim.log import VerificationGuard
from broker_sim.protocol.record_batch import parse_header, rebase
from broker_sim.protocol.records import iter_records, read_end_txn_marker
from purgatory import VirtualClock

GUARD = VerificationGuard()
TIMEOUT_MS = 5_000


class Log:
    """Batches as a leader appends them; all is replicated at once, unless `is_held`."""

    def __init__(self):
        self.batches = []
        self.guards = []
        self.versions = []
        self.fails_with = ErrorCode.NONE
        self.is_held = False
        self._end_offset = 0
        self._waiting = []

    def append(self, partition, batch, timeout_ms, on_appended, on_done, verification_guard=None):
        self.guards.append(verification_guard)
        self._append(batch, on_appended, on_done)

    def append_marker(self, partition, batch, version, timeout_ms, on_appended, on_done):
        assert timeout_ms == TIMEOUT_MS
        self.versions.append(version)
        self._append(batch, on_appended, on_done)

    def _append(self, batch, on_appended, on_done):
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


@pytest.fixture
def log():
    return Log()


@pytest.fixture
def clock():
    return VirtualClock(wall_start_ms=1_000_000)


@pytest.fixture
def make_shard(log, clock, make_purgatory):
    def make():
        environment = SimpleNamespace(
            broker_id=1,
            storage=log,
            config=BrokerConfig(offsets_retention_minutes=1),
            clock=clock,
            call_later=lambda delay_ms, callback, *args: None,
            counters=SimpleNamespace(offset_commits=0, offset_deletions=0, offset_expirations=0),
            rebalance=make_purgatory("Rebalance", clock),
            heartbeat=make_purgatory("Heartbeat", clock),
        )
        made = GroupShard(0, 0, environment)
        made.classic = ClassicGroups(made)
        made.consumer = SimpleNamespace()
        return made

    return make


@pytest.fixture
def shard(make_shard):
    return make_shard()


def record(offset, partition=0, group="g", topic="t"):
    key = record_messages.OffsetCommitKey(group, topic, partition)
    return GroupRecord(key, record_messages.OffsetCommitValue(offset, -1, "", 1_000_000))


def plain(shard, offset, **where):
    shard.write([record(offset, **where)], lambda error: None)


def begin(shard, producer_id, *records, epoch=0):
    done = []
    transaction = VerifiedTransaction(producer_id, epoch, GUARD)
    shard.write_transactional(records, transaction, done.append)
    return done


def end(shard, producer_id, *, commit=True, epoch=0):
    done = []
    marker = TransactionMarker(producer_id, epoch, 7, commit, 2)
    shard.complete_transaction(marker, done.append)
    return done


def offset_of(shard, partition=0, group="g"):
    found = shard.offsets.get(group, "t", partition)
    return None if found is None else found.offset


def is_pending(shard, partition=0, group="g"):
    return shard.transactional_offsets.contains(group, "t", partition)


def test_offset_of_transaction_counts_once_it_is_committed(shard):
    plain(shard, 1)
    assert begin(shard, 5, record(10)) == [ErrorCode.NONE]
    assert (offset_of(shard), is_pending(shard)) == (1, True)
    assert end(shard, 5) == [ErrorCode.NONE]
    assert (offset_of(shard), is_pending(shard)) == (10, False)


def test_offset_of_aborted_transaction_never_counts(shard):
    plain(shard, 1)
    begin(shard, 5, record(10), record(11, partition=1))
    end(shard, 5, commit=False)
    assert (offset_of(shard), offset_of(shard, 1)) == (1, None)
    assert not shard.transactional_offsets.has_group("g")


def test_batch_and_marker_are_those_of_kafka(shard, log):
    plain(shard, 1)
    begin(shard, 5, record(10), record(11, partition=1), epoch=3)
    end(shard, 5, epoch=3)
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


def test_failed_append_leaves_the_transaction_as_it_was(shard, log):
    begin(shard, 5, record(10))
    log.fails_with = ErrorCode.INVALID_PRODUCER_EPOCH
    assert begin(shard, 5, record(20)) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert end(shard, 5) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert (offset_of(shard), is_pending(shard)) == (None, True)
    log.fails_with = ErrorCode.NONE
    end(shard, 5)
    assert offset_of(shard) == 10


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
    ],
)
def test_commit_is_told_as_coordinators_do_and_the_marker_as_it_is(shard, log, raised, told):
    log.fails_with = raised
    assert begin(shard, 5, record(10)) == [told]
    assert end(shard, 5) == [raised]


def test_committed_offset_is_seen_with_the_marker_and_not_with_its_record(shard, log):
    plain(shard, 1)
    begin(shard, 5, record(10))
    log.is_held = True
    done = end(shard, 5)
    assert (offset_of(shard), done) == (10, [])
    assert shard.offsets.get_committed("g", "t", 0, high_watermark=2).offset == 1
    assert shard.offsets.get_committed("g", "t", 0, high_watermark=3).offset == 10
    log.release()
    assert done == [ErrorCode.NONE]


def test_last_commit_counts_whether_in_a_transaction_or_not(shard):
    begin(shard, 5, record(10), record(11, partition=1))
    plain(shard, 1)
    end(shard, 5)
    assert (offset_of(shard, 0), offset_of(shard, 1)) == (1, 11)
    begin(shard, 6, record(20))
    end(shard, 6)
    assert offset_of(shard) == 20


def test_later_transaction_counts_although_the_earlier_one_ends_after_it(shard):
    begin(shard, 5, record(10))
    begin(shard, 6, record(20))
    end(shard, 6)
    assert is_pending(shard)
    end(shard, 5)
    assert (offset_of(shard), is_pending(shard)) == (20, False)


def test_last_offset_of_one_transaction_counts(shard):
    begin(shard, 5, record(10))
    begin(shard, 5, record(9))
    end(shard, 5)
    assert offset_of(shard) == 9


def test_marker_without_a_transaction_changes_nothing(shard):
    plain(shard, 1)
    assert end(shard, 99) == [ErrorCode.NONE]
    assert offset_of(shard) == 1


def test_nothing_to_commit_waits_for_what_was_written_before(shard, log):
    log.is_held = True
    plain(shard, 1)
    done = begin(shard, 5)
    assert (done, len(log.batches)) == ([], 1)
    log.release()
    assert done == [ErrorCode.NONE]


def test_pending_offset_makes_a_simple_group(shard):
    begin(shard, 5, record(10))
    assert shard.groups["g"].is_empty


@pytest.mark.parametrize("seed", range(20))
def test_loaded_shard_is_that_which_wrote_the_log(make_shard, log, seed):
    rng = random.Random(seed)
    shard = make_shard()
    for number in range(200):
        partition, producer_id = rng.randrange(3), rng.randrange(1, 4)
        match rng.randrange(5):
            case 0:
                plain(shard, number, partition=partition)
            case 1 | 2:
                begin(shard, producer_id, record(number, partition), record(number, 4))
            case 3:
                end(shard, producer_id, commit=rng.random() < 0.7)
            case 4:
                tombstone = GroupRecord(record_messages.OffsetCommitKey("g", "t", partition), None)
                shard.write([tombstone], lambda error: None)
    loaded = make_shard()
    records = sum(loaded.load(bytes(batch)) for batch in log.batches)
    assert records == log.log_end_offset(0)
    partitions = range(5)
    assert [offset_of(loaded, at) for at in partitions] == [
        offset_of(shard, at) for at in partitions
    ]
    assert [is_pending(loaded, at) for at in partitions] == [
        is_pending(shard, at) for at in partitions
    ]
    for producer_id in (1, 2, 3):
        for each in (shard, loaded):
            end(each, producer_id)
    assert [offset_of(loaded, at) for at in partitions] == [
        offset_of(shard, at) for at in partitions
    ]


def tombstone_names(records):
    return [(each.key.group, each.key.topic, each.key.partition) for each in records]


def test_deletion_forgets_what_is_pending(shard):
    begin(shard, 5, record(10), record(11, partition=1))
    records, errors = delete_records(shard, "g", [("t", 0), ("t", 7)])
    assert errors == [ErrorCode.NONE] * 2
    assert tombstone_names(records) == [("g", "t", 0)]
    shard.write(records, lambda error: None)
    assert (is_pending(shard, 0), is_pending(shard, 1)) == (False, True)
    end(shard, 5)
    assert (offset_of(shard, 0), offset_of(shard, 1)) == (None, 11)


def test_deleted_group_forgets_what_is_pending(shard):
    plain(shard, 1)
    begin(shard, 5, record(10), record(11, partition=1))
    records = tombstones_of_group(shard, shard.groups["g"])
    assert tombstone_names(records[:2]) == [("g", "t", 0), ("g", "t", 1)]
    assert len(records) == 3
    shard.write(records, lambda error: None)
    end(shard, 5)
    assert (offset_of(shard, 0), offset_of(shard, 1)) == (None, None)


def test_deleted_topic_takes_pending_offsets_with_it(shard):
    plain(shard, 1)
    begin(shard, 5, record(10), record(11, topic="u"))
    topics = [SimpleNamespace(name="t", topic_id=bytes(16))]
    records = tombstones_of_deleted_topics(shard, topics)
    assert tombstone_names(records) == [("g", "t", 0)] * 2
    shard.write(records, lambda error: None)
    end(shard, 5)
    assert offset_of(shard) is None
    assert shard.offsets.get("g", "u", 0).offset == 11


def test_offset_with_a_pending_one_does_not_expire(shard, clock):
    plain(shard, 1)
    plain(shard, 2, partition=1)
    begin(shard, 5, record(10))
    clock.advance(60_000)
    assert tombstone_names(expired_records(shard)) == [("g", "t", 1)]
    end(shard, 5, commit=False)
    assert len(expired_records(shard)) == 3


def test_group_with_pending_offsets_only_is_kept(shard):
    begin(shard, 5, record(10))
    assert expired_records(shard) == []
    end(shard, 5, commit=False)
    assert expired_records(shard) == list(shard.groups["g"].tombstones())


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
