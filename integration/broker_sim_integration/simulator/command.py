"""Which `broker-sim` is compared: that of this Python, or another."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass

from broker_sim.protocol.release import DEFAULT_RELEASE


@dataclass(frozen=True, slots=True)
class SimulatorCommand:
    """A command that takes the options of `broker-sim run`, and why it was chosen."""

    arguments: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        """Return the command as a shell takes it."""
        return shlex.join(self.arguments)


def own_command(release: str = DEFAULT_RELEASE) -> SimulatorCommand:
    """Return how the `broker-sim` of this interpreter runs a cluster of that release."""
    # -P: not what happens to be in the working directory.
    return SimulatorCommand((sys.executable, "-P", "-m", "broker_sim", *_run(release)), "of this Python")


def select_simulator(asked: str, release: str = DEFAULT_RELEASE) -> SimulatorCommand:
    """Return how `asked` runs a cluster of that release: own, or a command line in place of `broker-sim`.

    Raises ValueError for an empty one.
    """
    if asked == "own":
        return own_command(release)
    arguments = tuple(shlex.split(asked))
    if not arguments:
        raise ValueError("--simulator: give own or a command")
    return SimulatorCommand((*arguments, *_run(release)), "asked for")


def _run(release: str) -> tuple[str, ...]:
    return ("run", f"--as-version={release}")
