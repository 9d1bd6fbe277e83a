"""The error of the simulator's process; its message is one line with the remedy."""

from __future__ import annotations


class SimulatorError(RuntimeError):
    """The simulator did not start, ended by itself, or did not carry out a verb."""
