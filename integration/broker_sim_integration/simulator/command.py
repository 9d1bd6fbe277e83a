"""Which `broker-sim` is compared: that of this Python, or another."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SimulatorCommand:
    """A command that takes the arguments of `broker-sim`, and why it was chosen."""

    arguments: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        """Return the command as a shell takes it."""
        return shlex.join(self.arguments)


def own_command() -> SimulatorCommand:
    """Return the `broker-sim` of this interpreter."""
    # -P: not what happens to be in the working directory.
    return SimulatorCommand((sys.executable, "-P", "-m", "broker_sim"), "of this Python")


def select_simulator(asked: str) -> SimulatorCommand:
    """Return the command for `asked`: own, or a command line. Raises ValueError for an empty one."""
    if asked == "own":
        return own_command()
    arguments = tuple(shlex.split(asked))
    if not arguments:
        raise ValueError("--simulator: give own or a command")
    return SimulatorCommand(arguments, "asked for")
