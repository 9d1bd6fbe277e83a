"""The explorer itself: it runs every order of two programs, and finds what goes wrong in one."""

import math
import threading

import pytest


def test_the_explorer_runs_every_interleaving_once(explore):
    seen = []

    def scenario(explorer):
        explorer.pauses_after = True
        lock, order = threading.Lock(), []

        def program(name):
            for _ in range(2):
                with lock:
                    order.append(name)

        return (lambda: program("x"), lambda: program("y"), lambda: seen.append("".join(order)))

    # Each program pauses four times, none with the lock: five parts each, in any order.
    assert explore(scenario) == math.comb(10, 5)
    assert set(seen) == {
        "".join("x" if bit == "1" else "y" for bit in f"{number:04b}")
        for number in range(16)
        if number.bit_count() == 2
    }


def test_the_explorer_finds_a_lost_update(explore):
    def scenario(explorer):
        lock, total = threading.Lock(), [0]

        def add():
            with lock:
                seen = total[0]
            with lock:
                total[0] = seen + 1

        def check():
            assert total == [2]

        return add, add, check

    with pytest.raises(AssertionError):
        explore(scenario)


def test_the_explorer_finds_a_deadlock(explore):
    def scenario(explorer):
        one, two = threading.Lock(), threading.Lock()

        def take(first, second):
            with first, second:
                pass

        return lambda: take(one, two), lambda: take(two, one), lambda: None

    with pytest.raises(AssertionError, match="deadlock"):
        explore(scenario)
