"""Faults from a seed for users' applications: workers are killed, frozen and cut off, brokers fail.

settings        what a search runs: from it follow the marker, options of commands and printed tests
search          the search: tests of applications, seed after seed, and what fails made small
schedule        what is done in one run, as data and as text, drawn from a seed
run             one run of a test under one schedule
sightings       what has to be seen in at least one seed of a search
history         what happened, and ready judgements on it; checkers are the judgements without a cluster
chaos           what a test is handed: the cluster, its workers, the time in which faults happen
command         a command of any language in real time
program_workers a command of any language as workers in virtual time
faults/         what can happen to a cluster and to programs, drawn, carried out and shrunk
random_run/     the simulator's own random runs: clients, and what must hold

Kafka has no counterpart.
"""

from broker_sim.chaos.chaos import Chaos
from broker_sim.chaos.faults.action import Action, ScheduleError
from broker_sim.chaos.history import History, InvariantError
from broker_sim.chaos.program_workers import program_workers
from broker_sim.chaos.run import Outcome, run_chaos
from broker_sim.chaos.schedule import Schedule, draw_schedule
from broker_sim.chaos.worker import Worker

__all__ = [
    "Action",
    "Chaos",
    "History",
    "InvariantError",
    "Outcome",
    "Schedule",
    "ScheduleError",
    "Worker",
    "draw_schedule",
    "program_workers",
    "run_chaos",
]
