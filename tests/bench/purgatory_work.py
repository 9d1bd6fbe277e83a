"""The work that shows what a timer costs: as it grows, under load, and how late it is.

A program of its own, so that it runs on a pure and on a native purgatory: `python
purgatory_work.py growth|memory|watches|workload|precision SUBJECT COUNT [REPEATS]` prints one JSON object. Subjects:
purgatory, and for growth and precision the timers of the standard library. Watches are the part of
growth that has operations, here with the purgatory's own PendingOperation.
"""

import gc
import json
import sys
import time
from statistics import median

from broker_sim_purgatory import (
    DelayedOperationPurgatory,
    InlineExecutor,
    PendingOperation,
    SystemTimer,
    TimerTask,
    VirtualClock,
    compiled,
)
from purgatory_growth import (
    CHANCE,
    CHUNK,
    GROWTH,
    asyncio_bytes,
    delay_ms,
    grow,
    heapq_bytes,
    parked_bytes,
    per_item,
    resident_bytes,
)
from purgatory_load import PRECISION, precision, work_off
from purgatory_operation import Operation


class Task(TimerTask):
    """Does nothing."""

    __slots__ = ()

    def run(self) -> None:
        pass


def grow_purgatory(size: int, repeats: int) -> dict[str, float]:
    # First what needs the most memory, while none that was freed is used again.
    costs = grow_watches(size, repeats, 3, Operation) | grow_watches(size, repeats, 1, Operation)
    timer = SystemTimer("bench", executor=InlineExecutor())

    def add(task: TimerTask) -> TimerTask:
        timer.add(task)
        return task

    costs |= grow(add, Task.cancel, lambda: Task(delay_ms()), size, repeats)
    assert timer.size() == size
    timer.shutdown()
    costs["expire"] = expire_wheel(size)
    del costs["bytes_1"]
    return costs


def purgatory_bytes(size: int) -> dict[str, float]:
    timer = SystemTimer("bench", executor=InlineExecutor())

    def add(delay: int) -> TimerTask:
        task = Task(delay)
        timer.add(task)
        return task

    found = parked_bytes(add, size)
    timer.shutdown()
    return found


BYTES = {"purgatory": purgatory_bytes, "asyncio": asyncio_bytes, "heapq": heapq_bytes}


def expire_wheel(size: int) -> float:
    clock = VirtualClock()
    timer = SystemTimer("bench", clock, InlineExecutor())
    for _ in range(size):
        timer.add(Task(delay_ms()))
    start = time.thread_time_ns()
    while (due_ms := timer.next_expiration_ms()) is not None:
        clock.advance_to(due_ms)
        timer.advance_clock(0)
    return (time.thread_time_ns() - start) / size


def grow_watches(
    size: int, repeats: int, keys: int, make: type[Operation] | type[PendingOperation]
) -> dict[str, float]:
    """Park under keys of which ten operations share one; measure under keys of their own."""
    timer = SystemTimer("bench", executor=InlineExecutor())
    purgatory = DelayedOperationPurgatory("bench", timer, reaper_enabled=False)
    names = [f"key-{number}" for number in range(max(size // 10, 10))]
    watched = [[CHANCE.choice(names) for _ in range(keys)] for _ in range(size)]
    gc.collect()
    before = resident_bytes()
    for each in watched:
        purgatory.try_complete_else_watch(make(delay_ms()), each)
    used = (resident_bytes() - before) / size
    own = [[f"own-{number}-{index}" for index in range(keys)] for number in range(CHUNK)]
    costs = []
    for _ in range(repeats):

        def park_and_complete(under: list[str]) -> None:
            operation = make(30_000)
            purgatory.try_complete_else_watch(operation, under)
            operation.ready = True
            purgatory.check_and_complete(under[0])

        costs.append(per_item(park_and_complete, own))
        for under in own:
            for key in under:
                purgatory.check_and_complete(key)
    assert purgatory.num_delayed() == size
    purgatory.shutdown()
    return {f"keys_{keys}": median(costs), f"bytes_{keys}": used}


def main() -> None:
    """Do what the command line says."""
    what, subject, *counts = sys.argv[1:]
    size, *repeats = map(int, counts)
    if what == "growth":
        found = (GROWTH | {"purgatory": grow_purgatory})[subject](size, *repeats)
    elif what == "memory":
        found = BYTES[subject](size)
    elif what == "watches":
        found = grow_watches(size, *repeats, 3, PendingOperation)
        found |= grow_watches(size, *repeats, 1, PendingOperation)
        del found["bytes_1"]
    elif what == "precision":
        found = precision(PRECISION[subject], size)
    else:
        found = work_off(size)
    print(json.dumps(found | {"compiled": compiled}))


if __name__ == "__main__":
    main()
