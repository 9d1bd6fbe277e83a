"""Faults from a seed for users' applications: workers are killed, frozen and cut off, brokers fail.

settings        the settings of a search, with the marker's arguments and the options of commands
search          the search: runs tests of applications, seed after seed, and minimizes failures
schedule        the faults of one run, as data and as text, drawn from a seed
run             one run of a test under one schedule
sightings       conditions that at least one seed of a search must see
history         the events of a run, and ready judgements on them; checkers has the judgements as functions
chaos           the argument of a test: its cluster and workers, and the time in which faults happen
command         a command of any language in real time
program_workers a command of any language as workers in virtual time
faults/         faults of a cluster and of programs: drawn, injected and shrunk
random_run/     the simulator's own random runs: clients and invariants

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
