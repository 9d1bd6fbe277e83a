"""The work that shows what a timer costs: as it grows, under load, and how late it is.

A program of its own, so that it runs on a pure and on a native purgatory: ``python -P
purgatory_work.py growth|workload|precision SUBJECT [SIZE]`` prints one JSON object. Subjects:
purgatory, and for growth and precision the timers of the standard library.
"""

import asyncio
import gc
import heapq
import json
import math
import random
import sched
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median

from purgatory import (
    DelayedOperation,
    DelayedOperationPurgatory,
    InlineExecutor,
    LoopTimer,
    SystemTimer,
    TimerTask,
    VirtualClock,
    compiled,
)

CHUNK = 1_000
"""Operations that are added to those that are parked, and taken away again, per measurement."""
REPEATS = 15
MIN_DELAY_MS, MAX_DELAY_MS = 1_000, 31_000
SLOW_CANCEL = 10
"""sched looks through its whole list; more cancellations than that would take minutes."""

RATE_PER_S = 5_000
REQUESTS = 20_000
LATENCY_P50_MS, LATENCY_P75_MS = 20.0, 60.0
TIMEOUT_MS = 200
KEYS_PER_REQUEST = 3
P75_SIGMAS = 0.6745
"""Where the 75th percentile of a normal distribution lies."""

PRECISION_TASKS = 1_000
PRECISION_SPAN_MS = 3_000


class Task(TimerTask):
    """Does nothing."""

    __slots__ = ()

    def run(self) -> None:
        pass


class Operation(DelayedOperation):
    """Is complete once somebody says so."""

    __slots__ = ("ready",)

    def __init__(self, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self.ready = False

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        pass

    def on_expiration(self) -> None:
        pass


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4_096


def per_item(function: Callable, items: list) -> float:
    """Return the nanoseconds of this thread per call."""
    start = time.thread_time_ns()
    for item in items:
        function(item)
    return (time.thread_time_ns() - start) / len(items)


def grow(
    add: Callable, cancel: Callable, make: Callable, size: int, *, cancels: int = CHUNK
) -> dict[str, float]:
    """Park `size` things, then time a chunk on top of them, over and over."""
    parked = [add(make()) for _ in range(size)]
    adds, cancellations = [], []
    for _ in range(REPEATS):
        fresh = [make() for _ in range(CHUNK)]
        made = []
        adds.append(per_item(lambda each: made.append(add(each)), fresh))  # noqa: B023
        cancellations.append(per_item(cancel, made[:cancels]))
        for each in made[cancels:]:
            cancel(each)
    assert len(parked) == size
    return {"add": median(adds), "cancel": median(cancellations)}


def delay_ms() -> int:
    return CHANCE.randint(MIN_DELAY_MS, MAX_DELAY_MS)


def grow_purgatory(size: int) -> dict[str, float]:
    # First what needs the most memory, while none that was freed is used again.
    costs = grow_watches(size, 3) | grow_watches(size, 1)
    timer = SystemTimer("bench", VirtualClock(), InlineExecutor())

    def add(task: TimerTask) -> TimerTask:
        timer.add(task)
        return task

    costs |= grow(add, Task.cancel, lambda: Task(delay_ms()), size)
    assert timer.size() == size
    timer.shutdown()
    costs["expire"] = expire_wheel(size)
    del costs["bytes_1"]
    return costs


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


def grow_watches(size: int, keys: int) -> dict[str, float]:
    """Park under keys of which ten operations share one; measure under keys of their own."""
    timer = SystemTimer("bench", VirtualClock(), InlineExecutor())
    purgatory = DelayedOperationPurgatory("bench", timer, reaper_enabled=False)
    names = [f"key-{number}" for number in range(max(size // 10, 10))]
    watched = [[CHANCE.choice(names) for _ in range(keys)] for _ in range(size)]
    gc.collect()
    before = resident_bytes()
    for each in watched:
        purgatory.try_complete_else_watch(Operation(delay_ms()), each)
    used = (resident_bytes() - before) / size
    own = [[f"own-{number}-{index}" for index in range(keys)] for number in range(CHUNK)]
    costs = []
    for _ in range(REPEATS):

        def park_and_complete(under: list[str]) -> None:
            operation = Operation(30_000)
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


def grow_asyncio(size: int) -> dict[str, float]:
    loop = asyncio.SelectorEventLoop()
    costs = grow(
        lambda delay_s: loop.call_later(delay_s, int),
        lambda handle: handle.cancel(),
        lambda: delay_ms() / 1_000,
        size,
    )
    loop.close()
    now_s = 0.0
    loop = asyncio.SelectorEventLoop()
    loop.time = lambda: now_s
    delays_ms = [delay_ms() for _ in range(size)]
    for each in delays_ms:
        loop.call_later(each / 1_000, int)
    start = time.thread_time_ns()
    for now_ms in sorted(set(delays_ms)):
        now_s = now_ms / 1_000 + 0.0001
        loop.call_soon(loop.stop)
        loop.run_forever()
    costs["expire"] = (time.thread_time_ns() - start) / size
    loop.close()
    return costs


def grow_heapq(size: int) -> dict[str, float]:
    queue: list[list] = []
    numbers = count()

    def add(delay: int) -> list:
        entry = [delay, next(numbers), int]
        heapq.heappush(queue, entry)
        return entry

    def cancel(entry: list) -> None:
        entry[2] = None

    costs = grow(add, cancel, delay_ms, size)
    start = time.thread_time_ns()
    while queue:
        function = heapq.heappop(queue)[2]
        if function is not None:
            function()
    costs["expire"] = (time.thread_time_ns() - start) / (size + CHUNK * REPEATS)
    return costs


def grow_sched(size: int) -> dict[str, float]:
    scheduler = sched.scheduler(timefunc=lambda: 0.0)
    return grow(
        lambda delay: scheduler.enter(delay, 0, int),
        scheduler.cancel,
        delay_ms,
        size,
        cancels=SLOW_CANCEL,
    )


def grow_threads(size: int) -> dict[str, float]:
    def add(delay: int) -> threading.Timer:
        timer = threading.Timer(delay, int)
        timer.start()
        return timer

    timers = []
    adds = per_item(lambda delay: timers.append(add(delay)), [600] * size)
    cancellations = per_item(lambda timer: timer.cancel(), timers)
    for timer in timers:
        timer.join()
    return {"add": adds, "cancel": cancellations}


def work_off() -> dict[str, float]:
    """Take the requests of Kafka's TestPurgatoryPerformance: rate, latencies, timeout, keys."""
    purgatory = DelayedOperationPurgatory("load", SystemTimer("load"))
    sigma = math.log(LATENCY_P75_MS / LATENCY_P50_MS) / P75_SIGMAS
    keys = [f"key-{number}" for number in range(10_000)]
    due: list[tuple[float, int, Operation, str]] = []
    arrived = threading.Condition()
    open_requests = True

    def complete() -> None:
        while True:
            with arrived:
                while not due and open_requests:
                    arrived.wait()
                if not due:
                    return
                at_s, _, operation, key = due[0]
                wait_s = at_s - time.monotonic()
                if wait_s > 0:
                    arrived.wait(wait_s)
                    continue
                heapq.heappop(due)
            operation.ready = True
            purgatory.check_and_complete(key)

    completer = threading.Thread(target=complete)
    completer.start()
    started_s, cpu_s = time.monotonic(), time.process_time()
    next_s = started_s
    for number in range(REQUESTS):
        next_s += CHANCE.expovariate(RATE_PER_S)
        if (wait_s := next_s - time.monotonic()) > 0:
            time.sleep(wait_s)
        operation = Operation(TIMEOUT_MS)
        first = CHANCE.randrange(len(keys) - KEYS_PER_REQUEST)
        purgatory.try_complete_else_watch(operation, keys[first : first + KEYS_PER_REQUEST])
        latency_s = CHANCE.lognormvariate(math.log(LATENCY_P50_MS), sigma) / 1_000
        with arrived:
            heapq.heappush(due, (time.monotonic() + latency_s, number, operation, keys[first]))
            if due[0][1] == number:
                arrived.notify()
    elapsed_s = time.monotonic() - started_s
    with arrived:
        open_requests = False
        due.clear()
        arrived.notify()
    completer.join()
    cpu_us = (time.process_time() - cpu_s) / REQUESTS * 1e6
    expired = purgatory.statistics().expired
    purgatory.shutdown()
    return {"rate": REQUESTS / elapsed_s, "cpu_us": cpu_us, "expired": expired / REQUESTS}


class Punctual(TimerTask):
    """Notes how late it is, in ms."""

    __slots__ = ("due_s", "late_ms")

    def __init__(self, delay: int, late_ms: list[float]) -> None:
        super().__init__(delay)
        self.due_s = 0.0
        self.late_ms = late_ms

    def run(self) -> None:
        self.late_ms.append((time.monotonic() - self.due_s) * 1_000)


def precise_purgatory() -> list[float]:
    late_ms: list[float] = []
    timer = SystemTimer("punctual")
    purgatory = DelayedOperationPurgatory("punctual", timer)
    for _ in range(PRECISION_TASKS):
        task = Punctual(CHANCE.randint(1, PRECISION_SPAN_MS), late_ms)
        task.due_s = time.monotonic() + task.delay_ms / 1_000
        timer.add(task)
    while len(late_ms) < PRECISION_TASKS:
        time.sleep(0.1)
    purgatory.shutdown()
    return late_ms


def precise_loop_timer() -> list[float]:
    async def main() -> list[float]:
        late_ms: list[float] = []
        timer = LoopTimer("punctual")
        for _ in range(PRECISION_TASKS):
            task = Punctual(CHANCE.randint(1, PRECISION_SPAN_MS), late_ms)
            task.due_s = time.monotonic() + task.delay_ms / 1_000
            timer.add(task)
        await asyncio.sleep(PRECISION_SPAN_MS / 1_000 + 0.5)
        return late_ms

    return asyncio.run(main())


def precise_asyncio() -> list[float]:
    async def main() -> list[float]:
        late_ms: list[float] = []
        loop = asyncio.get_running_loop()

        def run(due_s: float) -> None:
            late_ms.append((time.monotonic() - due_s) * 1_000)

        for _ in range(PRECISION_TASKS):
            delay_s = CHANCE.randint(1, PRECISION_SPAN_MS) / 1_000
            loop.call_later(delay_s, run, time.monotonic() + delay_s)
        await asyncio.sleep(PRECISION_SPAN_MS / 1_000 + 0.5)
        return late_ms

    return asyncio.run(main())


def precision(measure: Callable[[], list[float]]) -> dict[str, float]:
    """Measure while idle, then while another thread of the process never rests."""
    found = {}
    stop = threading.Event()
    for state in ("idle", "busy"):
        if state == "busy":
            threading.Thread(target=lambda: all(iter(lambda: not stop.is_set(), False))).start()
        late_ms = sorted(measure())
        for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
            found[f"{state}_{name}"] = late_ms[min(int(len(late_ms) * share), len(late_ms) - 1)]
        found[f"{state}_min"] = late_ms[0]
    stop.set()
    return found


CHANCE = random.Random(42)
GROWTH = {
    "purgatory": grow_purgatory,
    "asyncio": grow_asyncio,
    "heapq": grow_heapq,
    "sched": grow_sched,
    "threading.Timer": grow_threads,
}
PRECISION = {
    "purgatory": precise_purgatory,
    "LoopTimer": precise_loop_timer,
    "asyncio": precise_asyncio,
}


def main() -> None:
    """Do what the command line says."""
    what, subject, *size = sys.argv[1:]
    if what == "growth":
        found = GROWTH[subject](int(size[0]))
    elif what == "precision":
        found = precision(PRECISION[subject])
    else:
        found = work_off()
    print(json.dumps(found | {"compiled": compiled}))


if __name__ == "__main__":
    main()
