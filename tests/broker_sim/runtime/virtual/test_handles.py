"""Handles of a virtual loop are asyncio's: what they show, cancel and remember."""

from __future__ import annotations

import asyncio
import contextvars

import pytest

from broker_sim.runtime.virtual import VirtualEventLoop

COLOUR = contextvars.ContextVar("COLOUR", default="none")


def nothing() -> None: ...


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
    given = contextvars.copy_context()
    given.run(COLOUR.set, "red")
    loop.call_soon(lambda: seen.append(COLOUR.get()), context=given)
    loop.call_soon(lambda: (seen.append(COLOUR.get()), COLOUR.set("green")))
    loop.call_later(1, lambda: seen.append(COLOUR.get()), context=given)
    while loop.step():
        pass
    assert seen == ["red", "none", "red"]
    assert COLOUR.get() == "none"
    loop.close()
