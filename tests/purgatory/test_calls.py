"""Functions as tasks: calls that are made once or once a period, and rounds with a limit."""

import asyncio
import random

import pytest
from broker_sim_purgatory import (
    DelayedOperation,
    DelayedOperationPurgatory,
    InlineExecutor,
    LoopTimer,
    PendingOperation,
    PurgatoryFullError,
    SystemTimer,
    VirtualTimer,
    compiled,
)


@pytest.fixture
def timer():
    return VirtualTimer()


@pytest.fixture
def made():
    """The times at which calls were made."""
    return []


def _note(timer, made):
    return lambda: made.append(timer.clock.now_ms())


def test_a_call_is_made_once_with_its_arguments(timer):
    calls = []
    timer.call_later(450, lambda *names: calls.append((timer.clock.now_ms(), *names)), "a", "b")
    timer.advance(10_000)
    assert calls == [(450, "a", "b")]


def test_a_cancelled_call_is_not_made(timer, made):
    call = timer.call_later(450, _note(timer, made))
    call.cancel()
    timer.advance(10_000)
    assert (made, timer.size()) == ([], 0)


@pytest.mark.parametrize("period_ms", [1, 19, 20, 333, 8_000])
def test_periodic_calls_are_made_at_every_multiple_of_the_period(timer, made, period_ms):
    timer.advance(7)
    series = timer.call_every(period_ms, _note(timer, made))
    timer.advance(4 * period_ms)
    series.cancel()
    timer.advance(4 * period_ms)
    assert made == [7 + number * period_ms for number in (1, 2, 3, 4)]
    assert timer.size() == 0


def test_late_periodic_calls_are_made_once_and_keep_to_the_multiples(made, clock):
    timer = SystemTimer("late", clock, InlineExecutor())
    timer.call_every(100, _note(timer, made))
    for now_ms in (399, 400, 499, 500):
        clock.advance_to(now_ms)
        while timer.advance_clock(0):
            pass
    assert made == [399, 400, 500]


def test_an_exception_does_not_end_periodic_calls(timer, made):
    def fail():
        made.append(timer.clock.now_ms())
        raise ValueError("broken")

    timer.call_every(10, fail)
    for _ in range(2):
        with pytest.raises(ExceptionGroup):
            timer.advance(10)
    assert made == [10, 20]


@pytest.mark.parametrize("end", ["cancel", "shutdown"])
def test_periodic_calls_end_within_a_call_and_after_they_were_handed_over(made, clock, end):
    later = []

    class KeepingExecutor:
        def submit(self, fn):
            later.append(fn)

    timer = SystemTimer("ends", clock, KeepingExecutor())
    series = timer.call_every(10, made.append, "call")
    clock.advance_to(10)
    timer.advance_clock(0)
    (series if end == "cancel" else timer).__getattribute__(end)()
    later.pop()()
    assert (made, timer.size(), later) == ([], 0, [])


def test_a_series_that_cancels_itself_makes_no_other_call(timer, made):
    def call():
        made.append(timer.clock.now_ms())
        series.cancel()

    series = timer.call_every(10, call)
    timer.advance(100)
    assert made == [10]


def test_a_period_below_1_ms_is_refused(timer):
    with pytest.raises(ValueError, match="at least 1 ms, not 0"):
        timer.call_every(0, print)


def test_on_a_loop_calls_are_made_by_the_loop(run_with):
    async def main():
        timer = LoopTimer("calls")
        made = []
        timer.call_every(1_000, _note(timer, made))
        await asyncio.sleep(3.5)
        timer.shutdown()
        await asyncio.sleep(3.5)
        assert made == [1_000, 2_000, 3_000]

    run_with(main)


@pytest.fixture
def run_with(jumping_loop):
    """Run a coroutine function on a loop whose time jumps."""

    def run(main):
        with asyncio.Runner(loop_factory=jumping_loop) as runner:
            runner.run(main())

    return run


def test_a_round_hands_over_at_most_max_per_round_tasks_by_deadline(clock):
    timer = SystemTimer("limit", clock, InlineExecutor(), max_per_round=3)
    calls = []
    deadlines = [5] * 7 + [6, 7, 100]
    for deadline_ms in deadlines:
        timer.call_later(deadline_ms, calls.append, deadline_ms)
    clock.advance_to(7)
    rounds = []
    while timer.advance_clock(0):
        rounds.append(len(calls))
    assert rounds == [3, 6, 7, 9]
    assert calls == [5] * 7 + [6, 7]
    assert timer.size() == 1


def test_tasks_beyond_max_per_round_still_wait(clock):
    timer = SystemTimer("limit", clock, InlineExecutor(), max_per_round=1)
    calls = []
    first, cancelled, postponed, last = (timer.call_later(5, calls.append, name) for name in "fcpl")
    clock.advance_to(5)
    timer.advance_clock(0)
    assert calls == ["f"]
    waiting = [(placed.task, placed.wheel_level) for placed in timer.placements()]
    assert waiting == [(cancelled, 0), (postponed, 0), (last, 0)]
    assert timer.size() == 3
    assert timer.next_expiration_ms() <= 5
    cancelled.cancel()
    assert timer.postpone(postponed)
    assert not timer.postpone(first)
    while timer.advance_clock(0):
        pass
    assert (calls, timer.size(), timer.next_expiration_ms()) == (["f", "l"], 1, 10)
    clock.advance_to(10)
    while timer.advance_clock(0):
        pass
    assert calls == ["f", "l", "p"]
    timer.call_later(1, calls.append, "x")
    timer.call_later(1, calls.append, "y")
    clock.advance_to(11)
    timer.advance_clock(0)
    timer.shutdown()
    assert (timer.size(), calls[-1]) == (0, "x")


@pytest.mark.parametrize("seed", range(5))
def test_with_a_limit_the_same_tasks_run_at_the_same_times(seed):
    chance = random.Random(seed)
    delays = [chance.randrange(1, 2_000) for _ in range(300)]
    runs = []
    for limit in (None, 1, 7):
        timer = VirtualTimer(max_per_round=limit)
        ran = []
        for number, delay_ms in enumerate(delays):
            timer.call_later(
                delay_ms, lambda number=number, timer=timer, ran=ran: ran.append((timer.clock.now_ms(), number))
            )
        timer.advance(2_000)
        runs.append(ran)
    assert runs[0] == runs[1] == runs[2], seed
    assert len(runs[0]) == 300


def test_a_loop_gets_to_its_other_callbacks_between_two_rounds(run_with):
    async def main():
        order = []
        timer = LoopTimer("limit", max_per_round=2)
        for number in range(6):
            timer.call_later(10, order.append, number)
        await asyncio.sleep(0.0095)
        while timer.size():
            order.append("loop")
            await asyncio.sleep(0.001)
        assert [order[position] for position in range(len(order)) if order[position] != "loop"] == list(range(6))
        first, last = order.index(0), order.index(5)
        assert order[first:last].count("loop") >= 1
        timer.shutdown()

    run_with(main)


def test_max_per_round_below_1_is_refused():
    with pytest.raises(ValueError, match="room for at least 1"):
        VirtualTimer(max_per_round=0)


@pytest.mark.parametrize("delay_ms", [1.5, 30.0, "30", None])
@pytest.mark.parametrize(
    "make", [DelayedOperation, PendingOperation, lambda delay: VirtualTimer().call_later(delay, print)]
)
def test_a_delay_that_is_not_an_int_is_refused_by_the_constructor(make, delay_ms):
    with pytest.raises(TypeError) as refused:
        make(delay_ms)
    # A native build refuses it before the first line of the function.
    assert compiled or f"not the {type(delay_ms).__name__} {delay_ms!r}" in str(refused.value)


def test_a_delay_may_be_an_int_of_another_class(timer, made):
    timer.call_later(True, _note(timer, made))
    timer.advance(10)
    assert made == [1]


@pytest.mark.parametrize("keys", ["orders", b"orders"])
def test_one_string_as_the_keys_is_refused(timer, operation, keys):
    purgatory = DelayedOperationPurgatory("text", timer)
    poll = operation()
    with pytest.raises(TypeError, match=r"pass a collection, \[b?'orders'\]"):
        purgatory.try_complete_else_watch(poll, keys)
    assert (purgatory.watched(), purgatory.num_delayed()) == (0, 0)
    assert purgatory.try_complete_else_watch(poll, [keys]) is False


def test_a_full_purgatory_refuses_an_operation_that_has_to_wait(timer):
    purgatory = DelayedOperationPurgatory("small", timer, max_delayed=2)
    ended = []
    operations = [PendingOperation(100, ended.append) for _ in range(4)]
    for operation in operations[:2]:
        purgatory.try_complete_else_watch(operation, ["a"])
    with pytest.raises(PurgatoryFullError, match="purgatory small is full: 2 operations wait"):
        purgatory.try_complete_else_watch(operations[2], ["b"])
    assert (purgatory.watched(), purgatory.num_delayed(), operations[2].is_completed()) == (2, 2, False)
    operations[3].ready = True
    assert purgatory.try_complete_else_watch(operations[3], ["b"]), "it does not have to wait"
    operations[0].force_complete()
    assert purgatory.try_complete_else_watch(operations[2], ["b"]) is False
    timer.advance(1_000)
    assert ended == [True, False, False, False]
