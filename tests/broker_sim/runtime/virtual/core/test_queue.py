"""Handles and timers of a virtual loop: those of asyncio, in the order of their times and of their making."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_sim.runtime.virtual import VirtualEventLoop
from broker_sim.runtime.virtual.core.queue import TimerQueue

COLOUR = contextvars.ContextVar("COLOUR", default="none")


def nothing() -> None: ...


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=400))
def test_queue_behaves_like_a_sorted_list(plan):
    loop = VirtualEventLoop()
    queue = loop._scheduled = TimerQueue()
    expected, handles = [], []
    for number, (due_ns, cancelled) in enumerate(plan):
        handle = asyncio.TimerHandle(due_ns, lambda: None, (number,), loop)
        queue.push(due_ns, handle)
        handles.append((handle, cancelled))
        if not cancelled:
            expected.append((due_ns, number))
    for handle, cancelled in handles:
        if cancelled:
            handle.cancel()
            handle.cancel()
    assert len(queue) == len(expected)
    ready = deque()
    got = []
    while (due_ns := queue.next_due_ns()) is not None:
        queue.pop_due(due_ns, ready)
        got += [(due_ns, handle._args[0]) for handle in ready]
        ready.clear()
    assert got == sorted(expected)
    assert len(queue) == 0


def test_throwing_cancelled_timers_out_keeps_the_count_of_the_others():
    loop = VirtualEventLoop()
    handles = [loop.call_later(3600, print) for _ in range(300)]
    for number, handle in enumerate(handles[:250], 1):
        handle.cancel()
        assert len(loop._scheduled) == 300 - number


def test_throwing_cancelled_timers_out_keeps_the_first_one():
    loop = VirtualEventLoop()
    loop.call_later(1, print)
    for _ in range(200):
        loop.call_later(3600, print).cancel()
    assert loop.next_due_ns() == 1_000_000_000


def test_cancelled_timers_do_not_pile_up():
    loop = VirtualEventLoop()
    for _ in range(10_000):
        loop.call_later(3600, print).cancel()
    assert len(loop._scheduled._heap) <= 101


def test_cancelling_a_timer_that_ran_changes_nothing():
    loop = VirtualEventLoop()
    handle = loop.call_later(1, lambda: None)
    loop.call_later(2, lambda: None)
    loop.step()
    handle.cancel()
    assert len(loop._scheduled) == 1


@pytest.mark.parametrize("debug", [False, True])
def test_handles_are_those_of_asyncio(debug):
    loop = VirtualEventLoop()
    loop.set_debug(debug)
    ours = loop.call_soon(nothing), loop.call_later(2, nothing)
    theirs = asyncio.Handle(nothing, (), loop), asyncio.TimerHandle(2.0, nothing, (), loop)
    for mine, other in zip(ours, theirs, strict=True):
        text = repr(other).replace("<", "<Virtual", 1)
        assert repr(mine)[:40] == text[:40]
        assert ("created at" in repr(mine)) is debug
        mine.cancel()
        assert mine.cancelled()
        assert "cancelled" in repr(mine)
    assert ours[1].when() == 2.0
    assert ours[1] == ours[1]
    loop.close()


def test_callback_has_the_given_context_or_a_copy_of_the_present_one():
    loop, seen = VirtualEventLoop(), []
    red = contextvars.copy_context()
    red.run(COLOUR.set, "red")
    loop.call_soon(lambda: seen.append(COLOUR.get()), context=red)
    loop.call_soon(lambda: (seen.append(COLOUR.get()), COLOUR.set("green")))
    loop.call_later(1, lambda: seen.append(COLOUR.get()), context=red)
    while loop.step():
        pass
    assert seen == ["red", "none", "red"]
    assert COLOUR.get() == "none"
    loop.close()
