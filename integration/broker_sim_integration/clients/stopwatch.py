"""The stopwatch of the comparison: the time from a request to the response of a real or simulated broker.

It only measures, from outside, so it reads the machine's finest clock directly. The brokers' `Clock`
counts whole milliseconds.
"""

from __future__ import annotations

import threading
from time import perf_counter_ns
from typing import Self

_NS_PER_MS = 1_000_000
_NEVER = threading.Event()


class Moment(float):
    """The time (`now_ms`) at which an action ended or a state was seen, and the earliest time of its begin."""

    __slots__ = ("began_ms",)

    began_ms: float

    def __new__(cls, ended_ms: float, *, began_ms: float) -> Self:
        """Return the time `ended_ms` of an action that began at `began_ms`."""
        moment = super().__new__(cls, ended_ms)
        moment.began_ms = began_ms
        return moment


def now_ms() -> float:
    """Return monotonic milliseconds; only differences between two readings are meaningful."""
    return perf_counter_ns() / _NS_PER_MS


def pause_ms(duration_ms: float) -> None:
    """Block the calling thread: the time between two steps of a scenario is part of its claim."""
    _NEVER.wait(max(0.0, duration_ms) / 1000)
