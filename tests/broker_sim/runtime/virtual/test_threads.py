"""Threads of a virtual loop: they wait in virtual time, and never run beside it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import queue
import random
import socket
import subprocess
import sys
import threading
import time

import pytest

from broker_sim.runtime.virtual import EscapeError, VirtualDeadlockError, VirtualRun, threads


def test_two_sleeping_threads_end_together(run):
    async def main():
        loop = asyncio.get_running_loop()
        order = []

        def work(name):
            order.append((name, "begins", time.monotonic()))
            time.sleep(5)
            order.append((name, "ends", time.monotonic()))
            return name

        results = await asyncio.gather(
            asyncio.to_thread(work, "a"), asyncio.to_thread(work, "b"), asyncio.sleep(3, "c")
        )
        return results, order, loop.time()

    order = [("a", "begins", 0), ("b", "begins", 0), ("a", "ends", 5), ("b", "ends", 5)]
    assert run(main) == (["a", "b", "c"], order, 5)


def test_thread_waits_for_a_coroutine_of_the_loop(run):
    async def main():
        loop = asyncio.get_running_loop()

        async def answer():
            await asyncio.sleep(2)
            return 42

        def work():
            pending = asyncio.run_coroutine_threadsafe(answer(), loop)
            return pending.result(timeout=10), pending.exception()

        return await asyncio.to_thread(work), loop.time()

    assert run(main) == ((42, None), 2)


def test_timeout_of_a_result_is_in_virtual_time(run):
    async def main():
        loop = asyncio.get_running_loop()

        def work():
            pending = asyncio.run_coroutine_threadsafe(asyncio.sleep(3600), loop)
            try:
                pending.result(timeout=7)
            except TimeoutError:
                return time.monotonic()
            finally:
                pending.cancel()

        return await asyncio.to_thread(work), loop.time()

    assert run(main) == (7, 7)


def test_error_in_a_thread_reaches_its_awaiter(run):
    async def main():
        def fails():
            raise ValueError("in the thread")

        with pytest.raises(ValueError, match="in the thread"):
            await asyncio.to_thread(fails)

    run(main)


def test_any_executor_of_threads_becomes_threads_in_virtual_time(run):
    async def main():
        loop = asyncio.get_running_loop()
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            await asyncio.gather(
                loop.run_in_executor(executor, time.sleep, 5), loop.run_in_executor(None, time.sleep, 4)
            )
        return loop.time()

    assert run(main) == 5


def test_executor_of_processes_is_refused(run):
    async def main():
        with concurrent.futures.ProcessPoolExecutor(1) as executor:
            asyncio.get_running_loop().run_in_executor(executor, time.sleep, 5)

    with pytest.raises(EscapeError, match="a process runs in real time"):
        run(main)


def test_threads_and_pools_of_the_program_are_in_virtual_time(run):
    """FastAPI runs endpoints without `async` in threads that take their work from a queue."""

    async def main():
        loop = asyncio.get_running_loop()
        jobs, log = queue.Queue(), []

        def work():
            while (job := jobs.get()) is not None:
                time.sleep(job)
                log.append((f"slept {job}", time.monotonic()))
            assert not threading.Event().wait(2)
            log.append(("event", time.monotonic()))
            loop.call_soon_threadsafe(done.set)

        done = asyncio.Event()
        thread = threading.Thread(target=work)
        thread.start()
        timer = threading.Timer(4, log.append, [("timer", 4)])
        timer.start()
        assert thread.is_alive()
        jobs.put(1)
        await asyncio.sleep(3)
        jobs.put(10)
        jobs.put(None)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            log.append((await asyncio.wrap_future(pool.submit(time.monotonic)), "pool"))
            failing = pool.submit(int, "no number")
            with pytest.raises(ValueError, match="no number"):
                await asyncio.wrap_future(failing)
        await done.wait()
        await asyncio.to_thread(thread.join)
        return log

    assert run(main) == run(main) == [
        ("slept 1", 1), (3, "pool"), ("timer", 4), ("slept 10", 13), ("event", 15),
    ]  # fmt: skip


def test_queues_and_conditions_wait_and_time_out_in_virtual_time(run):
    async def main():
        boxes = queue.Queue(1)

        def take():
            try:
                boxes.get(timeout=5)
            except queue.Empty:
                first = time.monotonic()
            second = boxes.get(timeout=100), time.monotonic()
            condition = threading.Condition()
            with condition:
                assert not condition.wait_for(lambda: False, timeout=7)
            return first, second, time.monotonic()

        def give():
            time.sleep(8)
            boxes.put("a")
            boxes.put("b")  # waits for room
            return time.monotonic()

        return await asyncio.gather(asyncio.to_thread(take), asyncio.to_thread(give))

    assert run(main) == [(5, ("a", 8), 15), 8]


def test_error_of_a_thread_of_the_program_fails_the_run(run):
    async def main():
        threading.Thread(target=lambda: 1 // 0, name="divides").start()
        await asyncio.sleep(1)

    with pytest.raises(ZeroDivisionError) as error:
        run(main)
    assert "thread divides failed" in error.value.__notes__[0]
    assert run.loop.time() == 0


def test_thread_that_never_ends_is_ended_with_the_loop(run):
    threads_of = []

    async def main():
        thread = threading.Thread(target=queue.Queue().get)
        threads_of.append(thread)
        thread.start()
        await asyncio.sleep(1)

    run(main)
    threads_of[0].join(10)
    assert not threads_of[0].is_alive()


def test_deadlock_names_the_line_of_a_thread(run):
    async def main():
        await asyncio.to_thread(threading.Event().wait)

    with pytest.raises(VirtualDeadlockError, match=r"thread virtual-worker-\d+ waits at "):
        run(main)


def test_threads_take_turns_in_the_same_order_in_each_run(run):
    async def main():
        order = []

        def work(name):
            for _ in range(10):
                order.append((name, time.monotonic(), random.random()))
                time.sleep(random.choice([0.1, 0.2]))

        await asyncio.gather(*(asyncio.to_thread(work, name) for name in range(5)))
        return order

    assert run(main, seed=1) == run(main, seed=1)
    assert run(main, seed=1) != run(main, seed=2)


def test_nothing_runs_beside_a_thread(run):
    async def main():
        running = []

        def work():
            running.append(1)
            total = sum(range(20_000))
            assert running == [1]
            running.clear()
            return total

        async def turn():
            for _ in range(100):
                assert running == []
                await asyncio.sleep(0)

        await asyncio.gather(turn(), *(asyncio.to_thread(work) for _ in range(20)))

    run(main)


def test_cancelled_before_its_turn_a_thread_never_starts(run):
    async def main():
        started = []
        task = asyncio.get_running_loop().run_in_executor(None, started.append, 1)
        task.cancel()
        await asyncio.sleep(1)
        return started

    assert run(main) == []


def test_cancelled_while_it_sleeps_a_thread_ends_all_the_same(run):
    async def main():
        ended = []

        def work():
            time.sleep(10)
            ended.append(time.monotonic())

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(work), 1)
        assert ended == []
        return ended

    # The end of a program waits for its threads, as asyncio.run does.
    assert run(main) == [10]
    assert run.loop.time() == 10


def test_thread_that_outlives_the_end_by_minutes_is_warned_of(run):
    async def main():
        loop = asyncio.get_running_loop()
        pending = loop.run_in_executor(None, time.sleep, 100)
        with pytest.warns(RuntimeWarning, match="did not end within 5 s"):
            await loop.shutdown_default_executor(5)
        await pending

    run(main)


def test_thread_that_blocks_in_real_time_is_named(run, monkeypatch):
    monkeypatch.setattr(threads, "PATIENCE_S", 0.05)
    monkeypatch.setattr(threads, "LOOK_S", 0.05)
    ours, theirs = socket.socketpair()

    async def main():
        def blocks():
            ours.recv(1)

        await asyncio.to_thread(blocks)

    with ours, theirs:
        with pytest.raises(EscapeError, match=r"(?s)virtual-worker-\d+ blocks .* in blocks"):
            run(main)
        theirs.send(b"x")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a thread waits for")
@pytest.mark.parametrize("takes", ["with", "acquire"])
def test_lock_that_another_thread_holds_is_refused_long_before_patience_ends(run, monkeypatch, takes):
    monkeypatch.setattr(threads, "PATIENCE_S", 30)
    monkeypatch.setattr(threads, "LOOK_S", 0.02)
    began = time.monotonic()
    lock = threading.Lock()

    async def main():
        def holds():
            with lock:
                time.sleep(5)

        def blocks():
            if takes == "with":
                with lock:
                    pass
            else:
                lock.acquire()

        await asyncio.gather(asyncio.to_thread(holds), asyncio.to_thread(blocks))

    with pytest.raises(EscapeError, match=r"(?s)release locks before you wait.* in blocks"):
        run(main)
    assert time.monotonic() - began < 15


def test_thread_that_got_its_lock_too_late_disturbs_nothing_any_more(run, monkeypatch):
    monkeypatch.setattr(threads, "PATIENCE_S", 0.1)
    monkeypatch.setattr(threads, "LOOK_S", 0.02)
    lock = threading.Lock()
    seen = []

    async def main():
        def holds_for(seconds):
            with lock:
                seen.append(seconds)
                time.sleep(seconds)

        loop = asyncio.get_running_loop()
        try:
            await asyncio.gather(*(asyncio.to_thread(holds_for, 5) for _ in range(2)))
        finally:
            await asyncio.sleep(6)  # the first one has given the lock back
            while len(seen) < 2:
                os.sched_yield()  # the second one takes it in real time
            await asyncio.sleep(94)
            ended.append(loop.time())

    ended = []
    with pytest.raises(EscapeError, match="release locks before you wait"):
        run(main)
    assert (seen, ended) == ([5, 5], [100])


def test_run_that_has_refused_a_lock_closes_without_another_error(monkeypatch):
    monkeypatch.setattr(threads, "PATIENCE_S", 0.1)
    monkeypatch.setattr(threads, "LOOK_S", 0.02)
    lock = threading.Lock()

    async def main():
        def holds():
            with lock:
                time.sleep(5)

        await asyncio.gather(*(asyncio.to_thread(holds) for _ in range(2)))

    run = VirtualRun()
    with pytest.raises(EscapeError, match="release locks before you wait"):
        run.wait(main())
    run.close()


@pytest.mark.parametrize("where", ["thread", "coroutine"])
def test_other_process_runs_while_virtual_time_stands_still(run, where):
    program = [sys.executable, "-c", "import time; time.sleep(0.2); print('ended')"]

    async def main():
        def work():
            return subprocess.run(program, capture_output=True, text=True, timeout=60, check=True).stdout

        def wait():
            return subprocess.Popen(program, stdout=subprocess.DEVNULL).wait(timeout=60)

        if where == "thread":
            answer = await asyncio.to_thread(work), await asyncio.to_thread(wait)
        else:
            answer = work(), wait()
        return answer, asyncio.get_running_loop().time()

    assert run(main) == (("ended\n", 0), 0)


def test_long_work_is_not_reported_as_a_wait_for_a_lock(run, monkeypatch):
    monkeypatch.setattr(threads, "LOOK_S", 0.001)
    turns = 0

    async def main():
        def works():
            nonlocal turns
            until = time.thread_time() + 0.05
            lock = threading.Lock()
            while time.thread_time() < until:
                with lock:
                    turns += 1

        await asyncio.to_thread(works)

    run(main)
    assert turns


def test_thread_that_waits_for_what_never_comes_is_a_deadlock_and_is_ended(run):
    cleaned = []

    async def main():
        loop = asyncio.get_running_loop()

        def work():
            cleaned.append(threading.current_thread())
            try:
                concurrent.futures.Future().result()
            finally:
                cleaned.append("cleaned")

        await loop.run_in_executor(None, work)

    with pytest.raises(VirtualDeadlockError):
        run(main)
    assert cleaned[1] == "cleaned"
    cleaned[0].join(10)
    assert not cleaned[0].is_alive()
