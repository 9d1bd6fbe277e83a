"""The locks of the native build: one thread at a time, wherever its holder is interrupted."""

import pytest

from purgatory import compiled, locks


@pytest.mark.parametrize("kind", ["LeafLock", "ReentrantLock"])
@pytest.mark.parametrize("takes", [1, 2])
def test_a_lock_lets_one_program_in_at_a_time_and_none_waits_for_ever(explore, kind, takes):
    native = getattr(locks, kind)

    def scenario(explorer):
        # Pure Python has threading's, for which the explorer puts its own.
        lock = native() if compiled else getattr(locks, kind)()
        inside, order = [], []

        def program(name):
            for _ in range(takes):
                with lock:
                    inside.append(name)
                    explorer.pause(None)
                    order.append(name)
                    assert inside == [name]
                    inside.clear()

        def check():
            assert sorted(order) == sorted("xy" * takes)
            assert lock.acquire(False)

        return lambda: program("x"), lambda: program("y"), check

    explore(scenario, native=5)


def test_a_program_takes_a_reentrant_lock_again_while_another_waits(explore):
    native = locks.ReentrantLock

    def scenario(explorer):
        lock = native() if compiled else locks.ReentrantLock()
        order = []

        def program(name):
            with lock:
                explorer.pause(None)
                with lock:
                    explorer.pause(None)
                    order.append(name)
                explorer.pause(None)
                order.append(name)

        def check():
            assert "".join(order) in {"xxyy", "yyxx"}

        return lambda: program("x"), lambda: program("y"), check

    explore(scenario, native=5)
