"""Real threads against timers: tasks that are moved, cancelled and expired at the same time."""

import random
import threading

import pytest
from broker_sim_purgatory import InlineExecutor, SystemTimer, TimerTask

pytestmark = pytest.mark.threads


class _CountedTask(TimerTask):
    def __init__(self, delay_ms):
        super().__init__(delay_ms)
        self.runs = 0

    def run(self):
        self.runs += 1


def test_adding_moving_cancelling_and_advancing_keep_the_wheel_whole(together):
    """Threads share tasks and two timers; in the end count, links and tasks agree."""
    timers = [SystemTimer(name, None, InlineExecutor()) for name in ("one", "two")]
    shared = [_CountedTask(delay_ms) for delay_ms in range(1, 60)]
    stop = threading.Event()

    def meddle(seed):
        chance = random.Random(seed)
        own = [_CountedTask(chance.randint(1, 500)) for _ in range(50)]
        for _ in range(3_000):
            timer = timers[seed % 2]
            task = chance.choice(shared if chance.random() < 0.5 else own)
            if chance.random() < 0.7:
                if task in own or shared.index(task) % 2 == seed % 2:
                    timer.add(task)
            else:
                task.cancel()

    def advance(timer):
        while not stop.is_set():
            timer.advance_clock(1)

    def meddle_all():
        together(*(lambda seed=seed: meddle(seed) for seed in range(4)))
        stop.set()

    together(meddle_all, *(lambda timer=timer: advance(timer) for timer in timers))
    for timer in timers:
        placed = [placed.task for placed in timer.placements()]
        assert len(placed) == timer.size() == len(set(placed))
        for task in placed:
            task.cancel()
        assert timer.size() == 0
        assert timer.placements() == []
        timer.shutdown()


def test_a_task_that_moves_between_timers_while_it_is_cancelled_stays_whole(together):
    timers = [SystemTimer(name, None, InlineExecutor()) for name in ("one", "two")]
    tasks = [_CountedTask(3_600_000) for _ in range(20)]

    def move():
        chance = random.Random(1)
        for _ in range(5_000):
            chance.choice(timers).add(chance.choice(tasks))

    def cancel(seed):
        chance = random.Random(seed)
        for _ in range(5_000):
            chance.choice(tasks).cancel()

    together(move, lambda: cancel(2), lambda: cancel(3))
    placed = [placed.task for timer in timers for placed in timer.placements()]
    assert len(placed) == len(set(placed)) == sum(timer.size() for timer in timers)
    for task in tasks:
        task.cancel()
    assert [(timer.size(), timer.placements()) for timer in timers] == [(0, [])] * 2
    for timer in timers:
        timer.shutdown()
