"""The compared `broker-sim`: that of this Python, or another."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass

from broker_sim.protocol.release import DEFAULT_RELEASE


@dataclass(frozen=True, slots=True)
class SimulatorCommand:
    """A command that takes the options of `broker-sim run`, and the reason for its selection."""

    arguments: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        """Return the command in the syntax of a shell."""
        return shlex.join(self.arguments)


def own_command(release: str = DEFAULT_RELEASE) -> SimulatorCommand:
    """Return the command by which the `broker-sim` of this interpreter runs a cluster of `release`."""
    # -P: ignore packages in the working directory.
    return SimulatorCommand((sys.executable, "-P", "-m", "broker_sim", *_run(release)), "of this Python")


def select_simulator(command: str, release: str = DEFAULT_RELEASE) -> SimulatorCommand:
    """Return the command that runs a cluster of `release`: own, or a command line in place of `broker-sim`.

    Raise ValueError for an empty one.
    """
    if command == "own":
        return own_command(release)
    arguments = tuple(shlex.split(command))
    if not arguments:
        raise ValueError("--simulator: give own or a command")
    return SimulatorCommand((*arguments, *_run(release)), "as requested")


def _run(release: str) -> tuple[str, ...]:
    return ("run", f"--as-version={release}")
