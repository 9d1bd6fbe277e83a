"""Claims about the buffer of writes, and about the runtime that writes through it."""

from dataclasses import replace

import pytest

from broker_sim.coordinator.context import CoordinatorContext, CoordinatorState
from broker_sim.coordinator.environment import RuntimeEnvironment
from broker_sim.coordinator.result import Result
from broker_sim.coordinator.transactions import TransactionMarker
from broker_sim.coordinator.write_buffer import WriteBuffer
from broker_sim.errors import ErrorCode
from broker_sim.group import record_messages
from broker_sim.group.records import GroupRecord, serde
from broker_sim.protocol.compression import CompressionCodec
from purgatory import VirtualClock

MAX_BATCH_BYTES = 1_000


class Storage:
    """The offsets committed by each batch; `commit` lets them be replicated, `fails_with` refuses more."""

    def __init__(self):
        self.batches = []
        self.fails_with = ErrorCode.NONE
        self._waiting = []

    def append(self, partition, batch, timeout_ms, on_appended, on_done, **checks):
        if self.fails_with:
            on_done(self.fails_with)
            return
        self.batches.append([record.value.offset for _, record in serde.decode_batch(batch)])
        on_appended(self.log_end_offset(partition) - 1)
        self._waiting.append(on_done)

    def read(self, partition):
        return ()

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
def environment(storage, loop):
    return RuntimeEnvironment(
        broker_id=1,
        topic="topic",
        default_partitions=1,
        clock=VirtualClock(wall_start_ms=1_000_000),
        call_later=loop.call_later,
        storage=storage,
        serde=serde,
        codec=CompressionCodec.NONE,
        timeout_ms=5_000,
        base_sequence=0,
        keeps_shards_when_reelected=True,
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
    compressing = replace(environment, codec=CompressionCodec.GZIP)
    buffer = WriteBuffer(0, compressing, print)
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


class Shard:
    """Keeps what is replayed: offsets of records, and the values in them."""

    def __init__(self, partition, runtime):
        self.replayed = []

    def replay(self, record, record_offset, producer_id=-1):
        self.replayed.append((record_offset, record.value.offset))


@pytest.fixture
def context(environment, failed):
    context = CoordinatorContext(
        0, 0, environment, Shard, lambda partition: failed.append("reload")
    )
    context.load()
    return context


def write(context, *records, on_settled=print, **options):
    result = Result(None, records, on_settled=on_settled, **options)
    context.carry_out(result, print, print)


def test_shard_has_what_shares_a_batch_at_once_under_its_later_offset(context, storage, loop):
    answers = []
    write(context, commit(5), on_settled=answers.append, shares_batch=True)
    write(context, commit(6), on_settled=answers.append, shares_batch=True)
    assert (context.shard.replayed, storage.batches) == ([(0, 5), (1, 6)], [])
    loop.turn()
    storage.commit()
    assert (storage.batches, answers) == ([[5, 6]], [ErrorCode.NONE] * 2)


def test_shard_takes_nothing_in_that_cannot_be_appended(context, storage, loop):
    storage.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    answers = []
    for shares_batch in (True, False):
        write(context, commit(5), on_settled=answers.append, shares_batch=shares_batch)
    assert answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert (context.shard.replayed, loop.soon) == ([], [])


@pytest.mark.parametrize("is_active", [True, False])
def test_shard_is_loaded_again_when_its_state_is_ahead_of_the_log(
    context, storage, loop, failed, is_active
):
    write(context, commit(5), shares_batch=True)
    storage.fails_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not is_active:
        context.state = CoordinatorState.CLOSED
    loop.turn()
    assert failed == (["reload"] if is_active else [])


@pytest.mark.parametrize("shares_batch", [True, False])
def test_order_is_replay_timers_settled_answer(context, storage, loop, shares_batch):
    order = []
    context.shard.replay = lambda *_: order.append("replay")
    result = Result(
        "response",
        [commit(5)],
        shares_batch=shares_batch,
        on_appended=lambda: order.append("timers"),
        on_settled=lambda error_code: order.append(error_code.name),
    )
    context.carry_out(result, order.append, order.append)
    assert order == ["replay", "timers"]
    loop.turn()
    assert order == ["replay", "timers"]
    storage.commit()
    assert order == ["replay", "timers", "NONE", "response"]


def test_failed_append_sets_no_timers_and_answers_with_the_error(context, storage):
    storage.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    order = []
    result = Result(
        "response",
        [commit(5)],
        on_appended=lambda: order.append("timers"),
        on_settled=lambda error_code: order.append(error_code.name),
    )
    context.carry_out(result, order.append, lambda error: order.append(error.error_code.name))
    assert order == ["COORDINATOR_NOT_AVAILABLE"] * 2


def test_records_of_what_the_state_is_already_are_not_replayed(context, storage):
    write(context, commit(5), replays=False)
    assert (storage.batches, context.shard.replayed) == ([[5]], [])
    assert not context.is_committed
    storage.commit()
    assert context.is_committed


def test_operation_without_a_trace_does_nothing(context, storage):
    context.perform(Result)
    assert storage.batches == []


def test_operation_of_a_partition_that_is_led_no_more_is_not_performed(context):
    context.state = CoordinatorState.CLOSED
    context.perform(lambda: pytest.fail("performed"))
