"""Tests of the write buffer."""

import pytest

from broker_sim.coordinator.storage import TransactionMarker
from broker_sim.coordinator.write_buffer import WriteBuffer
from broker_sim.errors import ErrorCode
from broker_sim.protocol.compression import CompressionCodec


@pytest.fixture
def buffer(broker, topic, failed):
    return WriteBuffer(0, broker, topic, lambda: failed.append("failed"))


def test_writes_of_one_iteration_share_a_batch_and_its_commit(buffer, storage, loop, commit):
    answers = []
    buffer.add([commit(1)], lambda error: answers.append(("first", error)))
    buffer.add([commit(2), commit(3)], lambda error: answers.append(("second", error)))
    assert (storage.batches, buffer.end_offset) == ([], 3)
    loop.turn()
    assert storage.batches == [[1, 2, 3]]
    assert (answers, buffer.end_offset) == ([], 3)
    storage.commit()
    assert answers == [("first", ErrorCode.NONE), ("second", ErrorCode.NONE)]


def test_writes_of_next_iteration_are_another_batch(buffer, storage, loop, commit):
    buffer.add([commit(1)], print)
    loop.turn()
    buffer.add([commit(2)], print)
    loop.turn()
    loop.turn()
    assert storage.batches == [[1], [2]]


def test_full_batch_is_appended_before_the_next_write(buffer, storage, loop, commit):
    for number in range(100):
        buffer.add([commit(number)], print)
    loop.turn()
    assert [offset for batch in storage.batches for offset in batch] == list(range(100))
    *full, last = [len(batch) for batch in storage.batches]
    assert len(set(full)) == 1
    assert 10 < full[0] < 100
    assert last <= full[0]


def test_only_the_oversized_write_is_rejected(buffer, storage, loop, failed, commit):
    answers = []
    assert buffer.add([commit(1)], answers.append)
    assert not buffer.add([commit(2)] * 100, answers.append)
    assert answers == [ErrorCode.MESSAGE_TOO_LARGE]
    loop.turn()
    assert (storage.batches, failed) == ([[1]], [])


def test_oversized_write_is_accepted_with_compression(broker, topic, storage, loop, commit):
    compressing = topic._replace(codec=CompressionCodec.GZIP)
    buffer = WriteBuffer(0, broker, compressing, print)
    assert buffer.add([commit(2)] * 100, print)
    loop.turn()
    assert storage.batches == [[2] * 100]


@pytest.mark.parametrize("how", ["add", "append", "append_marker"])
def test_nothing_is_appended_after_a_failed_batch(buffer, storage, failed, how, commit):
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


def test_append_flushes_buffered_records_first(buffer, storage, loop, commit):
    buffer.add([commit(1)], print)
    buffer.append([commit(2)], print, print)
    loop.turn()
    assert storage.batches == [[1], [2]]


def test_failed_batch_fails_all_its_writes(buffer, storage, loop, failed, commit):
    answers = []
    buffer.add([commit(1)], answers.append)
    buffer.add([commit(2)], answers.append)
    storage.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    loop.turn()
    assert answers == [ErrorCode.NOT_ENOUGH_REPLICAS] * 2
    assert failed == ["failed"]


def test_write_after_failure_is_rejected(buffer, storage, loop, failed, commit):
    answers = []
    buffer.add([commit(1)], print)
    storage.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    buffer.flush()
    storage.fails_with = ErrorCode.NONE
    assert not buffer.add([commit(2)], answers.append)
    loop.turn()
    assert answers == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert (storage.batches, failed) == ([], ["failed"])
