"""Tasks of a timer that two threads move, cancel and expire at the same time."""

import pytest
from broker_sim_purgatory import InlineExecutor, SystemTimer, TimerTask, VirtualClock


class _Task(TimerTask):
    def __init__(self, delay_ms):
        super().__init__(delay_ms)
        self.runs = 0

    def run(self):
        self.runs += 1


@pytest.mark.parametrize("delay_ms", [10, 450])
def test_a_task_cancelled_while_its_bucket_expires_leaves_the_timer(explore, delay_ms):
    def scenario(explorer):
        explorer.pauses_after = True
        clock = VirtualClock()
        timer = SystemTimer("test", clock, InlineExecutor())
        task = _Task(delay_ms)
        timer.add(task)

        def expire():
            for due_ms in (400, 440, 450):
                clock.advance_to(due_ms)
                timer.advance_clock(0)

        def check():
            assert task.runs <= 1
            assert task.runs == 1 or task.cancelled
            assert timer.size() == len(timer.placements()) == 0

        return task.cancel, expire, check

    explore(scenario, more_than=20)


def test_a_task_moved_while_it_is_cancelled_waits_in_at_most_one_timer(explore):
    def scenario(explorer):
        explorer.pauses_after = True
        clock = VirtualClock()
        timers = [SystemTimer(name, clock, InlineExecutor()) for name in ("one", "two")]
        task = _Task(10)
        timers[0].add(task)

        def check():
            assert timers[0].size() == len(timers[0].placements()) == 0
            assert timers[1].size() == len(timers[1].placements()) == (not task.cancelled)

        return lambda: timers[1].add(task), task.cancel, check

    explore(scenario, more_than=10)


def test_a_task_that_moves_to_another_timer_while_it_expires_runs_or_waits(explore):
    def scenario(explorer):
        explorer.pauses_after = True
        clock = VirtualClock()
        timers = [SystemTimer(name, clock, InlineExecutor()) for name in ("one", "two")]
        task = _Task(10)
        timers[0].add(task)
        clock.advance(10)

        def check():
            assert task.runs <= 1
            assert timers[0].size() == len(timers[0].placements()) == 0
            assert timers[1].size() == len(timers[1].placements()) == 1

        return lambda: timers[1].add(task), lambda: timers[0].advance_clock(0), check

    explore(scenario, more_than=10)
