"""A timer that the event loop drives: one call_later at a time, no thread, no polling."""

import asyncio
import threading

import pytest
from broker_sim_purgatory import (
    DelayedOperationPurgatory,
    LoopTimer,
    PendingOperation,
    SystemClock,
    TimerTask,
    VirtualClock,
)


@pytest.fixture
def run(jumping_loop):
    """Run a function of a loop that counts its timers, and of a LoopTimer on it."""

    def run_on_loop(main, **options):
        async def start():
            loop = asyncio.get_running_loop()
            return await main(loop, LoopTimer("loop", **options))

        with asyncio.Runner(loop_factory=jumping_loop) as runner:
            return runner.run(start())

    return run_on_loop


class _Noting(TimerTask):
    def __init__(self, delay_ms, ran):
        super().__init__(delay_ms)
        self._ran = ran

    def run(self):
        loop = asyncio.get_running_loop()
        self._ran.append((self.delay_ms, loop.clock.now_ms(), threading.get_ident()))


DELAYS_MS = [0, 1, 19, 20, 21, 399, 400, 450, 8_000, 30_000, 160_001]


@pytest.mark.parametrize("start_ms", [0, 13, 123_457])
def test_tasks_run_on_the_loop_at_their_deadlines(run, start_ms):
    ran = []

    async def main(loop, timer):
        loop.clock.advance_to(start_ms)
        for delay_ms in reversed(DELAYS_MS):
            timer.add(_Noting(delay_ms, ran))
        await asyncio.sleep(200)

    run(main)
    here = threading.get_ident()
    assert ran == [(delay_ms, start_ms + delay_ms, here) for delay_ms in DELAYS_MS]


def test_a_thousand_tasks_need_one_timer_of_the_loop_at_a_time(run):
    ran = []

    async def main(loop, timer):
        for delay_ms in range(1_000, 2_000):
            timer.add(_Noting(delay_ms, ran))
            assert len(loop.scheduled()) == 1
        added = len(loop.timers)
        await asyncio.sleep(3)
        return added, len(loop.timers)

    added, in_all = run(main)
    assert len(ran) == 1_000
    assert added == 1
    # A wake-up per deadline, one per bucket of a coarser level that sinks, and the sleep.
    assert in_all <= 1_000 + 60


def test_an_earlier_deadline_takes_the_place_of_the_timer(run):
    ran = []

    async def main(loop, timer):
        for delay_ms in (5_000, 15, 3):
            timer.add(_Noting(delay_ms, ran))
        assert len(loop.scheduled()) == 1
        await asyncio.sleep(10)

    run(main)
    assert [at_ms for _, at_ms, _ in ran] == [3, 15, 5_000]


def test_an_idle_timer_does_not_wake_the_loop(run):
    async def main(loop, timer):
        task = _Noting(50, [])
        timer.add(task)
        task.cancel()
        await asyncio.sleep(1)
        before = len(loop.timers)
        await asyncio.sleep(3_600)
        assert len(loop.timers) == before + 1  # the sleep itself

    run(main)


def test_a_failing_task_goes_to_the_loops_handler_and_the_next_one_runs(run):
    ran, failures = [], []

    class Broken(TimerTask):
        def run(self):
            raise KeyError("broken")

    async def main(loop, timer):
        loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
        timer.add(Broken(10))
        timer.add(_Noting(10, ran))
        await asyncio.sleep(1)

    run(main)
    assert [type(failure) for failure in failures] == [KeyError]
    assert len(ran) == 1


def test_a_purgatory_on_a_loop_has_no_thread_and_expires_operations(run, operation):
    async def main(loop, timer):
        threads = set(threading.enumerate())
        purgatory = DelayedOperationPurgatory("loop", timer, purge_interval=0)
        assert set(threading.enumerate()) <= threads
        ops = [operation(delay_ms) for delay_ms in (10, 30_000)]
        for op in ops:
            purgatory.try_complete_else_watch(op, ("a", "b"))
        await asyncio.sleep(0.015)
        assert [op.expirations for op in ops] == [1, 0]
        assert purgatory.watched() == 2
        await asyncio.sleep(30)
        assert ops[1].expirations == 1
        purgatory.shutdown()

    run(main)


@pytest.mark.parametrize("complete", ["an event", "force_complete", "cancel_for_key", "no delay"])
def test_a_purgatory_purges_within_200_ms_though_nothing_is_due(run, complete):
    async def main(loop, timer):
        purgatory = DelayedOperationPurgatory("loop", timer, purge_interval=10)
        purges = []
        for number in range(12):
            op = PendingOperation(0 if complete == "no delay" else 3_600_000)
            purgatory.try_complete_else_watch(op, ("a", "b", number))
            if complete == "an event":
                op.ready = True
                purgatory.check_and_complete("a")
            elif complete == "force_complete":
                op.force_complete()
            elif complete == "cancel_for_key":
                purgatory.cancel_for_key(number)
            await asyncio.sleep(0)
        for _ in range(201):
            purges.append(purgatory.statistics().purges)
            await asyncio.sleep(0.001)
        assert (purges[0], purges[-1]) == (0, 1)
        if complete != "cancel_for_key":  # what is cancelled under one key waits under the others
            assert purgatory.watched() == 0
        assert len(loop.scheduled()) <= 1  # of the operations that were cancelled: their bucket

    run(main)


async def _until_purged(purgatory, left=0):
    async with asyncio.timeout(30):
        while purgatory.watched() > left:  # noqa: ASYNC110 - a thread purges, and tells nobody
            await asyncio.sleep(0.005)


@pytest.mark.threads
def test_a_purge_thread_purges_while_the_loop_expires(caplog):
    caplog.set_level("DEBUG", "broker_sim_purgatory")
    expired_on = []
    all_expired = asyncio.Event()

    class Noting(PendingOperation):
        def on_expiration(self):
            expired_on.append(threading.current_thread().name)
            if len(expired_on) == 11:
                all_expired.set()

    async def main():
        timer = LoopTimer("real", purge_thread=True)
        purgatory = DelayedOperationPurgatory("Fetch", timer, broker_id=7, purge_interval=10)
        assert "ExpirationReaper-7-Fetch" not in {thread.name for thread in threading.enumerate()}
        for _ in range(20_000):
            op = PendingOperation(3_600_000)
            purgatory.try_complete_else_watch(op, ("a", "b"))
            op.force_complete()
        for _ in range(11):
            purgatory.try_complete_else_watch(Noting(5), ("a", "b"))
        # What expires beside the purge may be fewer than the next purge waits for, each under two keys.
        await asyncio.wait_for(all_expired.wait(), 30)
        await _until_purged(purgatory, left=20)
        assert "ExpirationReaper-7-Fetch" in {thread.name for thread in threading.enumerate()}
        purgatory.shutdown()
        assert "ExpirationReaper-7-Fetch" not in {thread.name for thread in threading.enumerate()}

    asyncio.run(main())
    purged_on = {seen.threadName for seen in caplog.records if ": purged " in seen.getMessage()}
    assert purged_on == {"ExpirationReaper-7-Fetch"}
    assert expired_on == ["MainThread"] * 11


def test_a_purge_thread_does_not_start_after_the_shutdown(run):
    async def main(_loop, _timer):
        purgatory = DelayedOperationPurgatory("late", timer := LoopTimer("late", purge_thread=True))
        purgatory.shutdown()
        timer._purger.ask()
        assert "ExpirationReaper-0-late" not in {thread.name for thread in threading.enumerate()}

    run(main)


@pytest.mark.threads
def test_a_paused_process_is_not_purged_by_the_purge_thread():
    async def main():
        kept = []
        asked = asyncio.Event()

        def keep(callback):
            kept.append(callback)
            asked.set()

        timer = LoopTimer("real", run=keep, purge_thread=True)
        purgatory = DelayedOperationPurgatory("loop", timer, purge_interval=10)
        for _ in range(11):
            op = PendingOperation(3_600_000)
            purgatory.try_complete_else_watch(op, ("a", "b"))
            op.force_complete()
        async with asyncio.timeout(30):
            await asked.wait()
        assert purgatory.watched() == 22
        for callback in kept:
            callback()
        await _until_purged(purgatory)
        purgatory.shutdown()

    asyncio.run(main())


def test_completed_operations_within_the_purge_interval_do_not_wake_the_loop(run):
    async def main(loop, timer):
        purgatory = DelayedOperationPurgatory("loop", timer, purge_interval=10)
        operations = [PendingOperation(3_600_000) for _ in range(11)]
        for op in operations:
            purgatory.try_complete_else_watch(op, ("a", "b"))
        before = len(loop.timers)
        for op in operations[:10]:
            op.force_complete()
        await asyncio.sleep(60)
        assert (len(loop.timers), purgatory.watched()) == (before + 1, 22)  # the sleep itself
        operations[10].force_complete()
        await asyncio.sleep(0.199)
        assert purgatory.watched() == 22
        await asyncio.sleep(0.002)
        assert purgatory.watched() == 0
        await asyncio.sleep(3_600)
        assert purgatory.statistics().purges == 1
        for op in [PendingOperation(3_600_000) for _ in range(11)]:
            purgatory.try_complete_else_watch(op, ("a", "b"))
            op.force_complete()
        await asyncio.sleep(0.201)
        assert (purgatory.watched(), purgatory.statistics().purges) == (0, 2)

    run(main)


def test_a_purge_that_was_asked_for_is_not_repeated_after_an_earlier_round_did_it(run):
    async def main(loop, timer):
        purgatory = DelayedOperationPurgatory("loop", timer, purge_interval=1)
        operations = [PendingOperation(delay_ms) for delay_ms in (19, 3_600_000, 3_600_000)]
        for op in operations:
            purgatory.try_complete_else_watch(op, ("a", "b"))
        for op in operations[1:]:
            op.force_complete()
        await asyncio.sleep(0.018)
        assert purgatory.watched() == 6
        await asyncio.sleep(0.002)
        assert (purgatory.watched(), purgatory.statistics().purges) == (0, 1)
        await asyncio.sleep(1)
        assert purgatory.statistics().purges == 1

    run(main)


def test_completing_after_the_loop_was_closed_completes_all_the_same(jumping_loop):
    loop = jumping_loop()
    purgatory = DelayedOperationPurgatory("loop", LoopTimer("loop", loop), purge_interval=0)
    operation = PendingOperation(3_600_000)
    loop.call_soon(purgatory.try_complete_else_watch, operation, ("a",))
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    assert operation.force_complete() is True
    purgatory.shutdown()


class _Pausable:
    """Calls what it is given at once, or keeps it while it is paused: the `run` of a process."""

    def __init__(self):
        self.paused = False
        self.kept = []

    def __call__(self, callback):
        if self.paused:
            self.kept.append(callback)
        else:
            callback()

    def go_on(self):
        self.paused = False
        for callback in self.kept:
            callback()


def test_while_rounds_are_kept_nothing_leaves_the_wheel_and_then_all_expires_in_order(run):
    process, ran = _Pausable(), []

    async def main(loop, timer):
        for delay_ms in (1_500, 19, 450, 399, 8_000, 20, 400):
            timer.add(_Noting(delay_ms, ran))
        process.paused = True
        await asyncio.sleep(3)
        assert (ran, timer.size(), len(process.kept)) == ([], 7, 1)
        assert [placed.task.delay_ms for placed in timer.placements()][:1] == [19]
        process.go_on()
        assert [delay_ms for delay_ms, _, _ in ran] == [19, 20, 399, 400, 450, 1_500]
        await asyncio.sleep(6)

    run(main, run=process)
    assert [at_ms for _, at_ms, _ in ran] == [3_000] * 6 + [8_000]


def test_while_rounds_are_kept_the_loop_is_not_woken_up(run):
    process = _Pausable()

    async def main(loop, timer):
        timer.add(_Noting(20, []))
        process.paused = True
        await asyncio.sleep(1)
        before = len(loop.timers)
        timer.add(_Noting(5, []))
        await asyncio.sleep(3_600)
        assert (len(loop.timers), len(process.kept)) == (before + 1, 1)  # the sleep itself

    run(main, run=process)


@pytest.mark.parametrize("due", [False, True])
def test_while_rounds_are_kept_nothing_is_purged(run, due):
    process = _Pausable()

    async def main(loop, timer):
        purgatory = DelayedOperationPurgatory("loop", timer, purge_interval=10)
        operations = [PendingOperation(10 if due else 3_600_000) for _ in range(12)]
        for op in operations:
            purgatory.try_complete_else_watch(op, ("a", "b"))
        process.paused = True
        for op in operations[1:]:
            op.force_complete()
        await asyncio.sleep(1)
        assert (purgatory.watched(), purgatory.num_delayed()) == (24, 1)
        assert [parked.operation_id for parked in purgatory.parked()] == [1]
        process.go_on()
        assert (purgatory.watched(), purgatory.num_delayed()) == ((0, 0) if due else (2, 1))
        assert purgatory.statistics().purges == 1

    run(main, run=process)


def test_a_round_kept_beyond_shutdown_does_nothing(run, operation):
    process = _Pausable()

    async def main(loop, timer):
        purgatory = DelayedOperationPurgatory("loop", timer)
        op = operation(50)
        purgatory.try_complete_else_watch(op, ("a",))
        process.paused = True
        await asyncio.sleep(1)
        purgatory.shutdown()
        process.go_on()
        assert (op.completions, purgatory.watched(), loop.scheduled()) == (0, 0, [])

    run(main, run=process)


def test_a_task_that_ends_its_process_is_the_last_that_runs(run):
    process, ran = _Pausable(), []

    class Ending(_Noting):
        def run(self):
            super().run()
            process.paused = True

    async def main(loop, timer):
        for kind in (Ending, _Noting):
            timer.add(kind(10, ran))
        await asyncio.sleep(1)

    run(main, run=process)
    assert len(ran) == 1


def test_an_operation_that_its_second_try_completes_does_not_hide_the_next_of_its_bucket(run, operation):
    class Second(operation):
        def try_complete(self):
            self.completable = self.tries == 1
            return super().try_complete()

    async def main(loop, timer):
        purgatory = DelayedOperationPurgatory("loop", timer)
        assert purgatory.try_complete_else_watch(Second(50), ("a",)) is True
        waiting = operation(50)
        purgatory.try_complete_else_watch(waiting, ("a",))
        await asyncio.sleep(0.051)
        assert (waiting.completions, waiting.expirations) == (1, 1)
        purgatory.shutdown()

    run(main)


def test_after_shutdown_the_loop_has_no_timer_and_add_raises(run, operation):
    async def main(loop, timer):
        purgatory = DelayedOperationPurgatory("loop", timer)
        op = operation(50)
        purgatory.try_complete_else_watch(op, ("a",))
        purgatory.shutdown()
        purgatory.shutdown()
        assert loop.scheduled() == []
        await asyncio.sleep(1)
        assert op.completions == 0
        with pytest.raises(RuntimeError, match="timer loop is shut down"):
            timer.add(_Noting(5, []))

    run(main)


def test_shutdown_may_complete_what_is_parked(run, operation):
    async def main(loop, timer):
        purgatory = DelayedOperationPurgatory("loop", timer)
        op = operation(50)
        purgatory.try_complete_else_watch(op, ("a",))
        purgatory.shutdown(complete_parked=True)
        assert (op.completions, op.expirations) == (1, 0)

    run(main)


def test_shutdown_after_the_loop_was_closed_does_nothing_more(jumping_loop):
    loop = jumping_loop()
    timer = LoopTimer("closed", loop)
    loop.close()
    timer.shutdown()
    assert timer.size() == 0


@pytest.mark.threads
@pytest.mark.parametrize("uvloop", [False, True])
def test_other_threads_may_add_in_real_time_and_nothing_runs_early(uvloop):
    factory = pytest.importorskip("uvloop").new_event_loop if uvloop else asyncio.new_event_loop
    per_thread, threads = 100, 3
    ran = []
    early = []

    class Task(TimerTask):
        def __init__(self, delay_ms, timer, done):
            super().__init__(delay_ms)
            self._timer = timer
            self._done = done

        def run(self):
            late_ms = self._timer.clock.now_ms() - self.expiration_ms
            if late_ms < 0:
                early.append(late_ms)
            ran.append(self)
            if len(ran) == per_thread * threads:
                self._done.set()

    async def main():
        timer = LoopTimer("real")
        done = asyncio.Event()

        def add():
            for number in range(per_thread):
                timer.add(Task(number % 50, timer, done))

        await asyncio.gather(*(asyncio.to_thread(add) for _ in range(threads)))
        async with asyncio.timeout(30):
            await done.wait()
        assert timer.size() == 0
        timer.shutdown()

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())
    assert early == []


def test_the_clock_is_the_loops_unless_one_is_given_or_the_loop_has_none(jumping_loop):
    given = VirtualClock()
    virtual, real = jumping_loop(), asyncio.new_event_loop()
    try:
        assert LoopTimer("virtual", virtual).clock is virtual.clock
        assert LoopTimer("given", virtual, given).clock is given
        assert isinstance(LoopTimer("real", real).clock, SystemClock)
    finally:
        virtual.close()
        real.close()
