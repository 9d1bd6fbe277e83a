"""Awaiting a delayed operation: what comes back, and what is left behind."""

import asyncio
import threading

import pytest
from broker_sim_purgatory import AwaitableOperation, DelayedOperationPurgatory, LoopTimer, SystemTimer, wait_until


@pytest.fixture
def run(jumping_loop):
    """Run a coroutine function of a purgatory in virtual time; at the end nothing may be parked."""

    def run_with_purgatory(main):
        async def start():
            purgatory = DelayedOperationPurgatory("test", LoopTimer("test"), purge_interval=0)
            try:
                return await main(purgatory)
            finally:
                assert purgatory.num_delayed() == 0
                purgatory.shutdown()

        with asyncio.Runner(loop_factory=jumping_loop) as runner:
            return runner.run(start())

    return run_with_purgatory


def _now_ms():
    return asyncio.get_running_loop().clock.now_ms()


def test_a_condition_that_is_met_already_is_not_waited_for(run):
    async def main(purgatory):
        assert await wait_until(lambda: True, purgatory, ["a"], 0.1) is True
        assert (_now_ms(), purgatory.watched()) == (0, 0)

    run(main)


def test_an_event_that_finds_the_condition_met_ends_the_wait(run):
    log = []

    async def main(purgatory):
        waiter = asyncio.create_task(wait_until(lambda: len(log) >= 2, purgatory, ["a", "b"], 0.1))
        for _ in range(2):
            await asyncio.sleep(0.030)
            assert not waiter.done()
            log.append("record")
            purgatory.check_and_complete("a")
        assert await waiter is True
        assert _now_ms() == 60

    run(main)


def test_the_wait_returns_what_the_condition_found(run):
    records = []

    async def main(purgatory):
        waiter = asyncio.create_task(wait_until(lambda: records[1:], purgatory, ["a"], 0.1))
        await asyncio.sleep(0)
        records.extend(["first", "second"])
        purgatory.check_and_complete("a")
        records.append("after the event")
        assert await waiter == ["second"]

    run(main)


def test_an_attempt_after_it_has_completed_does_not_change_the_result(run):
    values = [[], [], ["record"], []]

    async def main(purgatory):
        operation = AwaitableOperation(100, lambda: values.pop(0))
        purgatory.try_complete_else_watch(operation, ["a"])
        other = threading.Thread(target=purgatory.check_and_complete, args=["a"])
        other.start()
        other.join()
        operation.safe_try_complete()
        assert await operation == ["record"]

    run(main)


def test_at_the_deadline_the_wait_returns_the_last_value(run):
    async def main(purgatory):
        assert await wait_until(list, purgatory, ["a"], 0.0005) == []
        assert _now_ms() == 1, "parts of a millisecond are rounded up"

    run(main)


def test_the_wait_ends_false_at_the_deadline(run):
    async def main(purgatory):
        assert await wait_until(lambda: False, purgatory, ["a"], 30) is False
        assert _now_ms() == 30_000

    run(main)


def test_forced_operation_ends_false(run):
    async def main(purgatory):
        operation = AwaitableOperation(100, lambda: False)
        purgatory.try_complete_else_watch(operation, ["a"])
        operation.force_complete()
        assert await operation is False

    run(main)


def test_a_cancelled_waiter_takes_its_operation_out_of_the_timer(run):
    async def main(purgatory):
        waiter = asyncio.create_task(wait_until(lambda: False, purgatory, ["a"], 30))
        await asyncio.sleep(0.010)
        assert purgatory.num_delayed() == 1
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert purgatory.num_delayed() == 0
        purgatory.check_and_complete("a")
        assert purgatory.watched() == 0

    run(main)


def test_a_timeout_around_the_wait_counts_if_it_is_shorter(run):
    async def main(purgatory):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await wait_until(lambda: False, purgatory, ["a"], 30)
        assert _now_ms() == 1_000

    run(main)


def test_a_condition_that_fails_at_once_passes_its_exception_on(run):
    async def main(purgatory):
        with pytest.raises(KeyError):
            await wait_until(lambda: {}["missing"], purgatory, ["a"], 0.1)

    run(main)


@pytest.mark.threads
def test_a_waiting_coroutine_may_be_freed_while_the_purgatorys_lock_is_held(jumping_loop):
    """The garbage collector runs at any moment, and closes the coroutines that it frees."""
    loop = jumping_loop()
    purgatory = DelayedOperationPurgatory("test", LoopTimer("test", loop))
    waiting = wait_until(lambda: False, purgatory, ["a"], 30)

    async def begin():
        waiting.send(None)

    def free():
        with purgatory.timer.owner.lock:
            waiting.close()

    loop.run_until_complete(begin())
    thread = threading.Thread(target=free, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "deadlock"
    assert purgatory.num_delayed() == 1
    purgatory.shutdown()
    loop.close()


@pytest.mark.threads
def test_an_event_on_another_thread_wakes_the_loop():
    ready = []

    async def main():
        purgatory = DelayedOperationPurgatory("threads", SystemTimer("threads"))

        def announce():
            ready.append(True)
            return purgatory.check_and_complete("a")

        waiter = asyncio.create_task(wait_until(lambda: bool(ready), purgatory, ["a"], 3_600))
        await asyncio.sleep(0)
        assert await asyncio.to_thread(announce) == 1
        assert await waiter is True
        purgatory.shutdown()

    asyncio.run(main())
