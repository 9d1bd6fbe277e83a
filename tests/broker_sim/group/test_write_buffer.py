"""Claims about the buffer of writes, and about the shard that writes through it."""

from types import SimpleNamespace

import pytest

from broker_sim.config import BrokerConfig
from broker_sim.errors import ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.classic.classic_groups import ClassicGroups
from broker_sim.group.records import GroupRecord, decode_batch
from broker_sim.group.shard import GroupShard
from broker_sim.group.write_buffer import TransactionMarker, WriteBuffer
from purgatory import VirtualClock

MAX_BATCH_BYTES = 1_000


class Storage:
    """The offsets committed by each batch; `commit` lets them be replicated, `fails_with` refuses more."""

    def __init__(self):
        self.batches = []
        self.fails_with = ErrorCode.NONE
        self._waiting = []

    def append(self, partition, batch, timeout_ms, on_appended, on_done, verification_guard=None):
        if self.fails_with:
            on_done(self.fails_with)
            return
        self.batches.append([record.value.offset for _, record in decode_batch(batch)])
        on_appended(self.log_end_offset(partition) - 1)
        self._waiting.append(on_done)

    def check_append(self, partition):
        return self.fails_with

    def max_batch_bytes(self, partition):
        return MAX_BATCH_BYTES

    def log_end_offset(self, partition):
        return sum(map(len, self.batches))

    def high_watermark(self, partition):
        return 0 if self._waiting else self.log_end_offset(partition)

    def commit(self):
        waiting, self._waiting = self._waiting, []
        for on_done in waiting:
            on_done(ErrorCode.NONE)


class Loop:
    """Keeps what is to run in the next turn of an event loop."""

    def __init__(self):
        self.soon = []

    def call_later(self, delay_ms, callback, *args):
        assert delay_ms == 0
        self.soon.append(callback)

    def turn(self):
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()


def commit(offset, partition=0):
    return GroupRecord(
        record_messages.OffsetCommitKey("g", "t", partition),
        record_messages.OffsetCommitValue(offset, -1, "", 1_000),
    )


@pytest.fixture
def storage():
    return Storage()


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def environment(storage, loop, make_purgatory):
    clock = VirtualClock(wall_start_ms=1_000_000)
    return SimpleNamespace(
        broker_id=1,
        storage=storage,
        config=BrokerConfig(),
        clock=clock,
        call_later=loop.call_later,
        rebalance=make_purgatory("Rebalance", clock),
        heartbeat=make_purgatory("Heartbeat", clock),
    )


@pytest.fixture
def failed():
    """What was called because an append failed."""
    return []


@pytest.fixture
def buffer(environment, failed):
    return WriteBuffer(0, environment, lambda: failed.append("failed"))


def test_writes_of_one_turn_are_one_batch_and_are_answered_when_it_is_committed(
    buffer, storage, loop
):
    answers = []
    buffer.add([commit(1)], lambda error: answers.append(("first", error)))
    buffer.add([commit(2), commit(3)], lambda error: answers.append(("second", error)))
    assert (storage.batches, buffer.end_offset) == ([], 3)
    loop.turn()
    assert storage.batches == [[1, 2, 3]]
    assert (answers, buffer.end_offset) == ([], 3)
    storage.commit()
    assert answers == [("first", ErrorCode.NONE), ("second", ErrorCode.NONE)]


def test_writes_of_the_next_turn_are_another_batch(buffer, storage, loop):
    buffer.add([commit(1)], print)
    loop.turn()
    buffer.add([commit(2)], print)
    loop.turn()
    loop.turn()
    assert storage.batches == [[1], [2]]


def test_batch_is_appended_before_it_is_too_large(buffer, storage, loop):
    for number in range(100):
        buffer.add([commit(number)], print)
    loop.turn()
    assert [offset for batch in storage.batches for offset in batch] == list(range(100))
    *full, last = [len(batch) for batch in storage.batches]
    assert len(set(full)) == 1
    assert 10 < full[0] < 100
    assert last <= full[0]


def test_write_that_is_too_large_alone_is_refused_alone(buffer, storage, loop, failed):
    answers = []
    assert buffer.add([commit(1)], answers.append)
    assert not buffer.add([commit(2)] * 100, answers.append)
    assert answers == [ErrorCode.MESSAGE_TOO_LARGE]
    loop.turn()
    assert (storage.batches, failed) == ([[1]], [])


def test_write_that_may_be_small_when_compressed_is_appended(environment, storage, loop):
    environment.config = BrokerConfig.from_mapping({"offsets.topic.compression.codec": "1"})
    buffer = WriteBuffer(0, environment, print)
    assert buffer.add([commit(2)] * 100, print)
    loop.turn()
    assert storage.batches == [[2] * 100]


@pytest.mark.parametrize("how", ["add", "append", "append_marker"])
def test_nothing_is_appended_behind_what_has_failed(buffer, storage, failed, how):
    answers, appended = [], []
    buffer.add([commit(1)] * 5, lambda _: None)
    storage.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    if how == "add":
        for _ in range(20):
            buffer.add([commit(2)], answers.append)
    elif how == "append":
        buffer.append([commit(2)], appended.append, answers.append)
    else:
        marker = TransactionMarker(1, 0, 0, is_commit=True, transaction_version=2)
        buffer.append_marker(marker, appended.append, answers.append)
    assert (storage.batches, appended, failed) == ([], [], ["failed"])
    assert answers[-1] == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_append_at_once_comes_after_what_was_written_before(buffer, storage, loop):
    buffer.add([commit(1)], print)
    buffer.append([commit(2)], print, print)
    loop.turn()
    assert storage.batches == [[1], [2]]


def test_failed_batch_is_told_to_all_who_wait(buffer, storage, loop, failed):
    answers = []
    buffer.add([commit(1)], answers.append)
    buffer.add([commit(2)], answers.append)
    storage.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    loop.turn()
    assert answers == [ErrorCode.NOT_ENOUGH_REPLICAS] * 2
    assert failed == ["failed"]


@pytest.fixture
def shard(environment, failed):
    made = GroupShard(0, 0, environment, lambda: failed.append("reload"))
    made.classic = ClassicGroups(made)
    return made


def test_shard_has_what_is_written_soon_at_once_under_its_later_offset(shard, storage, loop):
    answers = []
    shard.write_soon([commit(5)], answers.append)
    shard.write_soon([commit(6, partition=1)], answers.append)
    assert shard.offsets.get("g", "t", 0).offset == 5
    assert shard.offsets.get_committed("g", "t", 1, high_watermark=1) is None
    assert shard.offsets.get_committed("g", "t", 1, high_watermark=2).offset == 6
    loop.turn()
    storage.commit()
    assert answers == [ErrorCode.NONE] * 2


def test_shard_takes_nothing_in_that_cannot_be_appended(shard, storage, loop):
    storage.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    answers = []
    shard.write_soon([commit(5)], answers.append)
    assert answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert (shard.offsets.get("g", "t", 0), loop.soon) == (None, [])


@pytest.mark.parametrize("is_active", [True, False])
def test_shard_is_loaded_again_when_its_state_is_ahead_of_the_log(
    shard, storage, loop, failed, is_active
):
    shard.write_soon([commit(5)], print)
    storage.fails_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not is_active:
        shard.on_unloaded()
    loop.turn()
    assert failed == (["reload"] if is_active else [])
