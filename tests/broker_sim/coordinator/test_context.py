"""Claims about how results are carried out."""

import pytest

from broker_sim.coordinator.context import CoordinatorContext, CoordinatorState
from broker_sim.coordinator.result import Result
from broker_sim.errors import ErrorCode


class Shard:
    """Keeps what is replayed: offsets of records, and the values in them."""

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


def test_shard_has_what_shares_a_batch_at_once_under_its_later_offset(context, storage, loop, commit):
    answers = []
    write(context, commit(5), on_settled=answers.append, shares_batch=True)
    write(context, commit(6), on_settled=answers.append, shares_batch=True)
    assert (context.shard.replayed, storage.batches) == ([(0, 5), (1, 6)], [])
    loop.turn()
    storage.commit()
    assert (storage.batches, answers) == ([[5, 6]], [ErrorCode.NONE] * 2)


def test_shard_takes_nothing_in_that_cannot_be_appended(context, storage, loop, commit):
    storage.fails_with = ErrorCode.NOT_ENOUGH_REPLICAS
    answers = []
    for shares_batch in (True, False):
        write(context, commit(5), on_settled=answers.append, shares_batch=shares_batch)
    assert answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert (context.shard.replayed, loop.soon) == ([], [])


@pytest.mark.parametrize("is_active", [True, False])
def test_shard_is_loaded_again_when_its_state_is_ahead_of_the_log(context, storage, loop, failed, is_active, commit):
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


def test_records_of_what_the_state_is_already_are_not_replayed(context, storage, commit):
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
