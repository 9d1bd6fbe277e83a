"""Faults from a seed for users' applications: workers are killed, frozen and cut off, brokers fail.

A run is one test under one schedule (`run_chaos`); schedules are drawn from seeds (`draw_schedule`),
one that fails is made smaller (`shrink`) and told (`report`). Kafka has no counterpart.
"""

from broker_sim.chaos.chaos import Chaos, InvariantError
from broker_sim.chaos.faults.action import Action, ScheduleError
from broker_sim.chaos.run import Outcome, run_chaos
from broker_sim.chaos.schedule import Schedule, draw_schedule
from broker_sim.chaos.worker import Worker

__all__ = [
    "Action",
    "Chaos",
    "InvariantError",
    "Outcome",
    "Schedule",
    "ScheduleError",
    "Worker",
    "draw_schedule",
    "run_chaos",
]
