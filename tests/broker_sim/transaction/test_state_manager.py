"""Tests of the expiration of transactional ids and of writes to the log."""

import pytest

from broker_sim.errors import ErrorCode
from broker_sim.transaction.state import TransactionState

S = TransactionState
WEEK_MS = 604_800_000


def expire(bench):
    bench.coordinator.states.remove_expired_ids()


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_idle_id_expires_exactly_at_its_time(bench, state):
    producer = bench.producer()
    if state is not S.EMPTY:
        bench.add(producer)
        bench.end(producer, state is S.COMPLETE_COMMIT)
        bench.answer_markers()
    bench.advance(WEEK_MS - 1)
    expire(bench)
    assert bench.state is state
    bench.advance(1)
    expire(bench)
    assert bench.metadata() is None
    assert bench.log.states()[-1] is None
    bench.reelect()
    assert bench.metadata() is None
    assert bench.init() == (ErrorCode.NONE, 1_001, 0)


@pytest.mark.parametrize("ends", [False, True])
def test_id_with_open_transaction_does_not_expire(make_bench, ends):
    bench = make_bench(transactional_id_expiration_ms=1_000)
    producer = bench.producer()
    bench.add(producer)
    if ends:
        bench.end(producer)
    bench.advance(2_000)
    expire(bench)
    assert bench.metadata() is not None


def test_expiration_time_is_configurable(make_bench):
    bench = make_bench(transactional_id_expiration_ms=1_000)
    bench.producer()
    bench.advance(999)
    expire(bench)
    assert bench.metadata() is not None
    bench.advance(1)
    expire(bench)
    assert bench.metadata() is None


def test_id_stays_until_its_tombstone_is_committed(bench):
    bench.producer()
    bench.advance(WEEK_MS)
    bench.log.is_held = True
    expire(bench)
    assert bench.init()[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    written = len(bench.log.records())
    expire(bench)
    assert len(bench.log.records()) == written
    bench.log.end_wait(ErrorCode.REQUEST_TIMED_OUT)
    assert bench.init() == (ErrorCode.NONE, 1_000, 1)


def test_failed_tombstone_is_retried(bench):
    bench.producer()
    bench.advance(WEEK_MS)
    bench.log.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    expire(bench)
    bench.log.fails_with = None
    assert bench.state is S.EMPTY
    expire(bench)
    assert bench.metadata() is None


def test_tombstones_fit_the_maximum_batch_size(bench):
    for number in range(10):
        bench.producer(transactional_id=f"transaction-{number}")
    batches = len(bench.log.batches[0])
    bench.advance(WEEK_MS)
    expire(bench)
    tombstones = bench.log.batches[0][batches:]
    assert len(tombstones) > 1
    assert all(len(batch) <= bench.log.max_batch_bytes(0) for batch in tombstones)
    assert bench.log.states().count(None) == 10


def test_tombstone_write_uses_the_request_timeout(bench):
    bench.producer()
    bench.advance(WEEK_MS)
    expire(bench)
    assert bench.log.timeouts_ms[-1] == 30_000


def test_version_level_follows_the_feature(make_bench):
    bench = make_bench(0)
    states = bench.coordinator.states
    assert states.version_level == 0
    bench.publish(level=2)
    assert states.version_level == 2


@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 1), (2, 1)])
def test_record_version_follows_the_level(make_bench, level, version):
    bench = make_bench(level)
    bench.producer()
    (record,) = bench.log.records()
    assert record.value_version == version


def test_tv2_change_cannot_be_written_at_level_0(make_bench):
    bench = make_bench(0)
    producer = bench.producer()
    bench.add(producer, version=0)
    assert bench.end(producer) == (ErrorCode.UNSUPPORTED_VERSION, -1, -1)
    assert bench.state is S.ONGOING
    assert bench.end(producer, version=0)[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.reelect()
    assert bench.end(producer, version=0)[0] is ErrorCode.NONE
