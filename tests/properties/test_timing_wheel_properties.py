"""The timer against a dictionary of deadlines: tasks are added, moved, cancelled and run."""

from broker_sim_purgatory import InlineExecutor, SystemTimer, TimerTask, VirtualClock
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

DELAYS_MS = st.one_of(
    st.integers(-3, 60),
    st.integers(0, 500),
    st.integers(0, 200_000),
    st.sampled_from([19, 20, 21, 399, 400, 401, 7_999, 8_000, 8_001, 2**40]),
)
JUMPS_MS = st.one_of(st.integers(0, 3), st.integers(0, 50), st.integers(0, 50_000))


class _Task(TimerTask):
    def __init__(self, delay_ms, number, ran):
        super().__init__(delay_ms)
        self.number = number
        self._ran = ran

    def run(self):
        self._ran.append(self.number)


class WheelAgainstDictionary(RuleBasedStateMachine):
    """The model: a task is due at the start of the tick that its deadline lies in."""

    def __init__(self):
        super().__init__()
        self.ran = []
        self.tasks = []
        self.due_ms = {}

    @initialize(
        start_ms=st.integers(0, 100_000),
        tick_ms=st.sampled_from([1, 1, 3, 20]),
        wheel_size=st.sampled_from([2, 3, 20, 64]),
    )
    def start(self, start_ms, tick_ms, wheel_size):
        self.clock = VirtualClock(start_ms)
        self.tick_ms = tick_ms
        self.timer = SystemTimer("model", self.clock, InlineExecutor(), tick_ms, wheel_size)

    def _added(self, task):
        deadline_ms = self.clock.now_ms() + task.delay_ms
        self.due_ms[task.number] = deadline_ms - deadline_ms % self.tick_ms
        if self.ran:
            # It ran within add: only a task that is due by now may do so.
            assert self.ran == [task.number]
            assert self.due_ms.pop(task.number) <= self.clock.now_ms()
            self.ran.clear()

    @rule(delay_ms=DELAYS_MS)
    def add(self, delay_ms):
        task = _Task(delay_ms, len(self.tasks), self.ran)
        self.tasks.append(task)
        self.timer.add(task)
        self._added(task)

    @precondition(lambda self: self.tasks)
    @rule(data=st.data(), delay_ms=DELAYS_MS)
    def add_again(self, data, delay_ms):
        task = data.draw(st.sampled_from(self.tasks), label="task")
        task.delay_ms = delay_ms
        self.timer.add(task)
        self._added(task)

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def cancel(self, data):
        task = data.draw(st.sampled_from(self.tasks), label="task")
        task.cancel()
        self.due_ms.pop(task.number, None)

    @rule(jump_ms=JUMPS_MS)
    def time_passes_unnoticed(self, jump_ms):
        self.clock.advance(jump_ms)

    @rule(jump_ms=JUMPS_MS)
    def advance(self, jump_ms):
        self.clock.advance(jump_ms)
        self.timer.advance_clock(0)
        now_ms = self.clock.now_ms()
        due = {number: at for number, at in self.due_ms.items() if at <= now_ms}
        assert sorted(self.ran) == sorted(due)
        ran_at = [due[number] for number in self.ran]
        assert ran_at == sorted(ran_at)
        self.ran.clear()
        for number in due:
            del self.due_ms[number]

    @rule()
    def step_to_the_next_expiration(self):
        next_ms = self.timer.next_expiration_ms()
        if next_ms is None:
            assert not self.due_ms
            return
        assert next_ms <= min(self.due_ms.values())
        before = self.timer.placements()
        self.clock.advance_to(max(next_ms, self.clock.now_ms()))
        assert self.timer.advance_clock(0) is True
        assert self.timer.placements() != before
        for number in self.ran:
            assert self.due_ms.pop(number) <= self.clock.now_ms()
        self.ran.clear()
        assert all(at > self.clock.now_ms() for at in self.due_ms.values())

    @invariant()
    def the_wheel_holds_exactly_the_waiting_tasks(self):
        if not hasattr(self, "timer"):
            return
        assert self.timer.size() == len(self.due_ms)
        placed = sorted(placed.task.number for placed in self.timer.placements())
        assert placed == sorted(self.due_ms)


WheelAgainstDictionary.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestWheelAgainstDictionary = WheelAgainstDictionary.TestCase
