"""Runs with random faults in virtual time: schedules, runs, checks and shrinking.

run_schedule(draw_schedule(seed=7))
"""

from broker_sim.chaos.faults.action import Action
from broker_sim.chaos.random_run.run import RunFailedError, RunSummary, run_schedule
from broker_sim.chaos.random_run.schedule import FLUSHED, LYING, UNFLUSHED, Schedule, draw_schedule

__all__ = [
    "FLUSHED",
    "LYING",
    "UNFLUSHED",
    "Action",
    "RunFailedError",
    "RunSummary",
    "Schedule",
    "draw_schedule",
    "run_schedule",
]
