"""Claims about requests that share one timer, against deadlines at d - 1, d and d + 1."""

import random

from broker_sim_purgatory import VirtualClock

from broker_sim.runtime.inter_broker import RequestTimeouts

TIMEOUT_MS = 100


class Bench:
    """Requests with a timeout of 100 ms; the test plays time."""

    def __init__(self):
        self.clock = VirtualClock()
        self.timers = []
        self.timed_out = []
        self.steps = 0
        self.timeouts = RequestTimeouts(self._call_later, self.clock, TIMEOUT_MS)

    def _call_later(self, delay_ms, callback):
        self.timers.append((self.clock.now_ms() + delay_ms, callback))

    def begin(self, name):
        return self.timeouts.begin(lambda: self.timed_out.append((self.clock.now_ms(), name)))

    def advance_to(self, now_ms):
        while self.timers and min(due_ms for due_ms, _ in self.timers) <= now_ms:
            timer = min(self.timers, key=lambda timer: timer[0])
            self.timers.remove(timer)
            self.clock.advance_to(timer[0])
            timer[1]()
            self.steps += 1
            assert self.steps < 10_000, "time stands still"
        self.clock.advance_to(now_ms)


def test_request_without_an_answer_times_out_once_at_its_deadline():
    bench = Bench()
    number = bench.begin("a")
    bench.advance_to(99)
    assert bench.timed_out == []
    bench.advance_to(100)
    assert bench.timed_out == [(100, "a")]
    assert bench.timeouts.end(number) is False
    bench.advance_to(1_000)
    assert bench.timed_out == [(100, "a")]


def test_answered_request_does_not_time_out_and_ends_once():
    bench = Bench()
    number = bench.begin("a")
    assert bench.timeouts.end(number) is True
    assert bench.timeouts.end(number) is False
    bench.advance_to(1_000)
    assert bench.timed_out == []
    assert bench.timers == []


def test_request_that_began_at_a_timeout_has_its_whole_time():
    bench = Bench()
    bench.timeouts.begin(lambda: bench.begin("again"))
    bench.advance_to(199)
    assert bench.timed_out == []
    bench.advance_to(201)
    assert bench.timed_out == [(200, "again")]


def test_many_requests_share_one_timer_and_keep_their_own_deadlines():
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    bench = Bench()
    waiting, now_ms = [], 0
    for name in range(500):
        now_ms += rng.choice((0, 0, 1, 3, 99, 100, 101))
        bench.advance_to(now_ms)
        number = bench.begin(name)
        if rng.random() < 0.5:
            assert bench.timeouts.end(number)
        else:
            waiting.append((now_ms + TIMEOUT_MS, name))
        assert len(bench.timers) == 1
    bench.advance_to(now_ms + TIMEOUT_MS)
    assert bench.timed_out == waiting
    assert bench.timers == []
