"""How long anything may last that people ask for: a fault's delay, a wait, a slow link. Kafka has no counterpart."""

from __future__ import annotations

from typing import Final

LONGEST_MS: Final = 2**31 - 1
"""25 days. Answers that tell a throttle time have no room for a longer one."""


def checked_ms(name: str, value: int) -> int:
    """Return the duration. Raises ValueError for a negative one, and for one of more than 25 days."""
    _check(name, value, LONGEST_MS)
    return value


def checked_s(name: str, value: float) -> float:
    """Return a duration in seconds. Raises ValueError as `checked_ms` does."""
    _check(name, value, LONGEST_MS / 1_000)
    return value


def _check(name: str, value: float, longest: float) -> None:
    if value < 0:
        raise ValueError(f"{name} must be at least 0, not {value}")
    if not value <= longest:  # NaN is not
        raise ValueError(f"{name} must be at most {longest}, not {value}")
