"""A purgatory under load, in real time: Kafka's own workload, and how late its tasks run."""

import asyncio
import heapq
import math
import random
import threading
import time
from collections.abc import Callable

from broker_sim_purgatory import DelayedOperationPurgatory, LoopTimer, SystemTimer, TimerTask
from purgatory_operation import Operation

RATE_PER_S = 5_000
LATENCY_P50_MS, LATENCY_P75_MS = 20.0, 60.0
TIMEOUT_MS = 200
KEYS_PER_REQUEST = 3
P75_SIGMAS = 0.6745
"""The 75th percentile of a normal distribution, in standard deviations."""

SPAN_OF_TASK_MS = 3
"""Tasks are spread over so much time each."""

CHANCE = random.Random(42)


def work_off(requests: int) -> dict[str, float]:
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
    for number in range(requests):
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
    cpu_us = (time.process_time() - cpu_s) / requests * 1e6
    expired = purgatory.statistics().expired
    purgatory.shutdown()
    return {"rate": requests / elapsed_s, "cpu_us": cpu_us, "expired": expired / requests}


class Punctual(TimerTask):
    """Notes how late it is, in ms."""

    __slots__ = ("due_s", "late_ms")

    def __init__(self, delay: int, late_ms: list[float]) -> None:
        super().__init__(delay)
        self.due_s = 0.0
        self.late_ms = late_ms

    def run(self) -> None:
        self.late_ms.append((time.monotonic() - self.due_s) * 1_000)


def precise_purgatory(tasks: int) -> list[float]:
    late_ms: list[float] = []
    timer = SystemTimer("punctual")
    purgatory = DelayedOperationPurgatory("punctual", timer)
    for _ in range(tasks):
        task = Punctual(CHANCE.randint(1, tasks * SPAN_OF_TASK_MS), late_ms)
        task.due_s = time.monotonic() + task.delay_ms / 1_000
        timer.add(task)
    while len(late_ms) < tasks:
        time.sleep(0.1)
    purgatory.shutdown()
    return late_ms


def precise_loop_timer(tasks: int) -> list[float]:
    async def main() -> list[float]:
        late_ms: list[float] = []
        timer = LoopTimer("punctual")
        for _ in range(tasks):
            task = Punctual(CHANCE.randint(1, tasks * SPAN_OF_TASK_MS), late_ms)
            task.due_s = time.monotonic() + task.delay_ms / 1_000
            timer.add(task)
        await asyncio.sleep(tasks * SPAN_OF_TASK_MS / 1_000 + 0.5)
        return late_ms

    return asyncio.run(main())


def precise_asyncio(tasks: int) -> list[float]:
    async def main() -> list[float]:
        late_ms: list[float] = []
        loop = asyncio.get_running_loop()

        def run(due_s: float) -> None:
            late_ms.append((time.monotonic() - due_s) * 1_000)

        for _ in range(tasks):
            delay_s = CHANCE.randint(1, tasks * SPAN_OF_TASK_MS) / 1_000
            loop.call_later(delay_s, run, time.monotonic() + delay_s)
        await asyncio.sleep(tasks * SPAN_OF_TASK_MS / 1_000 + 0.5)
        return late_ms

    return asyncio.run(main())


def precision(measure: Callable[[int], list[float]], tasks: int) -> dict[str, float]:
    """Measure while idle, then while another thread of the process never rests."""
    found = {}
    stop = threading.Event()
    for state in ("idle", "busy"):
        if state == "busy":
            threading.Thread(target=lambda: all(iter(lambda: not stop.is_set(), False))).start()
        late_ms = sorted(measure(tasks))
        for name, share in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
            found[f"{state}_{name}"] = late_ms[min(int(len(late_ms) * share), len(late_ms) - 1)]
        found[f"{state}_min"] = late_ms[0]
    stop.set()
    return found


PRECISION = {"purgatory": precise_purgatory, "LoopTimer": precise_loop_timer, "asyncio": precise_asyncio}
