"""Checks of configurations that limit what may be set for a kind of groups; mirrors `validate` of their classes."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final

from broker_sim.errors import ConfigError

HEARTBEAT_AND_SESSION: Final = (
    ("min_heartbeat_interval_ms", "heartbeat_interval_ms", "max_heartbeat_interval_ms"),
    ("min_session_timeout_ms", "session_timeout_ms", "max_session_timeout_ms"),
    ("min_assignment_interval_ms", "assignment_interval_ms", "max_assignment_interval_ms"),
)
"""What every kind has, behind its prefix, in rows as `check_limits` takes them."""


def check_limits(config: Any, prefix: str, rows: Iterable[tuple[str, ...]]) -> None:
    """Raise ConfigError if a configuration is above the next one of its row; `prefix` is in front of each."""
    for row in rows:
        names = [prefix + name for name in row]
        for low, high in pairwise(names):
            if getattr(config, low) > getattr(config, high):
                raise _unfit(config, low, "must be at most", high)


def check_heartbeat_interval(config: Any, prefix: str) -> None:
    """Raise ConfigError if members would be told to be silent for longer than they may."""
    heartbeat, session = f"{prefix}heartbeat_interval_ms", f"{prefix}session_timeout_ms"
    if getattr(config, heartbeat) >= getattr(config, session):
        raise _unfit(config, heartbeat, "must be less than", session)


def _unfit(config: Any, name: str, relation: str, other: str) -> ConfigError:
    left, right = (f"{n.replace('_', '.')}={getattr(config, n)}" for n in (name, other))
    return ConfigError(f"{left} {relation} {right}")
