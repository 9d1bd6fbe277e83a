"""Tests of how a context carries out results."""

import pytest

from broker_sim.coordinator.context import CoordinatorContext, CoordinatorState
from broker_sim.coordinator.result import Result
from broker_sim.errors import ErrorCode


class Shard:
    """Collects replayed records: their log offsets and the offsets they commit."""

    def __init__(self, partition, runtime):
        self.replayed = []

    def replay(self, record, record_offset, producer_id=-1):
        self.replayed.append((record_offset, record.value.offset))


@pytest.fixture
def context(broker, topic, failed):
    context = CoordinatorContext(0, 0, broker, topic, Shard, lambda partition: failed.append("reload"))
    context.load()
    return context


def write(context, *records, on_settled=print, **options):
    result = Result(None, records, on_settled=on_settled, **options)
    context.carry_out(result, print, print)


def test_records_in_shared_batch_are_replayed_at_once_with_final_offsets(context, storage, loop, commit):
    answers = []
    write(context, commit(5), on_settled=answers.append, shares_batch=True)
    write(context, commit(6), on_settled=answers.append, shares_batch=True)
    assert (context.shard.replayed, storage.batches) == ([(0, 5), (1, 6)], [])
    loop.turn()
    storage.commit()
    assert (storage.batches, answers) == ([[5, 6]], [ErrorCode.NONE] * 2)


def test_records_that_cannot_be_appended_are_not_replayed(context, storage, loop, commit):
    storage.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    answers = []
    for shares_batch in (True, False):
        write(context, commit(5), on_settled=answers.append, shares_batch=shares_batch)
    assert answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert (context.shard.replayed, loop.soon) == ([], [])


@pytest.mark.parametrize("is_active", [True, False])
def test_shard_is_reloaded_if_replayed_records_cannot_be_appended(context, storage, loop, failed, is_active, commit):
    write(context, commit(5), shares_batch=True)
    storage.fails_with = ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not is_active:
        context.state = CoordinatorState.CLOSED
    loop.turn()
    assert failed == (["reload"] if is_active else [])


@pytest.mark.parametrize("shares_batch", [True, False])
def test_order_is_replay_timers_settled_answer(context, storage, loop, shares_batch, commit):
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


def test_failed_append_sets_no_timers_and_answers_with_the_error(context, storage, commit):
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


def test_records_with_replays_false_are_not_replayed(context, storage, commit):
    write(context, commit(5), replays=False)
    assert (storage.batches, context.shard.replayed) == ([[5]], [])
    assert not context.is_committed
    storage.commit()
    assert context.is_committed


def test_empty_result_writes_nothing(context, storage):
    context.perform(Result)
    assert storage.batches == []


def test_operation_is_dropped_after_resignation(context):
    context.state = CoordinatorState.CLOSED
    context.perform(lambda: pytest.fail("performed"))
