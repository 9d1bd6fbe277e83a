"""Which `broker-sim` is compared: that of this Python, the native build of this checkout, or another."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
NATIVE = ".venv-compiled"
"""Where `make compiled` leaves the native build."""
PACKAGES = ("broker_sim", "purgatory/broker_sim_purgatory")
SOURCES = ("*.py", "*.jsonl")


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


def select_simulator(asked: str, *, checkout: Path = CHECKOUT) -> SimulatorCommand:
    """Return the command for `asked`: own, auto or a command line.

    `auto` takes the native build if it was made of the sources of this checkout, else `own`. Raises
    ValueError for an empty command.
    """
    if asked == "own":
        return own_command()
    if asked == "auto":
        return _best(checkout)
    arguments = tuple(shlex.split(asked))
    if not arguments:
        raise ValueError("--simulator: give auto, own or a command")
    return SimulatorCommand(arguments, "asked for")


def _best(checkout: Path) -> SimulatorCommand:
    native = checkout / NATIVE
    command = native / "bin" / "broker-sim"
    if not command.exists():
        return SimulatorCommand(own_command().arguments, "of this Python; a native build: make compiled")
    installed = next(native.glob("lib/python*/site-packages"), native)
    if _sources(installed) != _sources(checkout):
        return SimulatorCommand(
            own_command().arguments, f"of this Python; {NATIVE} was built from other sources: make compiled"
        )
    return SimulatorCommand((str(command),), f"the native build in {NATIVE}")


def _sources(root: Path) -> dict[Path, bytes]:
    return {
        path.relative_to(root): path.read_bytes()
        for package in PACKAGES
        for pattern in SOURCES
        for path in (root / package).rglob(pattern)
    }
