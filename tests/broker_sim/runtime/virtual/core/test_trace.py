from __future__ import annotations

from broker_sim.runtime.virtual import LoopClock, LoopTrace
from broker_sim.runtime.virtual.core.trace import BATCH_EVENTS


def trace_of(*events, ask_each_time=False):
    clock = LoopClock()
    trace = LoopTrace(clock, keep_events=3)
    for number, event in enumerate(events):
        clock.move_to_ns(number * 1_000_000)
        trace.record(*event)
        if ask_each_time:
            trace.digest()
    return trace


def test_digest_follows_from_events_and_their_times():
    events = [("a", 1), ("b", 2)]
    assert trace_of(*events).digest() == trace_of(*events).digest()
    assert trace_of(*events).digest() != trace_of(*events[::-1]).digest()
    assert trace_of(*events).digest() != trace_of(("a", 1), (), ("b", 2)).digest()


def test_digest_does_not_depend_on_the_time_of_the_call():
    events = [("event", number) for number in range(2 * BATCH_EVENTS + 5)]
    assert trace_of(*events).digest() == trace_of(*events, ask_each_time=True).digest()


def test_last_events_are_kept_as_text():
    trace = trace_of(*[("event", number) for number in range(5)])
    assert trace.recent == ["0.002000 event 2", "0.003000 event 3", "0.004000 event 4"]
    trace.record("last")
    assert trace.recent[-1] == "0.004000 last"
    assert LoopTrace(LoopClock(), keep_events=0).recent == []
