"""What the tests of the purgatory package share: virtual time and small tasks and operations."""

import asyncio
import math
import selectors
import sys
import threading
from collections.abc import Callable

import pytest
from broker_sim_purgatory import DelayedOperation, InlineExecutor, SystemTimer, TimerTask, VirtualClock
from broker_sim_purgatory._delay_queue import DelayQueue
from broker_sim_purgatory._timer_task_entry import TaskOwner
from broker_sim_purgatory._timing_wheel import DUE, TimingWheel

PATIENCE_S = 60


class RecordingTask(TimerTask):
    """Notes in `ran` that it has run, as (name, time)."""

    __slots__ = ("_clock", "_ran", "name")

    def __init__(self, delay_ms, name, clock, ran):
        super().__init__(delay_ms)
        self.name = name
        self._clock = clock
        self._ran = ran

    def run(self):
        self._ran.append((self.name, self._clock.now_ms()))


class IdleTask(TimerTask):
    """Does nothing."""

    def run(self):
        pass


class SwitchedOperation(DelayedOperation):
    """Can be completed once `completable` is set; counts its calls."""

    __slots__ = ("completable", "completions", "expirations", "tries")

    def __init__(self, delay_ms=100_000, lock=None):
        super().__init__(delay_ms, lock)
        self.completable = False
        self.tries = 0
        self.completions = 0
        self.expirations = 0

    def try_complete(self):
        self.tries += 1
        return self.completable and self.force_complete()

    def on_complete(self):
        self.completions += 1

    def on_expiration(self):
        self.expirations += 1


class _JumpingSelector(selectors.DefaultSelector):
    """Moves the clock to what is due next instead of waiting for it."""

    def __init__(self, clock):
        super().__init__()
        self._clock = clock

    def select(self, timeout=None):
        ready = super().select(0)
        assert ready or timeout is not None, "nothing is scheduled: the loop would wait for ever"
        if not ready and timeout > 0:
            # Rounded, because a timeout is the difference of two floats of seconds.
            self._clock.advance(math.ceil(round(timeout * 1_000, 3)))
        return ready


class JumpingLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time, on one thread, with a `clock` as LoopTimer looks for it."""

    def __init__(self):
        self.clock = VirtualClock()
        self.timers = []
        super().__init__(_JumpingSelector(self.clock))
        self._clock_resolution = 1e-6

    def time(self):
        return self.clock.now_ms() / 1_000

    def call_later(self, delay, callback, *args, **kwargs):
        self.timers.append(super().call_later(delay, callback, *args, **kwargs))
        return self.timers[-1]

    def scheduled(self):
        """Return the scheduled timers that have not run."""
        return [each for each in self.timers if not each.cancelled() and each in self._scheduled]


@pytest.fixture
def frequent_switches():
    """Let threads take turns so often that they meet inside every critical section."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def together(frequent_switches):
    """Run functions at the same time, each on a thread; raises what one of them raised."""

    def run(*functions):
        barrier = threading.Barrier(len(functions))
        failures = []

        def call(function):
            barrier.wait(PATIENCE_S)
            try:
                function()
            except BaseException as failure:  # noqa: BLE001 - it is raised by the test below
                failures.append(failure)

        threads = [threading.Thread(target=call, args=(each,)) for each in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert not any(thread.is_alive() for thread in threads), "deadlock"
        if failures:
            raise failures[0]

    return run


@pytest.fixture
def jumping_loop() -> type[JumpingLoop]:
    """Make loops in virtual time: `jumping_loop()`."""
    return JumpingLoop


@pytest.fixture
def clock():
    return VirtualClock()


@pytest.fixture
def logged(caplog):
    """Return a function that lists what the purgatory has logged, whatever else is in this process."""
    return lambda: [record for record in caplog.records if record.name.startswith("broker_sim_purgatory.")]


@pytest.fixture
def timer(clock):
    """Make a timer in virtual time that runs expired tasks on the spot."""
    return SystemTimer("test", clock, InlineExecutor())


@pytest.fixture
def ran() -> list[tuple[object, int]]:
    """List what the tasks of `task` have run, as (name, time)."""
    return []


@pytest.fixture
def task(clock, ran) -> Callable[..., RecordingTask]:
    """Make a task with a delay; its default name is the delay."""

    def make(delay_ms, name=None):
        return RecordingTask(delay_ms, delay_ms if name is None else name, clock, ran)

    return make


@pytest.fixture
def operation() -> type[SwitchedOperation]:
    """Make operations: `operation(delay_ms=100_000, lock=None)`."""
    return SwitchedOperation


@pytest.fixture
def wheel() -> Callable[..., TimingWheel]:
    """Make a bare wheel: `wheel(tick_ms=1, wheel_size=20, start_ms=0)`."""

    def make(tick_ms=1, wheel_size=20, start_ms=0):
        owner = TaskOwner()
        queue = DelayQueue(VirtualClock(start_ms), owner.lock)
        return TimingWheel(tick_ms, wheel_size, start_ms, owner, queue)

    return make


@pytest.fixture
def place() -> Callable[[TimingWheel, int], tuple[int, int, int] | None]:
    """Add a task due at a time to a wheel: (level, bucket, start of the bucket), None if refused."""

    def add(wheel, expiration_ms):
        entry = IdleTask(0)
        entry.expiration_ms = expiration_ms
        if wheel.add(entry) == DUE:
            return None
        return next(
            (level.level, bucket.index, bucket.expiration_ms)
            for level in wheel.levels()
            for bucket in level.used_buckets()
            if entry in bucket
        )

    return add


@pytest.fixture
def placement(timer) -> Callable[[TimerTask], tuple[int, int] | None]:
    """Return the place of a task in `timer`: (level, bucket), None if it does not wait."""

    def find(task):
        found = [(level, bucket) for found, level, bucket in timer.placements() if found is task]
        return found[0] if found else None

    return find


@pytest.fixture
def step(clock, timer) -> Callable[[int], None]:
    """Move the time and expire what is due: `step(to_ms)`."""

    def move(to_ms):
        clock.advance_to(to_ms)
        timer.advance_clock(0)

    return move
