"""Tasks of a timer that two threads move, cancel and expire at the same time."""

import pytest

from purgatory import InlineExecutor, SystemTimer, TimerTask


class _Task(TimerTask):
    def __init__(self, delay_ms):
        super().__init__(delay_ms)
        self.runs = 0

    def run(self):
        self.runs += 1


@pytest.mark.parametrize("delay_ms", [10, 450])
def test_a_task_that_is_cancelled_while_its_bucket_expires_runs_or_not_and_is_gone(
    explore, clock, delay_ms
):
    def scenario(explorer):
        time = clock(explorer)
        timer = SystemTimer("test", time, InlineExecutor())
        task = _Task(delay_ms)
        timer.add(task)

        def expire():
            for due_ms in (400, 440, 450):
                time.advance_to(due_ms)
                timer.advance_clock(0)

        def check():
            assert task.runs <= 1
            assert timer.size() == len(timer.placements()) == 0

        return task.cancel, expire, check

    explore(scenario, pure=100, native=100)


def test_a_task_that_two_timers_want_waits_in_one_of_them(explore, clock):
    def scenario(explorer):
        time = clock(explorer)
        timers = [SystemTimer(name, time, InlineExecutor()) for name in ("one", "two")]
        task = _Task(10)
        timers[0].add(task)

        def check():
            placed = [timer for timer in timers if timer.placements()]
            assert [timer.size() for timer in placed] in ([], [1])
            assert sum(timer.size() for timer in timers) <= 1

        return lambda: timers[1].add(task), task.cancel, check

    explore(scenario, pure=50, native=2)
