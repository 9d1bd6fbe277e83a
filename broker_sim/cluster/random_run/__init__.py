"""Runs with random faults in virtual time: schedule, run, checks, and a smaller schedule that still fails.

run_schedule(draw_schedule(seed=7))
"""

from broker_sim.cluster.random_run.faults.action import (
    CONTROLLER,
    FOLLOWER,
    GROUPS,
    LEADER,
    THIRD,
    TRANSACTIONS,
    Action,
)
from broker_sim.cluster.random_run.run import RunFailedError, RunSummary, run_schedule
from broker_sim.cluster.random_run.schedule import (
    ACKS_ALL,
    FLUSHED,
    LYING,
    UNFLUSHED,
    Producer,
    Schedule,
    draw_schedule,
)

__all__ = [
    "ACKS_ALL",
    "CONTROLLER",
    "FLUSHED",
    "FOLLOWER",
    "GROUPS",
    "LEADER",
    "LYING",
    "THIRD",
    "TRANSACTIONS",
    "UNFLUSHED",
    "Action",
    "Producer",
    "RunFailedError",
    "RunSummary",
    "Schedule",
    "draw_schedule",
    "run_schedule",
]
