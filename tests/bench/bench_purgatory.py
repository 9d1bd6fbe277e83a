"""Nanoseconds of processor time per operation of timer and purgatory, beside asyncio, a heap and Kafka's own classes.

A heap with lazy deletion is the usual timer of Python programs: cancelling sets a flag, and the
entry stays until its time has come. It is no purgatory, and neither is asyncio: those lines have
only Kafka as a peer. Kafka's classes run on the local Java, warm.
The native build of the same purgatory takes part where `make compiled` has built it.
"""

import asyncio
import heapq
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from broker_sim_integration.reference.clusters.jvm import find_java
from broker_sim_integration.reference.errors import ReferenceUnavailableError
from broker_sim_integration.reference.jars import kafka_jars
from broker_sim_purgatory import (
    DelayedOperation,
    DelayedOperationPurgatory,
    InlineExecutor,
    SystemTimer,
    TimerTask,
    VirtualClock,
)
from options import Options
from report import OURS, Report

SUITE = "purgatory"
WARM_UP_ROUNDS = 2
JAVA_TIMEOUT_S = 300
KEYS = 100
JAVA_SOURCE = Path(__file__).with_name("KafkaPurgatory.java")
NATIVE_PACKAGE = Path(__file__).parents[2] / "build" / "native"
COMPILED, KAFKA = "compiled", "Kafka"
NAMES = {
    "add": "timer: add",
    "cancel": "timer: cancel",
    "expire": "timer: expire",
    "keys_1": "purgatory: watch under 1 key, complete",
    "keys_3": "purgatory: watch under 3 keys, complete",
}


@dataclass(frozen=True)
class Sizes:
    """How many tasks and operations make one figure."""

    tasks: int
    java_tasks: int
    java_rounds: int


FULL = Sizes(tasks=20_000, java_tasks=200_000, java_rounds=6)
TINY = Sizes(tasks=500, java_tasks=500, java_rounds=WARM_UP_ROUNDS + 1)

Costs = dict[str, float]
"""Key of `NAMES` -> nanoseconds per operation."""


class Task(TimerTask):
    """Counts that it ran."""

    ran = 0

    def run(self):
        Task.ran += 1


class Operation(DelayedOperation):
    """Is complete once somebody says so."""

    def __init__(self):
        super().__init__(30_000)
        self.ready = False

    def try_complete(self):
        return self.ready and self.force_complete()

    def on_complete(self):
        pass

    def on_expiration(self):
        pass


def run(options: Options, report: Report) -> None:
    """Measure the Python timers in turns, then Kafka's classes."""
    sizes = options.choose(FULL, TINY)
    subjects = {OURS: ours, "heapq": heap, "asyncio": event_loop}
    samples: dict[tuple[str, str], list[float]] = defaultdict(list)
    if NATIVE_PACKAGE.exists():
        subjects[COMPILED] = compiled
    else:
        report.say("without the native build: make compiled")
    for index in range(options.rounds):
        for subject, measure in subjects.items():
            for key, value in measure(random.Random(index), sizes.tasks).items():
                samples[key, subject].append(value)
    for costs in kafka_costs(sizes, report)[WARM_UP_ROUNDS:] if options.peers else ():
        for key, value in costs.items():
            samples[key, KAFKA].append(value)
    for key, name in NAMES.items():
        for subject in (*subjects, KAFKA):
            if values := samples.get((key, subject)):
                report.add(SUITE, name, "ns", subject, median(values), lower=True)
    report.print_suite(SUITE)


def timed(work: Callable[[], object], operations: int) -> float:
    """Return the nanoseconds of this thread per operation that the work takes."""
    start = time.thread_time_ns()
    work()
    return (time.thread_time_ns() - start) / operations


def each(function: Callable[[object], object], items: list) -> Callable[[], None]:
    """Return what calls the function with every item."""

    def work():
        for item in items:
            function(item)

    return work


def ours(chance: random.Random, count: int) -> Costs:
    clock = VirtualClock()
    timer = SystemTimer("bench", clock, InlineExecutor())
    tasks = [Task(chance.randint(1_000, 31_000)) for _ in range(count)]
    costs = {"add": timed(each(timer.add, tasks), count), "cancel": timed(each(Task.cancel, tasks), count)}
    assert timer.size() == 0

    for _ in range(count):
        timer.add(Task(chance.randint(1, 1_000)))

    def expire():
        while (due_ms := timer.next_expiration_ms()) is not None:
            clock.advance_to(due_ms)
            timer.advance_clock(0)

    Task.ran = 0
    costs["expire"] = timed(expire, count)
    assert Task.ran == count
    costs["keys_1"] = watch_and_complete(1, count)
    costs["keys_3"] = watch_and_complete(3, count)
    return costs


def watch_and_complete(keys_per_operation: int, count: int) -> float:
    """Park operations, 100 at a time; complete the oldest by its first key."""
    timer = SystemTimer("bench", VirtualClock(), InlineExecutor())
    purgatory = DelayedOperationPurgatory("bench", timer, reaper_enabled=False)
    keys = [f"key-{index}" for index in range(KEYS + 3)]
    watched = [keys[index : index + keys_per_operation] for index in range(KEYS)]
    parked = deque()

    def work():
        for index in range(count):
            operation = Operation()
            purgatory.try_complete_else_watch(operation, watched[index % KEYS])
            parked.append(operation)
            if len(parked) == KEYS:
                parked.popleft().ready = True
                purgatory.check_and_complete(keys[(index + 1) % KEYS])
            if index % 1_000 == 0:
                purgatory.advance_clock(0)  # sweeps what is completed, as the reaper does

    cost = timed(work, count)
    assert purgatory.num_delayed() == KEYS - 1
    purgatory.shutdown()
    return cost


def compiled(chance: random.Random, count: int) -> Costs:
    """Return what `ours` costs with the native build."""
    command = [sys.executable, __file__, str(chance.randrange(1_000)), str(count)]
    env = os.environ | {"PYTHONPATH": str(NATIVE_PACKAGE)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class HeapTask:
    """What a heap of deadlines needs of a task."""

    __slots__ = ("cancelled", "delay_ms")
    ran = 0

    def __init__(self, delay_ms):
        self.delay_ms = delay_ms
        self.cancelled = False

    def cancel(self):
        self.cancelled = True

    def run(self):
        HeapTask.ran += 1


def heap(chance: random.Random, count: int) -> Costs:
    queue: list[tuple[int, int, HeapTask]] = []
    numbers = itertools.count()

    def add(task):
        heapq.heappush(queue, (task.delay_ms, next(numbers), task))

    tasks = [HeapTask(chance.randint(1_000, 31_000)) for _ in range(count)]
    costs = {"add": timed(each(add, tasks), count), "cancel": timed(each(HeapTask.cancel, tasks), count)}
    queue.clear()
    for _ in range(count):
        add(HeapTask(chance.randint(1, 1_000)))

    def expire():
        while queue:
            _, _, task = heapq.heappop(queue)
            if not task.cancelled:
                task.run()

    HeapTask.ran = 0
    costs["expire"] = timed(expire, count)
    assert HeapTask.ran == count
    return costs


def event_loop(chance: random.Random, count: int) -> Costs:
    loop = asyncio.SelectorEventLoop()
    now_s = 0.0
    loop.time = lambda: now_s
    ran = 0

    def task():
        nonlocal ran
        ran += 1

    try:
        handles = []
        delays_s = [chance.randint(1_000, 31_000) / 1_000 for _ in range(count)]
        costs = {
            "add": timed(each(lambda delay_s: handles.append(loop.call_later(delay_s, task)), delays_s), count),
            "cancel": timed(each(asyncio.TimerHandle.cancel, handles), count),
        }
        for _ in range(count):
            loop.call_later(chance.randint(1, 1_000) / 1_000, task)

        def expire():
            nonlocal now_s
            for step in range(1_000):
                now_s = (step + 1.5) / 1_000
                loop.call_soon(loop.stop)
                loop.run_forever()

        costs["expire"] = timed(expire, count)
        assert ran == count
        return costs
    finally:
        loop.close()


def kafka_costs(sizes: Sizes, report: Report) -> list[Costs]:
    """Return what Kafka's classes cost, round by round; the first rounds compile."""
    try:
        command = [find_java(), "-Xmx2g", "-cp", f"{kafka_jars()}/*", str(JAVA_SOURCE)]
    except ReferenceUnavailableError as missing:
        report.say(f"without Kafka's classes: {missing}")
        return []
    done = subprocess.run(
        [*command, str(sizes.java_tasks), str(sizes.java_rounds)],
        capture_output=True,
        text=True,
        timeout=JAVA_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        report.say(f"without Kafka's classes: {lines[-1]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


if __name__ == "__main__":
    print(json.dumps(ours(random.Random(int(sys.argv[1])), int(sys.argv[2]))))
