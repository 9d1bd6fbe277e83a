"""A rate per second over a window of samples; mirrors `Rate`, `SampledStat` and `QuotaUtils`.

A sample collects values for one sample length from its start; the next sample starts with the next record,
however late. Samples are reused in turn; there is one more than configured, because the window begins
in the middle of the oldest. With 3 samples of 1 s:

    recorded            samples (start: value)      window    rate per second
    10 at 0 ms          0: 10                       2000 ms   5    two missing samples count as elapsed
    20 at 900 ms        0: 30                       2900 ms   10.3 30 in 2.9 s
    30 at 1000 ms       0: 30, 1000: 30             2000 ms   30   one sample elapsed, one missing
    nothing at 3900 ms  1000: 30, and 3900: 0       2900 ms   10.3 the first sample's last value is 3 s old

`throttle_time_ms` is the time in which the excess would have accumulated at the bound; after it the
rate is back at the bound.
"""

from __future__ import annotations

from math import floor
from typing import Final, NamedTuple

MS_PER_SECOND: Final = 1_000
_HALF: Final = 0.5
_MAX_INT: Final = 2**31 - 1


class Window(NamedTuple):
    """Number of samples of a rate, and their length in ms."""

    samples: int
    sample_ms: int

    @property
    def whole_samples_s(self) -> float:
        """Length of all samples but the current one, in seconds."""
        return (self.samples - 1) * self.sample_ms / MS_PER_SECOND


class _Sample:
    __slots__ = ("last_event_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = now_ms
        self.last_event_ms = now_ms
        self.value = 0.0


class Rate:
    """One measured rate. All `now_ms` must come from the same clock and never go back."""

    __slots__ = ("_current", "_samples", "_window")

    def __init__(self, window: Window) -> None:
        self._window = window
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Record a value; a negative one undoes an earlier value."""
        sample = self._current_sample(now_ms)
        if now_ms - sample.start_ms >= self._window.sample_ms:
            sample = self._advance(now_ms)
        sample.value += value
        sample.last_event_ms = now_ms

    def measure(self, now_ms: int) -> float:
        """Return the rate per second."""
        self._purge(now_ms)
        return self._total() * MS_PER_SECOND / self.window_size_ms(now_ms)

    def throttle_time_ms(self, bound: float, now_ms: int) -> int:
        """Return the time in ms until the rate falls to the bound without new values; 0 if it is not above."""
        self._purge(now_ms)
        total = self._total()
        # Fast path, since no window is smaller: each accepted connection calls this, mostly far below its bound.
        if total <= bound * self._window.whole_samples_s:
            return 0
        window_ms = self.window_size_ms(now_ms)
        value = total * MS_PER_SECOND / window_ms
        if value <= bound:
            return 0
        return min(floor((value - bound) / bound * window_ms + _HALF), _MAX_INT)

    def window_size_ms(self, now_ms: int) -> int:
        """Return the window that `measure` divides by, in ms; call `_purge` first."""
        elapsed_ms = self.elapsed_ms(now_ms)
        missing = self._window.samples - 1 - elapsed_ms // self.sample_ms
        return max(elapsed_ms + max(missing, 0) * self.sample_ms, 1)

    @property
    def sample_ms(self) -> int:
        """Length of one sample in ms."""
        return self._window.sample_ms

    def elapsed_ms(self, now_ms: int) -> int:
        """Return the age of the oldest sample in ms."""
        self._current_sample(now_ms)
        return now_ms - min([sample.start_ms for sample in self._samples])

    def _total(self) -> float:
        return sum([sample.value for sample in self._samples])

    def _current_sample(self, now_ms: int) -> _Sample:
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        return self._samples[self._current]

    def _advance(self, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (self._window.samples + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]

    def _purge(self, now_ms: int) -> None:
        """Reset samples whose last value is older than the window."""
        age_ms = self._window.samples * self._window.sample_ms
        for sample in self._samples:
            if now_ms - sample.last_event_ms >= age_ms:
                sample.reset(now_ms)
