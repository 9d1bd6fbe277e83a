"""The timer: what Kafka's TimerTest claims, deadlines to the millisecond, and its end."""

import random
import threading
import time

import pytest
from broker_sim_purgatory import InlineExecutor, SystemTimer, TimerTask, VirtualClock

DELAYS_MS = [1, 2, 19, 20, 21, 39, 40, 399, 400, 401, 450, 7_999, 8_000, 8_001, 30_000, 160_001]


@pytest.mark.parametrize("delay_ms", [-5, -4, -3, -2, -1, 0])
def test_already_expired_tasks_run_immediately(timer, task, ran, delay_ms):
    timer.add(task(delay_ms))
    assert ran == [(delay_ms, 0)]
    assert timer.size() == 0


def test_every_task_runs_once_at_its_deadline(timer, clock, task, ran):
    delays = [*range(5), *range(10, 100), *range(10, 100), *range(100, 500)]
    for delay_ms in delays:
        timer.add(task(delay_ms))
    for now_ms in range(500):
        clock.advance_to(now_ms)
        timer.advance_clock(0)
    assert ran == sorted((delay_ms, delay_ms) for delay_ms in delays)
    assert timer.size() == 0


def test_one_jump_runs_everything_in_the_order_of_deadlines(timer, task, ran, step):
    for delay_ms in reversed(DELAYS_MS):
        timer.add(task(delay_ms))
    step(1_000_000)
    assert [name for name, _ in ran] == DELAYS_MS


@pytest.mark.parametrize("start_ms", [0, 1, 13, 123_457])
@pytest.mark.parametrize("delay_ms", DELAYS_MS)
def test_a_task_runs_at_its_deadline_and_not_before_or_again(start_ms, delay_ms):
    clock = VirtualClock(start_ms)
    timer = SystemTimer("test", clock, InlineExecutor())
    ran = []

    class Task(TimerTask):
        def run(self):
            ran.append(clock.now_ms())

    timer.add(Task(delay_ms))
    deadline_ms = start_ms + delay_ms
    for now_ms, expected in ((deadline_ms - 1, []), (deadline_ms, [deadline_ms]), (deadline_ms + 1, [deadline_ms])):
        clock.advance_to(now_ms)
        timer.advance_clock(0)
        assert ran == expected


@pytest.mark.parametrize("delay_ms", DELAYS_MS)
def test_postponed_task_waits_its_whole_delay_again(timer, clock, task, ran, delay_ms):
    postponed = task(delay_ms)
    timer.add(postponed)
    clock.advance_to(delay_ms - 1)
    timer.advance_clock(0)
    assert timer.postpone(postponed) is True
    assert timer.size() == 1
    deadline_ms = delay_ms - 1 + delay_ms
    for now_ms in (deadline_ms - 1, deadline_ms, deadline_ms + 1):
        clock.advance_to(now_ms)
        while timer.advance_clock(0):
            pass
        assert ran == ([] if now_ms < deadline_ms else [(delay_ms, deadline_ms)])
    assert timer.size() == 0


@pytest.mark.parametrize("delay_ms", DELAYS_MS)
@pytest.mark.parametrize("before_ms", [5, 100_000])
def test_postponed_task_waits_the_delay_that_it_is_given(timer, clock, task, ran, before_ms, delay_ms):
    postponed = task(before_ms)
    timer.add(postponed)
    clock.advance_to(4)
    timer.advance_clock(0)
    assert timer.postpone(postponed, delay_ms) is True
    for now_ms in (4 + delay_ms - 1, 4 + delay_ms, 4 + delay_ms + 1):
        clock.advance_to(now_ms)
        while timer.advance_clock(0):
            pass
        assert ran == ([] if now_ms < 4 + delay_ms else [(before_ms, 4 + delay_ms)])
    assert (postponed.delay_ms, postponed.expiration_ms) == (delay_ms, 4 + delay_ms)


def place(timer):
    (placed,) = timer.placements()
    return placed.wheel_level, placed.wheel_bucket


def test_postponed_task_stays_in_its_bucket_until_that_expires(timer, clock, task, ran):
    postponed = task(6_000)  # level 3, bucket 15: from 6 000 ms on
    timer.add(postponed)
    for now_ms in (3_000, 5_500):
        clock.advance_to(now_ms)
        assert timer.postpone(postponed) is True
        assert place(timer) == (3, 15)
    clock.advance_to(6_000)
    assert timer.advance_clock(0) is True
    assert place(timer) == (3, 8)  # from 11 200 ms on, of the next turn of the wheel
    assert timer.postpone(postponed, 500) is True  # sooner than before: it moves now
    assert place(timer) == (3, 16)
    for now_ms in (6_499, 6_500):
        clock.advance_to(now_ms)
        while timer.advance_clock(0):
            pass
        assert ran == ([] if now_ms < 6_500 else [(6_000, 6_500)])


def test_postponed_tasks_run_as_in_a_list_of_deadlines(timer, clock, task, ran):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    deadlines_ms: dict[int, int] = {}
    tasks = {name: task(name) for name in rng.sample(range(1, 12_000), 30)}
    for name, each in tasks.items():
        timer.add(each)
        deadlines_ms[name] = name
    expected: list[tuple[int, int]] = []
    while deadlines_ms:
        clock.advance_to(clock.now_ms() + rng.choice([1, 7, 130, 900]))
        now_ms = clock.now_ms()
        while timer.advance_clock(0):
            pass
        over = [name for name, deadline_ms in deadlines_ms.items() if deadline_ms <= now_ms]
        expected += [(name, now_ms) for name in over]
        for name in over:
            del deadlines_ms[name]
        assert sorted(ran) == sorted(expected)
        for name in rng.sample(sorted(deadlines_ms), min(3, len(deadlines_ms))):
            if now_ms < 60_000:
                delay_ms = rng.choice([1, 20, 399, 400, 6_000, 9_000])
                assert timer.postpone(tasks[name], delay_ms) is True
                deadlines_ms[name] = now_ms + delay_ms
    assert timer.size() == 0


def test_task_that_does_not_wait_cannot_be_postponed(timer, task, ran, step):
    cancelled, over, elsewhere = task(5), task(5), task(5)
    assert timer.postpone(task(5)) is False
    timer.add(cancelled)
    cancelled.cancel()
    timer.add(over)
    step(5)
    SystemTimer("other", VirtualClock(), InlineExecutor()).add(elsewhere)
    for each in (cancelled, over, elsewhere):
        assert timer.postpone(each) is False
    step(100)
    assert (ran, timer.size()) == ([(5, 5)], 0)


def test_task_that_was_handed_over_cannot_be_postponed(timer, task, ran, step):
    answers = []

    class Postponing(TimerTask):
        def run(self):
            answers.append(timer.postpone(second))

    second = task(7)
    timer.add(Postponing(7))
    timer.add(second)
    step(7)
    assert answers == [False]
    step(100)
    assert ran == [(7, 7)]


@pytest.mark.parametrize("delay_ms", DELAYS_MS)
def test_stepping_to_the_next_expiration_takes_one_step_per_level(timer, clock, task, ran, delay_ms):
    timer.add(task(delay_ms))
    levels = timer.statistics().levels
    steps = 0
    while (next_ms := timer.next_expiration_ms()) is not None:
        assert next_ms >= clock.now_ms()
        clock.advance_to(next_ms)
        assert timer.advance_clock(0) is True
        steps += 1
    assert ran == [(delay_ms, delay_ms)]
    assert steps <= levels


def test_next_expiration_skips_buckets_without_tasks(timer, task, step, ran):
    assert timer.next_expiration_ms() is None
    cancelled, kept = task(5), task(15)
    timer.add(cancelled)
    timer.add(kept)
    assert timer.next_expiration_ms() == 5
    cancelled.cancel()
    assert timer.next_expiration_ms() == 15
    late = task(5, "late")
    timer.add(late)
    assert timer.next_expiration_ms() == 5
    step(5)
    assert ran == [("late", 5)]
    kept.cancel()
    assert timer.next_expiration_ms() is None


def test_a_delay_begins_at_add_although_the_wheels_clock_is_behind(timer, clock, task, ran, step):
    clock.advance_to(10_000)
    timer.add(task(30))
    step(10_029)
    assert ran == []
    step(10_030)
    assert ran == [(30, 10_030)]


def test_adding_a_waiting_task_again_moves_its_deadline(timer, clock, task, ran, step):
    moved = task(100)
    timer.add(moved)
    clock.advance_to(60)
    timer.add(moved)
    assert timer.size() == 1
    step(100)
    step(159)
    assert ran == []
    step(160)
    assert ran == [(100, 160)]
    timer.add(moved)
    step(260)
    assert ran == [(100, 160), (100, 260)]


def test_a_waiting_task_added_again_without_delay_runs_once(timer, task, ran, step):
    moved = task(100)
    timer.add(moved)
    moved.delay_ms = 0
    timer.add(moved)
    assert timer.size() == 0
    step(200)
    assert ran == [(100, 0)]


def test_a_task_may_move_to_another_timer(timer, clock, task, ran):
    other = SystemTimer("other", clock, InlineExecutor())
    moved = task(10)
    timer.add(moved)
    other.add(moved)
    assert (timer.size(), other.size()) == (0, 1)
    clock.advance_to(10)
    timer.advance_clock(0)
    assert ran == []
    other.advance_clock(0)
    assert ran == [(10, 10)]


def test_a_cancelled_task_does_not_run_until_it_is_added_again(timer, task, ran, step):
    cancelled = task(10)
    timer.add(cancelled)
    cancelled.cancel()
    assert cancelled.cancelled
    step(10)
    assert ran == []
    timer.add(cancelled)
    assert not cancelled.cancelled
    step(20)
    assert ran == [(10, 20)]


def test_a_task_may_add_and_cancel_others_while_it_runs(timer, clock, ran, task, step):
    victim = task(30)

    class Meddler(TimerTask):
        def run(self):
            victim.cancel()
            timer.add(task(5, "child"))

    timer.add(victim)
    timer.add(Meddler(10))
    step(10)
    assert timer.size() == 1
    step(15)
    step(30)
    assert ran == [("child", 15)]


def test_a_coarse_tick_runs_tasks_at_the_start_of_their_bucket(clock, task, ran):
    timer = SystemTimer("test", clock, InlineExecutor(), tick_ms=20)
    timer.add(task(55))
    clock.advance_to(39)
    timer.advance_clock(0)
    assert ran == []
    clock.advance_to(40)
    timer.advance_clock(0)
    assert ran == [(55, 40)]


def test_advance_clock_returns_whether_a_bucket_expired(timer, task, clock):
    assert timer.advance_clock(0) is False
    timer.add(task(450))
    clock.advance_to(399)
    assert timer.advance_clock(0) is False
    clock.advance_to(400)
    assert timer.advance_clock(0) is True  # though the task only sank to a finer level
    assert timer.size() == 1


def test_a_failing_task_does_not_stop_the_others(timer, clock, task, ran):
    class Broken(TimerTask):
        def run(self):
            raise KeyError("broken")

    timer.add(task(10, "before"))
    timer.add(Broken(10))
    timer.add(Broken(11))
    timer.add(task(12, "after"))
    clock.advance_to(20)
    with pytest.raises(ExceptionGroup) as caught:
        timer.advance_clock(0)
    assert [type(each) for each in caught.value.exceptions] == [KeyError, KeyError]
    assert [name for name, _ in ran] == ["before", "after"]
    assert timer.size() == 0


def test_statistics_count_expired_but_not_cancelled_tasks(timer, clock, task, step):
    for delay_ms in (0, 5, 5, 40, 500):
        timer.add(task(delay_ms))
    cancelled = task(5)
    timer.add(cancelled)
    cancelled.cancel()
    step(10_000)
    statistics = timer.statistics()
    assert (statistics.size, statistics.expired, statistics.levels) == (0, 5, 3)
    assert statistics.expired_per_second == pytest.approx(0.5)
    clock.advance_to(70_001)
    assert timer.statistics().expired_per_second == 0
    assert timer.statistics().expired == 5


@pytest.mark.parametrize(("tick_ms", "wheel_size"), [(0, 20), (-1, 20), (1, 1), (1, 0)])
def test_a_tick_below_1_ms_or_fewer_than_2_buckets_raises_value_error(tick_ms, wheel_size):
    with pytest.raises(ValueError, match="a wheel needs"):
        SystemTimer("test", VirtualClock(), InlineExecutor(), tick_ms, wheel_size)


def test_shutdown_drops_waiting_tasks_and_refuses_new_ones(timer, clock, task, ran):
    dropped = [task(10), task(1_000)]
    for each in dropped:
        timer.add(each)
    timer.shutdown()
    timer.shutdown()
    assert timer.size() == 0
    assert timer.next_expiration_ms() is None
    clock.advance_to(2_000)
    assert timer.advance_clock(0) is False
    assert ran == []
    with pytest.raises(RuntimeError, match="timer test is shut down"):
        timer.add(task(5))


def test_shutdown_leaves_an_injected_executor_alone(clock, task):
    class Closeable(InlineExecutor):
        closed = False

        def shutdown(self):
            self.closed = True

    executor = Closeable()
    SystemTimer("test", clock, executor).shutdown()
    assert not executor.closed


class _TimedTask(TimerTask):
    """Measures its real delay."""

    def __init__(self, delay_ms, runs):
        super().__init__(delay_ms)
        self._runs = runs
        self.added_ns = 0

    def run(self):
        self._runs.append((self, time.monotonic_ns() - self.added_ns, threading.current_thread()))


@pytest.mark.threads
def test_no_task_runs_early_in_real_time():
    timer = SystemTimer("real")
    runs = []
    tasks = [_TimedTask(number % 60, runs) for number in range(600)]
    for each in tasks:
        each.added_ns = time.monotonic_ns()
        timer.add(each)
    while timer.size():
        timer.advance_clock(200)
    timer.shutdown()
    assert {id(each) for each, _, _ in runs} == {id(each) for each in tasks}
    assert len(runs) == len(tasks)
    assert min(taken_ns / 1e6 - each.delay_ms for each, taken_ns, _ in runs) >= 0
    assert {thread.name for _, _, thread in runs} == {"executor-real"}


@pytest.mark.threads
def test_wakeup_ends_the_wait_of_advance_clock():
    timer = SystemTimer("real")
    results = []
    thread = threading.Thread(target=lambda: results.append(timer.advance_clock(3_600_000)))
    thread.start()
    timer.wakeup()
    thread.join(30)
    assert results == [False]
    timer.shutdown()
