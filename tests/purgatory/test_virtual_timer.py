"""A timer in virtual time: every deadline is met to the millisecond, however long the step."""

import pytest
from broker_sim_purgatory import DelayedOperationPurgatory, PendingOperation, VirtualTimer


@pytest.fixture
def timer():
    return VirtualTimer()


@pytest.fixture
def clock(timer):
    return timer.clock


@pytest.mark.parametrize("delay_ms", [0, 1, 19, 20, 450, 30_000, 160_001])
def test_a_long_step_runs_a_task_at_its_own_time(timer, task, ran, delay_ms):
    timer.add(task(delay_ms))
    timer.advance(1_000_000)
    assert ran == [(delay_ms, delay_ms)]
    assert timer.clock.now_ms() == 1_000_000


def test_a_step_ends_before_what_is_due_after_it(timer, task, ran):
    timer.add(task(450))
    timer.advance(449)
    assert (ran, timer.size()) == ([], 1)
    timer.advance(1)
    assert ran == [(450, 450)]


def test_tasks_that_tasks_add_run_within_the_same_step(timer, task, ran):
    class Adding(type(task(0))):
        def run(self):
            super().run()
            timer.add(task(5, "child"))

    timer.add(Adding(10, "parent", timer.clock, ran))
    timer.advance(15)
    assert ran == [("parent", 10), ("child", 15)]


def test_running_until_idle_stops_at_the_last_deadline(timer, task, ran):
    for delay_ms in (30_000, 7):
        timer.add(task(delay_ms))
    timer.run_until_idle()
    assert ran == [(7, 7), (30_000, 30_000)]
    assert timer.clock.now_ms() == 30_000


def test_a_delay_begins_at_add_after_a_long_idle_time(timer, task, ran):
    timer.advance(12_345)
    timer.add(task(450))
    timer.run_until_idle()
    assert ran == [(450, 12_795)]


def test_time_does_not_go_back(timer):
    timer.advance(10)
    with pytest.raises(ValueError, match="time never goes back"):
        timer.advance(-1)


def test_a_purgatory_in_virtual_time_expires_and_purges_without_a_thread(timer, operation):
    purgatory = DelayedOperationPurgatory("virtual", timer, purge_interval=0)
    expiring, completing = operation(30_000), operation(60_000)
    purgatory.try_complete_else_watch(expiring, ("a",))
    purgatory.try_complete_else_watch(completing, ("a", "b"))
    completing.completable = True
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.watched() == 2
    timer.advance(29_999)
    assert expiring.expirations == 0
    timer.advance(1)
    assert (expiring.completions, expiring.expirations) == (1, 1)
    assert (purgatory.watched(), purgatory.num_delayed()) == (0, 0)
    statistics = purgatory.statistics()
    assert (statistics.total_watched, statistics.completed, statistics.expired) == (2, 1, 1)
    purgatory.shutdown()


@pytest.mark.parametrize("parked_ms", [0, 1, 199])
def test_a_step_stops_where_a_purge_is_due(timer, parked_ms):
    purgatory = DelayedOperationPurgatory("virtual", timer, purge_interval=2)
    for _ in range(3):
        op = PendingOperation(3_600_000)
        purgatory.try_complete_else_watch(op, ("a", "b"))
        op.force_complete()
    timer.advance(parked_ms)
    assert purgatory.watched() == 6
    timer.advance(199 - parked_ms)
    assert purgatory.watched() == 6
    timer.advance(1)
    assert (purgatory.watched(), purgatory.statistics().purges) == (0, 1)
    timer.advance(3_600_000)
    assert purgatory.statistics().purges == 1


def test_running_until_idle_does_not_wait_for_a_purge(timer):
    purgatory = DelayedOperationPurgatory("virtual", timer, purge_interval=0)
    op = PendingOperation(3_600_000)
    purgatory.try_complete_else_watch(op, ("a",))
    op.force_complete()
    timer.run_until_idle()
    assert timer.clock.now_ms() == 0
