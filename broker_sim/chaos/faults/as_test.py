"""Prints a schedule that fails as a test that can be pasted into a file and run."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker_sim.chaos.faults.schedule import FaultSchedule


def as_test(schedule: FaultSchedule, invariant: str, imports: str, run: str) -> str:
    """Return the source of a test: `run` is its last lines, which use `schedule`."""
    return (
        f"{imports}\n\n\n"
        f"def test_seed_{schedule.seed}():\n"
        f'    """It failed: {invariant}."""\n'
        f'    schedule = Schedule.parse("""\n{textwrap.indent(str(schedule), " " * 8)}\n    """)\n'
        f"{textwrap.indent(run, ' ' * 4)}\n"
    )
