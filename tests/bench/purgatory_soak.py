"""A long seeded run of everything a purgatory can do, with its invariants checked all along.

`python -P tests/bench/purgatory_soak.py [OPERATIONS] [SEED]`: 10^7 operations take some minutes.
Time is virtual, so a seed gives the same run again. It prints one line of JSON.
"""

import argparse
import json
import random
import resource
import time

from broker_sim_purgatory import DelayedOperation, DelayedOperationPurgatory, VirtualTimer, compiled

OPERATIONS = 10_000_000
CHECK_EVERY = 100_000
KEYS = 1_000
MAX_DELAY_MS = 40_000


class Operation(DelayedOperation):
    """Counts how it ends in the totals of all."""

    __slots__ = ("ready",)
    completions = 0
    expirations = 0

    def __init__(self, delay_ms: int) -> None:
        super().__init__(delay_ms)
        self.ready = False

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        Operation.completions += 1

    def on_expiration(self) -> None:
        Operation.expirations += 1
        assert TIMER.clock.now_ms() >= self.expiration_ms, "it ran too early"


TIMER = VirtualTimer()


def soak(operations: int, seed: int) -> dict[str, object]:
    """Run, and return the totals; AssertionError when something is lost or ends twice."""
    chance = random.Random(seed)
    purgatory = DelayedOperationPurgatory("soak", TIMER)
    recent: list[tuple[Operation, list[int]]] = []
    cancelled = 0
    started_s = time.monotonic()
    for number in range(1, operations + 1):
        operation = Operation(chance.randint(0, MAX_DELAY_MS))
        keys = [chance.randrange(KEYS) for _ in range(chance.randint(1, 3))]
        purgatory.try_complete_else_watch(operation, keys)
        recent.append((operation, keys))
        if len(recent) > CHECK_EVERY // 100:
            other, keys = recent.pop(chance.randrange(len(recent)))
            other.ready = True
            if chance.random() < 0.1:
                other.force_complete()
            else:
                purgatory.check_and_complete(keys[0])
        if chance.random() < 0.001:
            cancelled += sum(not operation.completed for operation in purgatory.cancel_for_key(keys[0]))
        if chance.random() < 0.1:
            TIMER.advance(chance.randint(0, 20))
        if number % CHECK_EVERY == 0:
            check(purgatory, number, cancelled)
    TIMER.run_until_idle()
    for key in range(KEYS):
        purgatory.check_and_complete(key)
    check(purgatory, operations, cancelled)
    for key in range(KEYS):  # what was cancelled under one key is still watched under the others
        purgatory.cancel_for_key(key)
    assert purgatory.num_delayed() == purgatory.watched() == 0
    return {
        "operations": operations,
        "seed": seed,
        "completed": Operation.completions - Operation.expirations,
        "expired": Operation.expirations,
        "cancelled": cancelled,
        "virtual_s": TIMER.clock.now_ms() // 1_000,
        "real_s": round(time.monotonic() - started_s, 1),
        "max_resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024,
        "compiled": compiled,
    }


def check(purgatory: DelayedOperationPurgatory, made: int, cancelled: int) -> None:
    """Compare what was made with what has ended and what waits."""
    waiting = purgatory.num_delayed()
    placed = TIMER.placements()
    assert len(placed) == len({id(each.task) for each in placed}) == waiting
    # One that was cancelled under one key may still be completed under another.
    ended = Operation.completions + waiting
    assert made - cancelled <= ended <= made, (made, cancelled, ended)
    statistics = purgatory.statistics()
    assert statistics.expired >= Operation.expirations
    assert statistics.estimated_total_operations - waiting <= 1_000 + CHECK_EVERY


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("operations", type=int, nargs="?", default=OPERATIONS)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    arguments = parser.parse_args()
    print(json.dumps(soak(arguments.operations, arguments.seed)))
