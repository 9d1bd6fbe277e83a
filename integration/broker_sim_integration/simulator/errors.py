"""The error of the simulator's process; its message is one line that says what to do."""

from __future__ import annotations


class SimulatorError(RuntimeError):
    """The simulator did not start, ended by itself, or did not do what it was asked for."""
