"""What adding, cancelling and expiring cost with much that is parked: of any timer.

`grow` measures; the timers of the standard library are here, the purgatory is in purgatory_work.py.
"""

import asyncio
import gc
import heapq
import random
import sched
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median

CHUNK = 1_000
"""Operations that are added to those that are parked, and taken away again, per measurement."""
MIN_DELAY_MS, MAX_DELAY_MS = 1_000, 31_000
SLOW_CANCEL, MOST_SLOW_REPEATS = 10, 9
"""sched looks through its whole list; more cancellations than that would take minutes."""

CHANCE = random.Random(42)


def per_item(function: Callable, items: list) -> float:
    """Return the nanoseconds of this thread per call."""
    start = time.thread_time_ns()
    for item in items:
        function(item)
    return (time.thread_time_ns() - start) / len(items)


def grow(
    add: Callable, cancel: Callable, make: Callable, size: int, repeats: int, *, cancels: int = CHUNK
) -> dict[str, float]:
    """Park `size` things, then time a chunk on top of them, over and over."""
    parked = [add(make()) for _ in range(size)]
    adds, cancellations = [], []
    for _ in range(repeats):
        fresh = [make() for _ in range(CHUNK)]
        made = []
        adds.append(per_item(lambda each: made.append(add(each)), fresh))  # noqa: B023 - called at once
        cancellations.append(per_item(cancel, made[:cancels]))
        for each in made[cancels:]:
            cancel(each)
    assert len(parked) == size
    return {"add": median(adds), "cancel": median(cancellations)}


def delay_ms() -> int:
    return CHANCE.randint(MIN_DELAY_MS, MAX_DELAY_MS)


def resident_bytes() -> int:
    """Return what this process has in memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4_096


def parked_bytes(add: Callable[[int], object], size: int) -> dict[str, float]:
    """Return the memory of each timer that waits, in a process that has done nothing else; its handle is kept."""
    gc.collect()
    before = resident_bytes()
    parked = [add(delay_ms()) for _ in range(size)]
    used = resident_bytes() - before
    assert len(parked) == size
    return {"bytes_timer": used / size}


def asyncio_bytes(size: int) -> dict[str, float]:
    """Return the memory of a handle of `call_later`."""
    loop = asyncio.SelectorEventLoop()
    found = parked_bytes(lambda delay: loop.call_later(delay / 1_000, int), size)
    loop.close()
    return found


def heapq_bytes(size: int) -> dict[str, float]:
    """Return the memory of an entry of a heap."""
    return parked_bytes(heap_of([]), size)


def heap_of(queue: list[list]) -> Callable[[int], list]:
    """Return what adds an entry to a heap."""
    numbers = count()

    def add(delay: int) -> list:
        entry = [delay, next(numbers), int]
        heapq.heappush(queue, entry)
        return entry

    return add


def grow_asyncio(size: int, repeats: int) -> dict[str, float]:
    loop = asyncio.SelectorEventLoop()
    costs = grow(
        lambda delay_s: loop.call_later(delay_s, int),
        asyncio.TimerHandle.cancel,
        lambda: delay_ms() / 1_000,
        size,
        repeats,
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


def grow_heapq(size: int, repeats: int) -> dict[str, float]:
    queue: list[list] = []

    def cancel(entry: list) -> None:
        entry[2] = None

    costs = grow(heap_of(queue), cancel, delay_ms, size, repeats)
    start = time.thread_time_ns()
    while queue:
        function = heapq.heappop(queue)[2]
        if function is not None:
            function()
    costs["expire"] = (time.thread_time_ns() - start) / (size + CHUNK * repeats)
    return costs


def grow_sched(size: int, repeats: int) -> dict[str, float]:
    scheduler = sched.scheduler(timefunc=lambda: 0.0)
    return grow(
        lambda delay: scheduler.enter(delay, 0, int),
        scheduler.cancel,
        delay_ms,
        size,
        min(repeats, MOST_SLOW_REPEATS),
        cancels=SLOW_CANCEL,
    )


def grow_threads(size: int, repeats: int) -> dict[str, float]:
    del repeats  # all of them are measured

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


GROWTH = {"asyncio": grow_asyncio, "heapq": grow_heapq, "sched": grow_sched, "threading.Timer": grow_threads}
